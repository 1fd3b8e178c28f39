// The parser of loop IR's text, for parse.cpp (functions, statements), parse_expr.cpp and parse_computation.cpp. Nodes are made as
// written, without folding, so that printing gives the text back. The text may come from a user: every mistake is a Status with
// its line, never a failed check, and both nesting and the height of trees are bounded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "loop/compute.h"
#include "loop/lexer.h"
#include "support/status.h"

namespace locution::loop {

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Function> function();
  Result<Computation> computation();

 private:
  static constexpr int kMaxDepth = 500, kMaxHeight = 2000;
  struct Depth {
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    int& depth;
  };
  struct Access {
    BufferRef buffer;
    std::vector<Expr> indices;
    Expr mask;
    Type type;
  };

  // Tokens.
  Status error(const std::string& wanted);
  Status wrong(const std::string& what);
  bool at(std::string_view text) const;
  bool accept(std::string_view text);
  Status expect(std::string_view text);
  /// The token after the one at hand is this symbol.
  bool isNext(std::string_view symbol) const;
  Result<std::string> identifier();
  Result<std::string> title(const std::string& what);
  Status end();

  // Functions and statements.
  /// "float32x16[4, 2]" after a name.
  Result<BufferRef> bufferOf(std::string name, Scope scope);
  Result<Type> type();
  Status params(Function& f);
  Result<std::vector<Stmt>> statements();
  Result<Stmt> braces();
  Result<Stmt> statement();
  Result<Stmt> loop(LoopKind kind);

  // Expressions.
  Status expressions(std::string_view close, std::vector<Expr>* out);
  Result<Access> access(const std::string& name);
  Result<Expr> expression(int precedence = 1);
  Result<Expr> primary();
  Result<Expr> number();
  Result<Expr> let();
  /// Casts, intrinsics and the other forms that look like calls; `word` is at the lexer.
  Result<Expr> function(const std::string& word);
  Result<Expr> functionOf(const std::string& word, std::optional<DType> result, const std::vector<Expr>& args);
  /// The node equal to `e` that the stage has already, if there is one.
  Expr shared(Expr e);

  // Computations.
  Status inputs(Computation* c);
  Status outputs(Computation* c);
  Result<Stage> stage(Computation* c);
  Result<std::vector<Axis>> axes();
  /// Where "where" of the stage at hand is, which is at its value; nullopt: it has none.
  std::optional<Lexer> findWhere() const;
  /// "sum[k < 3](a[k])", "exclusive scan sum(a[i])", "a[i]"
  Status value(Stage* s);

  template <typename Map, typename T, typename F>
  auto scoped(Map& map, const std::string& name, const T& value, F&& body) {
    auto old = map.find(name) == map.end() ? T() : map[name];
    map[name] = value;
    auto result = body();
    if (old)
      map[name] = old;
    else
      map.erase(name);
    return result;
  }

  Lexer lexer_;
  int depth_ = 0;
  int height_ = 0;  ///< of the expression read last
  std::map<std::string, BufferRef> buffers_;
  std::map<std::string, VarRef> vars_;
  std::map<std::string, size_t> undefined_;  ///< outputs of a computation that a stage is still to define, by position
  bool sharing_ = false;                     ///< within a stage
  using Key = std::tuple<ExprKind, DType, int, int64_t, std::string, std::vector<const void*>>;
  std::map<Key, Expr> shared_;
  std::map<std::pair<std::string, Expr>, VarRef> sharedVars_;
};

}  // namespace locution::loop
