// Makers of expressions and statements: type checks, broadcasting to lanes, and the folding of constants. Binary operators
// have their own file (build_binary.cpp). Invariant: what a maker returns verifies if its arguments do.
#include "loop/build.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/check.h"

namespace locution::loop {
namespace {

/// The scalar constant under an optional Broadcast.
bool constantWord(const Expr& e, Word* out) {
  if (auto* b = as<Broadcast>(e)) return constantWord(b->value, out);
  if (auto* i = as<IntImm>(e)) return *out = wordOf(i->value), true;
  if (auto* f = as<FloatImm>(e)) return *out = wordOf(f->value), true;
  return false;
}

Expr immediate(DType type, Word w, int lanes) {
  return broadcast(isFloat(type) ? floatImm(type, w.f) : intImm(type, w.i), lanes);
}

bool isTrue(const Expr& e) {
  int64_t v = 0;
  return isConstInt(e, &v) && v != 0;
}
bool isFalse(const Expr& e) {
  int64_t v = 0;
  return isConstInt(e, &v) && v == 0;
}

int indexLanes(const std::vector<Expr>& indices) {
  int lanes = 1;
  for (const Expr& i : indices) {
    LOCUTION_CHECK(i && i->type.dtype == DType::I64) << "an index is not int64";
    LOCUTION_CHECK(lanes == 1 || i->type.lanes == 1 || i->type.lanes == lanes) << "indices of unequal lanes";
    lanes = std::max(lanes, i->type.lanes);
  }
  return lanes;
}

Type accessType(const Buffer& buffer, const std::vector<Expr>& indices) {
  LOCUTION_CHECK(indices.size() == buffer.dims.size())
      << "buffer " << buffer.name << " has " << buffer.dims.size() << " dims, not " << indices.size();
  int lanes = indexLanes(indices);
  LOCUTION_CHECK(lanes == 1 || buffer.element.lanes == 1) << "vector index into vector elements of " << buffer.name;
  return buffer.element.withLanes(std::max(lanes, buffer.element.lanes));
}

}  // namespace

Expr intImm(DType type, int64_t value) {
  LOCUTION_CHECK(!isFloat(type) && dtypeBits(type) > 0);
  return std::make_shared<IntImm>(type, wrapInt(type, value));
}

Expr floatImm(DType type, double value) {
  LOCUTION_CHECK(isFloat(type));
  if (value != value) value = std::numeric_limits<double>::quiet_NaN();
  // Only a cast saturates: an infinity that the type has stays one.
  bool kept = std::isnan(value) || (std::isinf(value) && type == DType::F8E5M2);
  return std::make_shared<FloatImm>(type, kept ? value : roundFloat(type, value));
}

Expr constant(DType type, double value) {
  return isFloat(type) ? floatImm(type, value) : intImm(type, evalCast(DType::F64, type, wordOf(value)).i);
}

VarRef makeVar(std::string name, Type type) { return std::make_shared<Var>(std::move(name), type); }

bool isConstInt(const Expr& e, int64_t* value) {
  if (auto* b = as<Broadcast>(e)) return isConstInt(b->value, value);
  auto* i = as<IntImm>(e);
  if (i && value) *value = i->value;
  return i != nullptr;
}

Expr select(Expr condition, Expr yes, Expr no) {
  LOCUTION_CHECK(condition->type.dtype == DType::Bool && yes->type.dtype == no->type.dtype)
      << "select of unequal types";
  int lanes = std::max({condition->type.lanes, yes->type.lanes, no->type.lanes});
  yes = broadcast(std::move(yes), lanes);
  no = broadcast(std::move(no), lanes);
  if (auto* b = as<Broadcast>(condition)) condition = b->value;
  LOCUTION_CHECK(condition->type.lanes == 1 || condition->type.lanes == lanes) << "select of unequal lanes";
  if (isTrue(condition)) return yes;
  if (isFalse(condition)) return no;
  if (yes == no) return yes;
  return std::make_shared<Select>(std::move(condition), std::move(yes), std::move(no));
}

Expr logicalNot(Expr a) {
  LOCUTION_CHECK(a->type.dtype == DType::Bool);
  return call("not", {std::move(a)});
}

Expr cast(DType type, Expr value) {
  DType from = value->type.dtype;
  if (from == type) return value;
  Word w;
  if (constantWord(value, &w)) return immediate(type, evalCast(from, type, w), value->type.lanes);
  if (auto* b = as<Broadcast>(value)) return broadcast(cast(type, b->value), b->type.lanes);
  Type t{type, value->type.lanes};
  return std::make_shared<Cast>(t, std::move(value));
}

Expr call(const std::string& intrinsic, std::vector<Expr> args) {
  const IntrinsicFacts* facts = findIntrinsic(intrinsic);
  LOCUTION_CHECK(facts && facts->arity == static_cast<int>(args.size()))
      << "no intrinsic " << intrinsic << " of that arity";
  LOCUTION_CHECK(facts->id != Intrinsic::I_bitcast) << "use bitcast()";
  if (facts->id == Intrinsic::I_prefetch) {
    LOCUTION_CHECK(as<Load>(args[0]) && args[0]->type.lanes == 1) << "prefetch takes a scalar load";
    return std::make_shared<Call>(intrinsic, args[0]->type, std::move(args));
  }
  int lanes = 1;
  for (const Expr& a : args) {
    LOCUTION_CHECK(a->type.dtype == args[0]->type.dtype) << intrinsic << " of unequal types";
    lanes = std::max(lanes, a->type.lanes);
  }
  DType type = args[0]->type.dtype;
  bool givesBool = facts->id == Intrinsic::I_isnan || facts->id == Intrinsic::I_isinf;
  const bool isJoin = facts->id == Intrinsic::I_join;
  const bool isProduct = facts->id == Intrinsic::I_madd16 || facts->id == Intrinsic::I_dot4;
  LOCUTION_CHECK(!isJoin || (isInteger(type) && (dtypeBits(type) == 8 || dtypeBits(type) == 16)));
  LOCUTION_CHECK(!isProduct || type == DType::I32) << intrinsic << " needs int32";
  LOCUTION_CHECK(isFloat(type) || isJoin || isProduct || facts->id == Intrinsic::I_abs ||
                 facts->id == Intrinsic::I_not || facts->id == Intrinsic::I_popcount)
      << intrinsic << " needs floats";
  DType result = givesBool ? DType::Bool : type;
  if (isJoin) result = dtypeBits(type) == 8 ? DType::I16 : DType::I32;
  // Only what is exact everywhere is folded: an inline polynomial need not agree with libm in the last bit.
  if (facts->group == IntrinsicGroup::Cheap) {
    Word words[3];
    bool constant = true;
    for (size_t i = 0; i < args.size(); ++i) constant = constant && constantWord(args[i], &words[i]);
    if (constant) return immediate(result, evalIntrinsic(facts->id, type, result, words), lanes);
  }
  if (facts->id == Intrinsic::I_not) {
    auto* inner = as<Call>(args[0]);
    if (inner && inner->name == "not") return inner->args[0];
    auto* b = as<Binary>(args[0]);
    if (b && type == DType::Bool && isComparison(b->op)) {
      if (b->op == BinaryOp::Eq) return binary(BinaryOp::Ne, b->a, b->b);
      if (b->op == BinaryOp::Ne) return binary(BinaryOp::Eq, b->a, b->b);
      if (!isFloat(b->a->type.dtype)) return binary(b->op == BinaryOp::Lt ? BinaryOp::Le : BinaryOp::Lt, b->b, b->a);
    }
  }
  for (Expr& a : args) a = broadcast(std::move(a), lanes);
  return std::make_shared<Call>(intrinsic, Type{result, lanes}, std::move(args));
}

Expr bitcast(DType type, Expr value) {
  DType from = value->type.dtype;
  if (from == type) return value;
  LOCUTION_CHECK(dtypeBits(from) == dtypeBits(type)) << "bitcast between widths";
  Word w;
  if (constantWord(value, &w))
    return immediate(type, evalIntrinsic(Intrinsic::I_bitcast, from, type, &w), value->type.lanes);
  return std::make_shared<Call>("bitcast", Type{type, value->type.lanes}, std::vector<Expr>{value});
}

Expr ramp(Expr base, Expr stride, int lanes) {
  LOCUTION_CHECK(base->type == stride->type && base->type.lanes == 1 && isInteger(base->type.dtype) && lanes >= 1);
  if (lanes == 1) return base;
  if (isFalse(stride)) return broadcast(std::move(base), lanes);
  return std::make_shared<Ramp>(std::move(base), std::move(stride), lanes);
}

Expr broadcast(Expr value, int lanes) {
  if (value->type.lanes == lanes) return value;
  if (auto* b = as<Broadcast>(value)) return broadcast(b->value, lanes);
  LOCUTION_CHECK(value->type.lanes == 1 && lanes > 1) << "broadcast of " << value->type.lanes << " lanes to " << lanes;
  return std::make_shared<Broadcast>(std::move(value), lanes);
}

Expr vectorReduce(BinaryOp op, Expr value) {
  if (value->type.lanes == 1) return value;
  bool idempotent = isIdempotent(op);
  LOCUTION_CHECK(idempotent || op == BinaryOp::Add || op == BinaryOp::Mul) << "no such vector reduction";
  if (auto* b = as<Broadcast>(value); b && idempotent) return b->value;
  return std::make_shared<VectorReduce>(op, std::move(value));
}

Expr let(VarRef var, Expr value, Expr body) {
  LOCUTION_CHECK(var->type == value->type) << "let " << var->name << " of another type";
  if (body == var) return value;
  if (value->kind == ExprKind::IntImm || value->kind == ExprKind::FloatImm || value->kind == ExprKind::Var)
    return substitute(body, {{var.get(), value}});
  return std::make_shared<LetExpr>(std::move(var), std::move(value), std::move(body));
}

Expr load(BufferRef buffer, std::vector<Expr> indices, Expr mask) {
  Type type = accessType(*buffer, indices);
  if (mask) {
    LOCUTION_CHECK(mask->type.dtype == DType::Bool && (mask->type.lanes == 1 || mask->type.lanes == type.lanes));
    if (auto* b = as<Broadcast>(mask)) mask = b->value;
    if (mask->type.lanes == 1) {
      Expr plain = load(std::move(buffer), std::move(indices));
      return select(std::move(mask), plain, broadcast(constant(type.dtype, 0), type.lanes));
    }
  }
  return std::make_shared<Load>(type, std::move(buffer), std::move(indices), std::move(mask));
}

BufferRef makeBuffer(std::string name, Type element, const std::vector<int64_t>& dims, Scope scope) {
  auto buffer = std::make_shared<Buffer>();
  buffer->name = std::move(name);
  buffer->element = element;
  for (int64_t d : dims) buffer->dims.push_back(index(d));
  buffer->scope = scope;
  return buffer;
}

std::vector<int64_t> extents(const Buffer& buffer) {
  std::vector<int64_t> out;
  for (const Expr& d : buffer.dims) {
    int64_t v = 0;
    LOCUTION_CHECK(isConstInt(d, &v)) << "buffer " << buffer.name << " has a dim that is no constant";
    out.push_back(v);
  }
  return out;
}

Stmt store(BufferRef buffer, std::vector<Expr> indices, Expr value, Expr mask) {
  Type type = accessType(*buffer, indices);
  LOCUTION_CHECK(value->type.dtype == type.dtype)
      << "store of " << dtypeName(value->type.dtype) << " to " << buffer->name << " of " << dtypeName(type.dtype);
  value = broadcast(std::move(value), type.lanes);
  if (mask) {
    LOCUTION_CHECK(mask->type.dtype == DType::Bool && (mask->type.lanes == 1 || mask->type.lanes == type.lanes));
    if (auto* b = as<Broadcast>(mask)) mask = b->value;
    if (mask->type.lanes == 1) return ifThen(mask, store(std::move(buffer), std::move(indices), std::move(value)));
  }
  return std::make_shared<Store>(std::move(buffer), std::move(indices), std::move(value), std::move(mask));
}

Stmt forLoop(VarRef var, Expr min, Expr extent, LoopKind kind, Stmt body) {
  LOCUTION_CHECK(min->type == (Type{DType::I64, 1}) && extent->type == min->type && var->type == min->type)
      << "loop bounds are int64";
  LOCUTION_CHECK(body) << "a loop needs a body";
  return std::make_shared<For>(std::move(var), std::move(min), std::move(extent), kind, std::move(body));
}

Stmt block(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (!s) continue;
    if (auto* b = as<Block>(s)) {
      // Built by `block`, so flat already unless made by hand.
      for (const Stmt& inner : b->stmts) {
        Stmt f = as<Block>(inner) ? block({inner}) : inner;
        if (auto* fb = as<Block>(f))
          flat.insert(flat.end(), fb->stmts.begin(), fb->stmts.end());
        else
          flat.push_back(std::move(f));
      }
    } else {
      flat.push_back(std::move(s));
    }
  }
  if (flat.size() == 1) return flat[0];
  return std::make_shared<Block>(std::move(flat));
}

Stmt ifThen(Expr condition, Stmt then, Stmt otherwise) {
  LOCUTION_CHECK(condition->type == (Type{DType::Bool, 1})) << "the condition of `if` is a scalar bool";
  if (isTrue(condition)) return then;
  if (isFalse(condition)) return otherwise ? otherwise : block({});
  return std::make_shared<IfThen>(std::move(condition), std::move(then), std::move(otherwise));
}

Stmt allocate(BufferRef buffer, Stmt body) {
  LOCUTION_CHECK(buffer->scope != Scope::Global) << "only stack and register buffers are allocated";
  return std::make_shared<Allocate>(std::move(buffer), std::move(body));
}

Stmt letStmt(VarRef var, Expr value, Stmt body) {
  LOCUTION_CHECK(var->type == value->type) << "let " << var->name << " of another type";
  return std::make_shared<LetStmt>(std::move(var), std::move(value), std::move(body));
}

BinaryOp combinerOp(Combiner combiner) {
  switch (combiner) {
    case Combiner::Sum:
      return BinaryOp::Add;
    case Combiner::Product:
      return BinaryOp::Mul;
    case Combiner::Max:
      return BinaryOp::Max;
    case Combiner::Min:
      return BinaryOp::Min;
    case Combiner::And:
      return BinaryOp::And;
    case Combiner::Or:
      return BinaryOp::Or;
    case Combiner::None:
      break;
  }
  LOCUTION_CHECK(false) << "no operator combines nothing";
  return BinaryOp::Add;
}

Expr identity(Combiner combiner, DType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (combiner) {
    case Combiner::None:
    case Combiner::Sum:
      return constant(type, 0);
    case Combiner::Product:
      return constant(type, 1);
    case Combiner::Max:
      return isFloat(type) ? floatImm(type, -kInfinity) : intImm(type, lowestInt(type));
    case Combiner::Min:
      return isFloat(type) ? floatImm(type, kInfinity) : intImm(type, highestInt(type));
    case Combiner::And:
      return intImm(type, -1);
    case Combiner::Or:
      return intImm(type, 0);
  }
  return nullptr;
}

}  // namespace locution::loop
