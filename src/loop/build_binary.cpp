// The maker of binary operators: constants fold by the scalar semantics, vectors of index arithmetic stay ramps and broadcasts,
// and identities that hold for every value (also NaN, -0 and wrapped integers) are applied.
#include <algorithm>
#include <cmath>

#include "loop/build.h"
#include "loop/passes.h"
#include "loop/scalar.h"
#include "support/check.h"

namespace locution::loop {
namespace {

bool scalarWord(const Expr& e, Word* out) {
  if (auto* i = as<IntImm>(e)) return *out = wordOf(i->value), true;
  if (auto* f = as<FloatImm>(e)) return *out = wordOf(f->value), true;
  return false;
}

Expr make(BinaryOp op, Expr a, Expr b) {
  Type type = isComparison(op) ? Type{DType::Bool, a->type.lanes} : a->type;
  return std::make_shared<Binary>(op, type, std::move(a), std::move(b));
}

// Integers (and bool): `b` is the constant `c`, with as many lanes as `a`. Null when no identity applies.
Expr foldIntRight(BinaryOp op, const Expr& a, const Expr& b, int64_t c) {
  DType type = a->type.dtype;
  int lanes = a->type.lanes;
  auto zero = [&] { return broadcast(intImm(type, 0), lanes); };
  switch (op) {
    case BinaryOp::Add:
    case BinaryOp::Sub:
    case BinaryOp::Xor:
      if (c == 0) return a;
      break;
    case BinaryOp::Shl:
    case BinaryOp::Shr:
      if (c == 0) return a;
      break;
    case BinaryOp::Or:
      if (c == 0) return a;
      if (c == wrapInt(type, -1)) return b;
      break;
    case BinaryOp::And:
      if (c == 0) return b;
      if (c == wrapInt(type, -1)) return a;
      break;
    case BinaryOp::Mul:
      if (c == 0) return b;
      if (c == 1) return a;
      break;
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
      if (c == 1) return a;
      if (c == 0) return b;
      break;
    case BinaryOp::Mod:
    case BinaryOp::FloorMod:
      if (c == 1 || c == 0) return zero();
      break;
    case BinaryOp::Eq:
      if (type == DType::Bool) return c ? a : logicalNot(a);
      break;
    case BinaryOp::Ne:
      if (type == DType::Bool) return c ? logicalNot(a) : a;
      break;
    default:
      break;
  }
  auto* inner = as<Binary>(a);
  int64_t innerConstant = 0;
  bool innerRight = inner && isConstInt(inner->b, &innerConstant);
  if (op == BinaryOp::Add || op == BinaryOp::Sub) {
    // (x + c1) - c2 -> x + (c1 - c2); signed constants stay positive: x + -1 is written x - 1.
    auto negated = [](int64_t v) { return static_cast<int64_t>(-static_cast<uint64_t>(v)); };
    int64_t sum = op == BinaryOp::Add ? c : negated(c);
    if (innerRight && (inner->op == BinaryOp::Add || inner->op == BinaryOp::Sub)) {
      auto total = static_cast<uint64_t>(sum) +
                   static_cast<uint64_t>(inner->op == BinaryOp::Add ? innerConstant : negated(innerConstant));
      return binary(BinaryOp::Add, inner->a, broadcast(intImm(type, static_cast<int64_t>(total)), lanes));
    }
    int64_t wrapped = wrapInt(type, sum);
    bool flip = isSignedInt(type) && wrapped < 0 && wrapped != lowestInt(type);
    BinaryOp wanted = flip ? BinaryOp::Sub : BinaryOp::Add;
    return wanted == op ? nullptr : make(wanted, a, broadcast(intImm(type, flip ? -wrapped : wrapped), lanes));
  }
  // (x * c1) * c2 -> x * (c1 * c2), and the same for the other associative operators.
  bool associative = op == BinaryOp::Mul || op == BinaryOp::Min || op == BinaryOp::Max || op == BinaryOp::And ||
                     op == BinaryOp::Or || op == BinaryOp::Xor;
  if (associative && innerRight && inner->op == op) return binary(op, inner->a, binary(op, inner->b, b));
  return nullptr;
}

Expr foldFloatRight(BinaryOp op, const Expr& a, double c) {
  bool isOne = c == 1, isZero = c == 0, isNegativeZero = isZero && std::signbit(c);
  if ((op == BinaryOp::Mul || op == BinaryOp::Div) && isOne) return a;
  // x + 0 turns -0 into 0, x - 0 and x + -0 keep every value.
  if (op == BinaryOp::Add && isNegativeZero) return a;
  if (op == BinaryOp::Sub && isZero && !isNegativeZero) return a;
  return nullptr;
}

Expr foldSame(BinaryOp op, const Expr& a) {
  auto boolean = [&](bool v) { return broadcast(intImm(DType::Bool, v), a->type.lanes); };
  switch (op) {
    case BinaryOp::Min:
    case BinaryOp::Max:
      return a;
    case BinaryOp::And:
    case BinaryOp::Or:
      return a;
    default:
      break;
  }
  if (isFloat(a->type.dtype)) return nullptr;
  switch (op) {
    case BinaryOp::Sub:
    case BinaryOp::Xor:
      return broadcast(intImm(a->type.dtype, 0), a->type.lanes);
    case BinaryOp::Eq:
    case BinaryOp::Le:
      return boolean(true);
    case BinaryOp::Ne:
    case BinaryOp::Lt:
      return boolean(false);
    default:
      return nullptr;
  }
}

// A Ramp, or a Broadcast seen as a ramp of stride null.
struct Progression {
  Expr base, stride;
};
bool progressionOf(const Expr& e, Progression* out) {
  if (auto* r = as<Ramp>(e)) return *out = {r->base, r->stride}, true;
  if (auto* b = as<Broadcast>(e)) return *out = {b->value, nullptr}, true;
  return false;
}

Expr foldVectors(BinaryOp op, const Expr& a, const Expr& b) {
  int lanes = a->type.lanes;
  Progression x, y;
  if (!progressionOf(a, &x) || !progressionOf(b, &y)) return nullptr;
  if (!x.stride && !y.stride) return broadcast(binary(op, x.base, y.base), lanes);
  if (op == BinaryOp::Add || op == BinaryOp::Sub) {
    Expr zero = intImm(a->type.dtype, 0);
    return ramp(binary(op, x.base, y.base), binary(op, x.stride ? x.stride : zero, y.stride ? y.stride : zero), lanes);
  }
  if (op == BinaryOp::Mul && !y.stride) return ramp(x.base * y.base, x.stride * y.base, lanes);
  if (op == BinaryOp::Mul && !x.stride) return ramp(x.base * y.base, x.base * y.stride, lanes);
  return nullptr;
}

}  // namespace

Expr binary(BinaryOp op, Expr a, Expr b) {
  LOCUTION_CHECK(a && b && a->type.dtype == b->type.dtype) << "operands of " << (a ? dtypeName(a->type.dtype) : "null")
                                                           << " and " << (b ? dtypeName(b->type.dtype) : "null");
  int lanes = std::max(a->type.lanes, b->type.lanes);
  a = broadcast(std::move(a), lanes);
  b = broadcast(std::move(b), lanes);
  DType type = a->type.dtype;
  bool bits =
      op == BinaryOp::And || op == BinaryOp::Or || op == BinaryOp::Xor || op == BinaryOp::Shl || op == BinaryOp::Shr;
  LOCUTION_CHECK(!(bits && isFloat(type))) << "bitwise operator on floats";

  Word x, y;
  bool aConst = scalarWord(a, &x), bConst = scalarWord(b, &y);
  if (aConst && bConst) {
    Word r = evalBinary(op, type, x, y);
    if (isComparison(op)) return intImm(DType::Bool, r.i);
    return isFloat(type) ? floatImm(type, r.f) : intImm(type, r.i);
  }
  if (lanes > 1)
    if (Expr folded = foldVectors(op, a, b)) return folded;
  if (!isFloat(type)) {
    // Constants on the right of commutative operators; for floats too the value would be equal, but texts stay as written.
    if (isCommutative(op) && isConstInt(a) && !isConstInt(b)) std::swap(a, b);
    int64_t c = 0;
    if (isConstInt(b, &c))
      if (Expr folded = foldIntRight(op, a, b, c)) return folded;
  } else {
    auto rightConstant = [](const Expr& e, double* out) {
      auto* f = as<FloatImm>(as<Broadcast>(e) ? as<Broadcast>(e)->value : e);
      if (f) *out = f->value;
      return f != nullptr;
    };
    double c = 0;
    if (rightConstant(b, &c))
      if (Expr folded = foldFloatRight(op, a, c)) return folded;
    if (isCommutative(op) && rightConstant(a, &c))
      if (Expr folded = foldFloatRight(op, b, c)) return folded;
  }
  if (a == b)
    if (Expr folded = foldSame(op, a)) return folded;
  return make(op, std::move(a), std::move(b));
}

}  // namespace locution::loop
