// Reads the text that print(Function) writes: tokens, types, statements.
#include <charconv>

#include "loop/build.h"
#include "loop/parser.h"
#include "loop/passes.h"
#include "loop/text.h"
#include "support/strings.h"

namespace locution::loop {

Result<Function> Parser::function() {
  Function f;
  LOCUTION_RETURN_IF_ERROR(expect("function"));
  LOCUTION_ASSIGN_OR_RETURN(f.name, title("the function's name"));
  LOCUTION_RETURN_IF_ERROR(params(f));
  size_t inputs = f.params.size();
  LOCUTION_RETURN_IF_ERROR(expect("->"));
  LOCUTION_RETURN_IF_ERROR(params(f));
  f.outputCount = f.params.size() - inputs;
  LOCUTION_ASSIGN_OR_RETURN(f.body, braces());
  LOCUTION_RETURN_IF_ERROR(end());
  auto* outer = as<For>(f.body);
  if (outer && outer->loop == LoopKind::Parallel) isConstInt(outer->extent, &f.parallelExtent);
  LOCUTION_RETURN_IF_ERROR(verify(f));
  return f;
}

Status Parser::error(const std::string& wanted) {
  LOCUTION_RETURN_IF_ERROR(lexer_.status());
  std::string got = lexer_.kind() == Token::End ? "the end" : quoted(lexer_.text());
  return Status::error("line " + std::to_string(lexer_.line()) + ": expected " + wanted + ", not " + got);
}
Status Parser::wrong(const std::string& what) {
  return Status::error("line " + std::to_string(lexer_.line()) + ": " + what);
}
bool Parser::at(std::string_view text) const {
  return (lexer_.kind() == Token::Word || lexer_.kind() == Token::Symbol) && lexer_.text() == text;
}
bool Parser::accept(std::string_view text) {
  if (!at(text)) return false;
  lexer_.advance();
  return true;
}
Status Parser::expect(std::string_view text) {
  return accept(text) ? Status::ok() : error("'" + std::string(text) + "'");
}
bool Parser::isNext(std::string_view symbol) const {
  Lexer ahead = lexer_;
  ahead.advance();
  return ahead.kind() == Token::Symbol && ahead.text() == symbol;
}
Result<std::string> Parser::identifier() {
  if (lexer_.kind() != Token::Word || isReservedWord(lexer_.text())) return error("a name");
  std::string name(lexer_.text());
  lexer_.advance();
  return name;
}
Result<std::string> Parser::title(const std::string& what) {
  LOCUTION_RETURN_IF_ERROR(lexer_.status());
  std::string name;
  if (lexer_.kind() == Token::Text)
    name = unescaped(lexer_.text());
  else if (lexer_.kind() == Token::Word)
    name = lexer_.text();
  else
    return error(what);
  lexer_.advance();
  return name;
}
Status Parser::end() {
  if (lexer_.kind() != Token::End) return error("the end of the text");
  return lexer_.status();
}

Result<BufferRef> Parser::bufferOf(std::string name, Scope scope) {
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

Result<Type> Parser::type() {
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

Status Parser::params(Function& f) {
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

Result<Stmt> Parser::braces() {
  Depth deeper(depth_);
  if (depth_ > kMaxDepth) return wrong("too deeply nested");
  LOCUTION_RETURN_IF_ERROR(expect("{"));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Stmt> stmts, statements());
  return block(std::move(stmts));
}

Result<std::vector<Stmt>> Parser::statements() {
  std::vector<Stmt> stmts;
  while (!accept("}")) {
    LOCUTION_ASSIGN_OR_RETURN(Stmt s, statement());
    stmts.push_back(s);
  }
  return stmts;
}

Result<Stmt> Parser::statement() {
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

Result<Stmt> Parser::loop(LoopKind kind) {
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

Result<Function> parseFunction(std::string_view text) { return Parser(text).function(); }

}  // namespace locution::loop
