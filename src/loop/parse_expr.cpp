// Expressions of loop IR's text.
#include <algorithm>
#include <bit>

#include "loop/build.h"
#include "loop/parser.h"
#include "loop/scalar.h"
#include "loop/text.h"

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

}  // namespace

Status Parser::expressions(std::string_view close, std::vector<Expr>* out) {
  int tallest = 0;
  while (!accept(close)) {
    LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
    out->push_back(e);
    tallest = std::max(tallest, height_);
    if (!at(close)) LOCUTION_RETURN_IF_ERROR(expect(","));
  }
  height_ = tallest + 1;
  return Status::ok();
}

Result<Parser::Access> Parser::access(const std::string& name) {
  Access a;
  int tallest = 0;
  auto it = buffers_.find(name);
  if (it == buffers_.end()) return wrong("no buffer " + name);
  a.buffer = it->second;
  LOCUTION_RETURN_IF_ERROR(expect("["));
  while (!accept("]")) {
    if (accept(";")) {
      LOCUTION_ASSIGN_OR_RETURN(a.mask, expression());
      tallest = std::max(tallest, height_);
      LOCUTION_RETURN_IF_ERROR(expect("]"));
      break;
    }
    LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
    a.indices.push_back(e);
    tallest = std::max(tallest, height_);
    if (!at("]") && !at(";")) LOCUTION_RETURN_IF_ERROR(expect(","));
  }
  height_ = tallest + 1;
  a.type = a.buffer->element;
  for (const Expr& i : a.indices) a.type.lanes = std::max(a.type.lanes, i->type.lanes);
  return a;
}

Result<Expr> Parser::expression(int precedence) {
  Depth deeper(depth_);
  if (depth_ > kMaxDepth) return wrong("too deeply nested");
  LOCUTION_ASSIGN_OR_RETURN(Expr left, primary());
  int height = height_;
  while (lexer_.kind() == Token::Symbol) {
    auto found = infix(lexer_.text());
    if (!found || found->precedence < precedence) break;
    lexer_.advance();
    LOCUTION_ASSIGN_OR_RETURN(Expr right, expression(found->precedence + 1));
    if (left->type != right->type)
      return wrong("operands of " + typeText(left->type) + " and " + typeText(right->type));
    Type t = isComparison(found->op) ? Type{DType::Bool, left->type.lanes} : left->type;
    left = shared(std::make_shared<Binary>(found->op, t, left, right));
    height = std::max(height, height_) + 1;
    if (height > kMaxHeight) return wrong("too many operators in one expression");
  }
  height_ = height;
  return left;
}

Result<Expr> Parser::primary() {
  LOCUTION_RETURN_IF_ERROR(lexer_.status());
  if (accept("(")) {
    if (at("let")) return let();
    LOCUTION_ASSIGN_OR_RETURN(Expr e, expression());
    LOCUTION_RETURN_IF_ERROR(expect(")"));
    return e;
  }
  height_ = 1;
  // inf_float64 and nan_float16 lex as words.
  if (lexer_.kind() == Token::Number || at("-") || (lexer_.kind() == Token::Word && isNonFinite(lexer_.text())))
    return number();
  if (accept("true")) return shared(std::make_shared<IntImm>(DType::Bool, 1));
  if (accept("false")) return shared(std::make_shared<IntImm>(DType::Bool, 0));
  if (lexer_.kind() != Token::Word) return error("an expression");
  std::string word(lexer_.text());
  if (isReservedWord(word)) return function(word);
  lexer_.advance();
  if (at("[")) {
    LOCUTION_ASSIGN_OR_RETURN(Access a, access(word));
    return shared(std::make_shared<Load>(a.type, a.buffer, a.indices, a.mask));
  }
  auto it = vars_.find(word);
  if (it == vars_.end()) return wrong("no variable " + word);
  return Expr(it->second);
}

Result<Expr> Parser::let() {
  lexer_.advance();
  LOCUTION_ASSIGN_OR_RETURN(std::string name, identifier());
  LOCUTION_RETURN_IF_ERROR(expect("="));
  LOCUTION_ASSIGN_OR_RETURN(Expr value, expression());
  int height = height_;
  LOCUTION_RETURN_IF_ERROR(expect("in"));
  VarRef var = makeVar(name, value->type);
  // Equal lets bind the same variable, so that they can be one node.
  if (sharing_) var = sharedVars_.emplace(std::make_pair(name, value), var).first->second;
  LOCUTION_ASSIGN_OR_RETURN(Expr body, scoped(vars_, name, var, [&] { return expression(); }));
  height_ = std::max(height, height_) + 1;
  LOCUTION_RETURN_IF_ERROR(expect(")"));
  return shared(std::make_shared<LetExpr>(var, value, body));
}

Result<Expr> Parser::number() {
  bool negative = accept("-");
  if (lexer_.kind() != Token::Number && lexer_.kind() != Token::Word) return error("a number");
  Expr e = parseNumber(std::string(negative ? "-" : "") + std::string(lexer_.text()));
  if (!e) return error("a number that its type can hold");
  lexer_.advance();
  return shared(e);
}

Result<Expr> Parser::function(const std::string& word) {
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
  LOCUTION_ASSIGN_OR_RETURN(Expr e, functionOf(word, result, args));
  return shared(e);
}

Result<Expr> Parser::functionOf(const std::string& word, std::optional<DType> result, const std::vector<Expr>& args) {
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

Expr Parser::shared(Expr e) {
  if (!sharing_) return e;
  std::vector<const void*> parts;
  int64_t value = 0;
  std::string_view name;
  auto add = [&](const Expr& part) { parts.push_back(part.get()); };
  if (const auto* i = as<IntImm>(e)) {
    value = i->value;
  } else if (const auto* f = as<FloatImm>(e)) {
    value = std::bit_cast<int64_t>(f->value);
  } else if (const auto* c = as<Cast>(e)) {
    add(c->value);
  } else if (const auto* b = as<Binary>(e)) {
    value = static_cast<int64_t>(b->op);
    add(b->a), add(b->b);
  } else if (const auto* s = as<Select>(e)) {
    add(s->condition), add(s->yes), add(s->no);
  } else if (const auto* l = as<Load>(e)) {
    parts.push_back(l->buffer.get());
    for (const Expr& i : l->indices) add(i);
    add(l->mask);
  } else if (const auto* k = as<Call>(e)) {
    name = k->name;
    for (const Expr& a : k->args) add(a);
  } else if (const auto* t = as<LetExpr>(e)) {
    parts.push_back(t->var.get());
    add(t->value), add(t->body);
  } else {
    return e;  // vectors' own forms, which stages don't have
  }
  auto key = std::make_tuple(e->kind, e->type.dtype, e->type.lanes, value, std::string(name), std::move(parts));
  return shared_.emplace(std::move(key), e).first->second;
}

}  // namespace locution::loop
