#include "schedule/dot.h"

#include <array>

#include "loop/passes.h"
#include "support/check.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

constexpr int64_t kGroup = 4;

const Expr& valueOf(const Expr& side) {
  const auto* c = as<Cast>(side);
  return c ? c->value : side;
}

Expr joined(const Expr& a, const Expr& b) { return call("join", {a, b}); }
/// Four bytes as one int32.
Expr word(const std::array<Expr, kGroup>& parts) {
  return joined(joined(parts[0], parts[1]), joined(parts[2], parts[3]));
}

Expr num(int64_t bits) { return intImm(DType::I32, static_cast<int32_t>(static_cast<uint32_t>(bits))); }

/// Bytes 0 and 2 (1 and 3 where `odd`) of a word as two int16. Signed bytes: of t = (byte ^ 0x80) in 0..255 the value is t - 0x80, which
/// is taken in each half without a borrow from the other.
Expr halves(const Expr& bytes, bool isSigned, bool odd) {
  Expr x = odd ? binary(BinaryOp::Shr, bytes, num(8)) : bytes;
  x = binary(BinaryOp::And, x, num(0x00ff00ff));
  if (!isSigned) return x;
  x = binary(BinaryOp::Xor, x, num(0x00800080)) + num(0x7f807f80);
  return binary(BinaryOp::Xor, x, num(0x80008000));
}

class Packer : public Mutator {
 public:
  explicit Packer(const Dot& dot) : dot_(dot) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return e; }
  Stmt mutate(const Stmt& s) override {
    const auto* n = as<For>(s);
    int64_t extent = 0;
    if (n && n->var->name == dot_.loop && isConstInt(n->extent, &extent) && extent == kGroup) {
      var_ = n->var.get();
      // Pair after pair: the second one's operands need no register before the first is done.
      std::vector<Stmt> steps;
      for (pair_ = 0; pair_ < (dot_.isInOrder ? 2 : 1); ++pair_) steps.push_back(mutate(n->body));
      var_ = nullptr;
      return block(std::move(steps));
    }
    const auto* st = as<Store>(s);
    return st && var_ ? packed(*st) : mutateChildren(s);
  }

 private:
  Stmt packed(const Store& s) const {
    const auto* sum = as<Binary>(s.value);
    LOCUTION_CHECK(sum && sum->op == BinaryOp::Add);
    // Iterations beyond a tail add nothing.
    const auto* guard = as<Select>(sum->b);
    const auto* product = as<Binary>(guard ? guard->yes : sum->b);
    LOCUTION_CHECK(product && product->op == BinaryOp::Mul);
    const Expr &wide = valueOf(dot_.operand == 0 ? product->a : product->b),
               &bytes = valueOf(dot_.operand == 0 ? product->b : product->a);
    auto each = [&](const Expr& e) {
      std::array<Expr, kGroup> parts;
      for (int64_t k = 0; k < kGroup; ++k) parts[static_cast<size_t>(k)] = substitute(e, {{var_, index(k)}});
      return parts;
    };
    const std::array<Expr, kGroup> parts = each(bytes);
    Expr value = sum->a;
    if (dot_.isWidened) {
      std::array<Expr, kGroup> w = each(wide);
      for (Expr& e : w) e = cast(DType::I16, e);
      if (dot_.isInOrder) {
        const auto k = static_cast<size_t>(2 * pair_);
        value = call("madd16", {value, joined(parts[k], parts[k + 1]), joined(w[k], w[k + 1])});
        if (guard) value = select(guard->condition, value, sum->a);
        return store(s.buffer, s.indices, value, s.mask);
      }
      const Expr x = word(parts);
      const bool isSigned = isSignedInt(bytes->type.dtype);
      value = call("madd16", {value, halves(x, isSigned, false), joined(w[0], w[2])});
      value = call("madd16", {value, halves(x, isSigned, true), joined(w[1], w[3])});
    } else {
      value = call("dot4", {value, word(parts), word(each(wide))});
    }
    if (guard) value = select(guard->condition, value, sum->a);
    return store(s.buffer, s.indices, value, s.mask);
  }

  const Dot& dot_;
  const Var* var_ = nullptr;
  int64_t pair_ = 0;
};

}  // namespace

bool isInOrder(const Stage& stage, int64_t operand) {
  const auto* product = as<Binary>(stage.body);
  return valueOf(operand == 0 ? product->b : product->a)->type.dtype == DType::I16;
}

bool mayDot(const Stage& stage, const Dot& dot) {
  const auto* product = as<Binary>(stage.body);
  if (stage.combiner != Combiner::Sum || !product || product->op != BinaryOp::Mul || dot.operand < 0 ||
      dot.operand > 1 || stage.body->type != Type{DType::I32, 1})
    return false;
  for (int64_t k : {0, 1}) {
    const auto* c = as<Cast>(k == 0 ? product->a : product->b);
    if (!c) return false;
    const auto* guarded = as<Select>(c->value);
    const DType type = c->value->type.dtype;
    const bool isByte = isInteger(type) && dtypeBits(type) == 8;
    // What is widened may be so already, and so may be the other.
    if (!isByte && !(dot.isWidened && type == DType::I16)) return false;
    if (!as<Load>(guarded ? guarded->yes : c->value)) return false;
  }
  const Expr &wide = dot.operand == 0 ? product->a : product->b, &bytes = dot.operand == 0 ? product->b : product->a;
  return dot.isWidened || (valueOf(wide)->type.dtype == DType::I8 && valueOf(bytes)->type.dtype == DType::U8);
}

Stmt packProducts(const Stmt& s, const Dot& dot) { return Packer(dot).mutate(s); }

}  // namespace locution::schedule
