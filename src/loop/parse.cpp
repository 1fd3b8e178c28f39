// Reads the text that print(Function) writes. Nodes are made as written, without folding, so that printing gives the text back.
// The text may come from a user: every mistake is a Status with its line, never a failed check, and nesting is bounded.
#include <charconv>
#include <map>
#include <optional>

#include "loop/build.h"
#include "loop/lexer.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "loop/text.h"
#include "support/strings.h"

namespace locution::loop {
namespace {

struct Operator {
  BinaryOp op;
  int precedence;
};
std::optional<Operator> infix(std::string_view text) {
  static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {
#define BINARY_OP(Name, text) {text, BinaryOp::Name},
#include "loop/nodes.inc"
#undef BINARY_OP
  };
  for (auto& [t, op] : kOps)
    if (t == text && op != BinaryOp::Min && op != BinaryOp::Max) return Operator{op, precedenceOf(op)};
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}

  Result<Function> function() {
    Function f;
    LOCUTION_RETURN_IF_ERROR(expect("function"));
    LOCUTION_RETURN_IF_ERROR(lexer_.status());
    if (lexer_.kind() == Token::Text)
      f.name = unescaped(lexer_.text());
    else if (lexer_.kind() == Token::Word)
      f.name = lexer_.text();
    else
      return error("the function's name");
    lexer_.advance();
    LOCUTION_RETURN_IF_ERROR(params(f));
    size_t inputs = f.params.size();
    LOCUTION_RETURN_IF_ERROR(expect("->"));
    LOCUTION_RETURN_IF_ERROR(params(f));
    f.outputCount = f.params.size() - inputs;
    LOCUTION_ASSIGN_OR_RETURN(f.body, braces());
    if (lexer_.kind() != Token::End) return error("the end of the text");
    LOCUTION_RETURN_IF_ERROR(lexer_.status());
    auto* outer = as<For>(f.body);
    if (outer && outer->loop == LoopKind::Parallel) isConstInt(outer->extent, &f.parallelExtent);
    LOCUTION_RETURN_IF_ERROR(verify(f));
    return f;
  }

 private:
  static constexpr int kMaxDepth = 500;
  struct Depth {
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
    int& depth;
  };

  Status error(const std::string& wanted) {
    LOCUTION_RETURN_IF_ERROR(lexer_.status());
    std::string got = lexer_.kind() == Token::End ? "the end" : quoted(lexer_.text());
    return Status::error("line " + std::to_string(lexer_.line()) + ": expected " + wanted + ", not " + got);
  }
  Status wrong(const std::string& what) { return Status::error("line " + std::to_string(lexer_.line()) + ": " + what); }
  bool at(std::string_view text) const {
    return (lexer_.kind() == Token::Word || lexer_.kind() == Token::Symbol) && lexer_.text() == text;
  }
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    lexer_.advance();
    return true;
  }
  Status expect(std::string_view text) { return accept(text) ? Status::ok() : error("'" + std::string(text) + "'"); }
  Result<std::string> identifier() {
    if (lexer_.kind() != Token::Word || isReservedWord(lexer_.text())) return error("a name");
    std::string name(lexer_.text());
    lexer_.advance();
    return name;
  }

  /// "float32x16[4, 2]" after a name.
  Result<BufferRef> bufferOf(std::string name, Scope scope) {
    auto b = std::make_shared<Buffer>();
    b->name = std::move(name);
    b->scope = scope;
    LOCUTION_ASSIGN_OR_RETURN(b->element, type());
    LOCUTION_RETURN_IF_ERROR(expect("["));
    LOCUTION_RETURN_IF_ERROR(expressions("]", &b->dims));
    int64_t elements = b->element.lanes;
    for (const Expr& d : b->dims) {
      int64_t v = 0;
      if (isConstInt(d, &v) && (v < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(v, 1), &elements)))
        return wrong("impossible dims of " + b->name);
    }
    return BufferRef(b);
  }

  Result<Type> type() {
    if (lexer_.kind() != Token::Word) return error("a type");
    std::string word(lexer_.text());
    Type t;
    auto scalar = parseDType(word);
    if (!scalar) {
      // "float8e4m3fnx16": lanes after the last 'x'.
      size_t x = word.rfind('x');
      if (x != std::string::npos) scalar = parseDType(word.substr(0, x));
      auto r = x == std::string::npos ? std::from_chars_result{}
                                      : std::from_chars(word.data() + x + 1, word.data() + word.size(), t.lanes);
      if (!scalar || r.ec != std::errc() || r.ptr != word.data() + word.size() || t.lanes < 2 || t.lanes > 4096)
        return error("a type");
    }
    if (dtypeBits(*scalar) == 0 || dtypeClass(*scalar) == DTypeClass::Complex) return error("a type that loops handle");
    t.dtype = *scalar;
    lexer_.advance();
    return t;
  }

  Status params(Function& f) {
    LOCUTION_RETURN_IF_ERROR(expect("("));
    while (!accept(")")) {
      LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
      LOCUTION_RETURN_IF_ERROR(expect(":"));
      LOCUTION_ASSIGN_OR_RETURN(BufferRef b, bufferOf(name, Scope::Global));
      buffers_[name] = b;
      f.params.push_back(b);
      if (!at(")")) LOCUTION_RETURN_IF_ERROR(expect(","));
    }
    return Status::ok();
  }

  Result<Stmt> braces() {
    Depth deeper(depth_);
    if (depth_ > kMaxDepth) return wrong("too deeply nested");
    LOCUTION_RETURN_IF_ERROR(expect("{"));
    std::vector<Stmt> stmts;
    while (!accept("}")) {
      LOCUTION_ASSIGN_OR_RETURN(Stmt s, statement());
      stmts.push_back(s);
    }
    return block(std::move(stmts));
  }

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

  Result<Stmt> statement() {
    static constexpr std::pair<std::string_view, LoopKind> kKinds[] = {
        {"parallel", LoopKind::Parallel}, {"vector", LoopKind::Vector}, {"unrolled", LoopKind::Unrolled}};
    for (auto& [word, kind] : kKinds)
      if (accept(word)) return loop(kind);
    if (at("for")) return loop(LoopKind::Serial);
    if (accept("if")) {
      LOCUTION_ASSIGN_OR_RETURN(Expr condition, expression());
      LOCUTION_ASSIGN_OR_RETURN(Stmt then, braces());
      Stmt otherwise;
      if (accept("else")) {
        LOCUTION_ASSIGN_OR_RETURN(otherwise, braces());
      }
      return Stmt(std::make_shared<IfThen>(condition, then, otherwise));
    }
    if (accept("let")) {
      LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
      LOCUTION_RETURN_IF_ERROR(expect("="));
      LOCUTION_ASSIGN_OR_RETURN(Expr value, expression());
      VarRef var = makeVar(name, value->type);
      LOCUTION_ASSIGN_OR_RETURN(Stmt body, scoped(vars_, name, var, [&] { return braces(); }));
      return Stmt(std::make_shared<LetStmt>(var, value, body));
    }
    if (at("stack") || at("register")) {
      Scope scope = accept("stack") ? Scope::Stack : (lexer_.advance(), Scope::Register);
      LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
      LOCUTION_RETURN_IF_ERROR(expect(":"));
      LOCUTION_ASSIGN_OR_RETURN(BufferRef b, bufferOf(name, scope));
      LOCUTION_ASSIGN_OR_RETURN(Stmt body, scoped(buffers_, name, b, [&] { return braces(); }));
      return Stmt(std::make_shared<Allocate>(b, body));
    }
    LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
    LOCUTION_ASSIGN_OR_RETURN(Access a, access(name));
    LOCUTION_RETURN_IF_ERROR(expect("="));
    LOCUTION_ASSIGN_OR_RETURN(Expr value, expression());
    return Stmt(std::make_shared<Store>(a.buffer, a.indices, value, a.mask));
  }

  Result<Stmt> loop(LoopKind kind) {
    LOCUTION_RETURN_IF_ERROR(expect("for"));
    LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
    LOCUTION_RETURN_IF_ERROR(expect("in"));
    LOCUTION_ASSIGN_OR_RETURN(Expr min, expression());
    bool offset = accept("..+");
    if (!offset) {
      if (!as<IntImm>(min) || as<IntImm>(min)->value != 0) return error("'..+'");
      LOCUTION_RETURN_IF_ERROR(expect(".."));
    }
    LOCUTION_ASSIGN_OR_RETURN(Expr extent, expression());
    VarRef var = makeVar(name);
    LOCUTION_ASSIGN_OR_RETURN(Stmt body, scoped(vars_, name, var, [&] { return braces(); }));
    return Stmt(std::make_shared<For>(var, min, extent, kind, body));
  }

  Status expressions(std::string_view close, std::vector<Expr>* out) {
    while (!accept(close)) {
      LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
      out->push_back(e);
      if (!at(close)) LOCUTION_RETURN_IF_ERROR(expect(","));
    }
    return Status::ok();
  }

  struct Access {
    BufferRef buffer;
    std::vector<Expr> indices;
    Expr mask;
    Type type;
  };
  Result<Access> access(const std::string& name) {
    Access a;
    auto it = buffers_.find(name);
    if (it == buffers_.end()) return wrong("no buffer " + name);
    a.buffer = it->second;
    LOCUTION_RETURN_IF_ERROR(expect("["));
    while (!accept("]")) {
      if (accept(";")) {
        LOCUTION_ASSIGN_OR_RETURN(a.mask, expression());
        LOCUTION_RETURN_IF_ERROR(expect("]"));
        break;
      }
      LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
      a.indices.push_back(e);
      if (!at("]") && !at(";")) LOCUTION_RETURN_IF_ERROR(expect(","));
    }
    a.type = a.buffer->element;
    for (const Expr& i : a.indices) a.type.lanes = std::max(a.type.lanes, i->type.lanes);
    return a;
  }

  Result<Expr> expression(int precedence = 1) {
    Depth deeper(depth_);
    if (depth_ > kMaxDepth) return wrong("too deeply nested");
    LOCUTION_ASSIGN_OR_RETURN(Expr left, primary());
    while (lexer_.kind() == Token::Symbol) {
      auto found = infix(lexer_.text());
      if (!found || found->precedence < precedence) break;
      lexer_.advance();
      LOCUTION_ASSIGN_OR_RETURN(Expr right, expression(found->precedence + 1));
      if (left->type != right->type)
        return wrong("operands of " + typeText(left->type) + " and " + typeText(right->type));
      Type t = isComparison(found->op) ? Type{DType::Bool, left->type.lanes} : left->type;
      left = std::make_shared<Binary>(found->op, t, left, right);
    }
    return left;
  }

  Result<Expr> primary() {
    LOCUTION_RETURN_IF_ERROR(lexer_.status());
    if (lexer_.kind() == Token::Number || at("-") || at("inf") || at("nan")) return number();
    // inf_float64 and nan_float16 lex as words.
    if (lexer_.kind() == Token::Word && (lexer_.text().starts_with("inf_") || lexer_.text().starts_with("nan_")) &&
        !vars_.count(std::string(lexer_.text())))
      return number();
    if (accept("true")) return Expr(std::make_shared<IntImm>(DType::Bool, 1));
    if (accept("false")) return Expr(std::make_shared<IntImm>(DType::Bool, 0));
    if (accept("(")) {
      if (!accept("let")) {
        LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
        LOCUTION_RETURN_IF_ERROR(expect(")"));
        return e;
      }
      LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
      LOCUTION_RETURN_IF_ERROR(expect("="));
      LOCUTION_ASSIGN_OR_RETURN(Expr value, expression());
      LOCUTION_RETURN_IF_ERROR(expect("in"));
      VarRef var = makeVar(name, value->type);
      LOCUTION_ASSIGN_OR_RETURN(Expr body, scoped(vars_, name, var, [&] { return expression(); }));
      LOCUTION_RETURN_IF_ERROR(expect(")"));
      return Expr(std::make_shared<LetExpr>(var, value, body));
    }
    if (lexer_.kind() != Token::Word) return error("an expression");
    std::string word(lexer_.text());
    if (isReservedWord(word)) return function(word);
    lexer_.advance();
    if (at("[")) {
      LOCUTION_ASSIGN_OR_RETURN(Access a, access(word));
      return Expr(std::make_shared<Load>(a.type, a.buffer, a.indices, a.mask));
    }
    auto it = vars_.find(word);
    if (it == vars_.end()) return wrong("no variable " + word);
    return Expr(it->second);
  }

  Result<Expr> number() {
    bool negative = accept("-");
    if (lexer_.kind() != Token::Number && lexer_.kind() != Token::Word) return error("a number");
    Expr e = parseNumber(std::string(negative ? "-" : "") + std::string(lexer_.text()));
    if (!e) return error("a number that its type can hold");
    lexer_.advance();
    return e;
  }

  /// Casts, intrinsics and the other forms that look like calls; `word` is at the lexer.
  Result<Expr> function(const std::string& word) {
    lexer_.advance();
    std::optional<DType> result;
    if (accept("<")) {
      auto t = parseDType(lexer_.text());
      if (!t) return error("a type");
      result = t;
      lexer_.advance();
      LOCUTION_RETURN_IF_ERROR(expect(">"));
    }
    LOCUTION_RETURN_IF_ERROR(expect("("));
    std::vector<Expr> args;
    LOCUTION_RETURN_IF_ERROR(expressions(")", &args));
    auto count = [&](size_t n) {
      return args.size() == n ? Status::ok() : wrong(word + " takes " + std::to_string(n) + " arguments");
    };
    if (auto type = parseDType(word)) {
      LOCUTION_RETURN_IF_ERROR(count(1));
      return Expr(std::make_shared<Cast>(Type{*type, args[0]->type.lanes}, args[0]));
    }
    if (word == "min" || word == "max") {
      LOCUTION_RETURN_IF_ERROR(count(2));
      if (args[0]->type != args[1]->type) return wrong(word + " of unequal types");
      return Expr(
          std::make_shared<Binary>(word == "min" ? BinaryOp::Min : BinaryOp::Max, args[0]->type, args[0], args[1]));
    }
    if (word == "select") {
      LOCUTION_RETURN_IF_ERROR(count(3));
      return Expr(std::make_shared<Select>(args[0], args[1], args[2]));
    }
    if (word == "ramp" || word == "broadcast") {
      LOCUTION_RETURN_IF_ERROR(count(word == "ramp" ? 3 : 2));
      int64_t lanes = 0;
      if (!isConstInt(args.back(), &lanes) || lanes < 2 || lanes > 4096) return wrong("bad lanes of " + word);
      if (word == "ramp") return Expr(std::make_shared<Ramp>(args[0], args[1], int(lanes)));
      return Expr(std::make_shared<Broadcast>(args[0], int(lanes)));
    }
    for (BinaryOp op : {BinaryOp::Add, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max, BinaryOp::And, BinaryOp::Or})
      if (word == "reduce_" + std::string(reduceName(op))) {
        LOCUTION_RETURN_IF_ERROR(count(1));
        return Expr(std::make_shared<VectorReduce>(op, args[0]));
      }
    const IntrinsicFacts* facts = findIntrinsic(word);
    if (!facts) return wrong("unexpected " + word);
    LOCUTION_RETURN_IF_ERROR(count(static_cast<size_t>(facts->arity)));
    Type t = args[0]->type;
    if (facts->id == Intrinsic::I_isnan || facts->id == Intrinsic::I_isinf) t.dtype = DType::Bool;
    if (facts->id == Intrinsic::I_join) t.dtype = dtypeBits(t.dtype) == 8 ? DType::I16 : DType::I32;
    if (result) t.dtype = *result;
    return Expr(std::make_shared<Call>(word, t, args));
  }

  Lexer lexer_;
  int depth_ = 0;
  std::map<std::string, BufferRef> buffers_;
  std::map<std::string, VarRef> vars_;
};

}  // namespace

Result<Function> parseFunction(std::string_view text) { return Parser(text).function(); }

}  // namespace locution::loop
