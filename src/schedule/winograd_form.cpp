#include <algorithm>
#include <limits>

#include "loop/passes.h"
#include "loop/scalar.h"
#include "schedule/stages.h"
#include "schedule/winograd.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

// e - a - b, if that is a constant.
std::optional<int64_t> constantGap(const Expr& e, const VarRef& a, const VarRef& b) {
  int64_t value = 0;
  if (!isConstInt(simplify(e - Expr(a) - Expr(b)), &value)) return std::nullopt;
  return value;
}

// The guard says nothing but that positions lie in the data.
bool isInRangeTest(const Expr& guard, const Stage& s, const std::vector<WinogradForm::Window>& windows) {
  std::vector<Expr> terms;
  conjuncts(guard, &terms);
  return std::all_of(terms.begin(), terms.end(), [&](const Expr& term) {
    const auto* c = as<Binary>(term);
    if (!c || (c->op != BinaryOp::Lt && c->op != BinaryOp::Le)) return false;
    int64_t bound = 0;
    const bool isLower = isConstInt(c->a, &bound);
    if (!isLower && !isConstInt(c->b, &bound)) return false;
    const Expr& e = isLower ? c->b : c->a;
    return std::any_of(windows.begin(), windows.end(), [&](const WinogradForm::Window& w) {
      if (!usesVar(e, s.axes[w.axis].var.get())) return false;
      auto gap = constantGap(e, s.axes[w.axis].var, s.reduce[w.tap].var);
      if (!gap) return false;
      // e = position - offset + gap
      int64_t first = bound + (isLower && c->op == BinaryOp::Lt ? 1 : 0);
      int64_t end = bound + (!isLower && c->op == BinaryOp::Le ? 1 : 0);
      return isLower ? first - *gap + w.offset == 0 : end - *gap + w.offset == w.inExtent;
    });
  });
}

const Expr& withoutCast(const Expr& e) {
  const auto* c = as<Cast>(e);
  return c ? c->value : e;
}

bool isByte(DType type) { return isInteger(type) && dtypeBits(type) == 8; }
int64_t largestByte(DType type) { return std::max(highestInt(type), -lowestInt(type)); }

// (acc << n) >> n wherever the epilogue reads its sum: that many bits say everything.
class LowBits : public Mutator {
 public:
  explicit LowBits(const Var* acc) : acc_(acc) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override {
    const auto* right = as<Binary>(e);
    const auto* left = right && right->op == BinaryOp::Shr ? as<Binary>(right->a) : nullptr;
    int64_t by = 0, back = 0;
    if (!left || left->op != BinaryOp::Shl || left->a.get() != acc_ || !isConstInt(left->b, &by) ||
        !isConstInt(right->b, &back) || by != back || by < 0 || by > 31)
      return Mutator::mutate(e);
    unused = std::min(unused, by);
    return intImm(DType::I32, 0);
  }
  int64_t unused = 32;

 private:
  const Var* acc_;
};

int64_t bitsOfSum(const Stage& s) {
  if (!s.epilogue) return 32;
  LowBits low(s.acc.get());
  const Expr rest = low.mutate(s.epilogue);
  return low.unused == 32 || usesVar(rest, s.acc.get()) ? 32 : 32 - low.unused;
}

}  // namespace

bool holdsSums(const WinogradForm& form, int64_t m) {
  if (!form.isInteger) return true;
  // The outputs' transform gives a sum times a power of two, and of 9 or 3, which has an inverse modulo 2^32.
  const int64_t taps = form.windows.size() == 2 ? 9 : 3, one = m == 2 ? 2 : 8;
  const int64_t scale = form.windows.size() == 2 ? one * one : one;
  if (form.sumBits < 32 && scale <= int64_t{1} << (32 - form.sumBits)) return true;
  return form.channels <= std::numeric_limits<int32_t>::max() / (form.largestProduct * taps * scale);
}

int64_t WinogradForm::tiles(int64_t m) const {
  int64_t n = batchExtent;
  for (const Window& w : windows) n *= tilesAlong(w, m);
  return n;
}

std::optional<WinogradForm> winogradForm(const Stage& s) {
  const auto* product = as<Binary>(s.body);
  if (s.combiner != Combiner::Sum || s.scan || !product || product->op != BinaryOp::Mul || s.axes.size() < 2 ||
      s.reduce.empty() || (s.body->type != Type{DType::F32, 1} && s.body->type != Type{DType::I32, 1}))
    return std::nullopt;
  WinogradForm form;
  form.isInteger = s.body->type.dtype == DType::I32;
  const size_t o = s.axes.size() - 1;
  const Var* output = s.axes[o].var.get();
  const Expr sides[2] = {form.isInteger ? withoutCast(product->a) : product->a,
                         form.isInteger ? withoutCast(product->b) : product->b};
  form.dataOperand = usesVar(sides[0], output) ? 1 : 0;
  const Expr& data = sides[form.dataOperand];
  const auto* guarded = as<Select>(data);
  const auto* x = as<Load>(guarded ? guarded->yes : data);
  const auto* w = as<Load>(sides[1 - form.dataOperand]);
  if (!x || !w || x->mask || usesVar(data, output)) return std::nullopt;
  if (form.isInteger) {
    if (!isByte(x->type.dtype) || !isByte(w->type.dtype)) return std::nullopt;
    form.sumBits = bitsOfSum(s);
    form.largestProduct = largestByte(x->type.dtype) * largestByte(w->type.dtype);
  }
  if (guarded) {
    const auto* zero = as<FloatImm>(guarded->no);
    if (form.isInteger ? !isConstInt(guarded->no) : !zero || zero->value != 0) return std::nullopt;
    form.padding = guarded->no;
  }
  std::vector<bool> axisSeen(s.axes.size(), false), tapSeen(s.reduce.size(), false);
  axisSeen[o] = true;
  for (size_t r = 0; r < s.reduce.size(); ++r)
    if (x->indices.back().get() == s.reduce[r].var.get()) {
      form.channelTap = r;
      form.channels = s.reduce[r].extent;
      tapSeen[r] = true;
    }
  // Integers are multiplied in pairs of channels.
  if (form.channels == 0 || (form.isInteger && form.channels % 2 != 0)) return std::nullopt;
  const std::vector<int64_t> dims = extents(*x->buffer);
  for (size_t d = 0; d + 1 < x->indices.size(); ++d) {
    const Expr& e = x->indices[d];
    if (isConstInt(e)) continue;
    bool found = false;
    for (size_t a = 0; a < o && !found; ++a) {
      if (axisSeen[a] || !usesVar(e, s.axes[a].var.get())) continue;
      if (e.get() == s.axes[a].var.get()) {
        axisSeen[a] = found = true;
        form.batch.push_back(a);
        form.batchExtent *= s.axes[a].extent;
        continue;
      }
      for (size_t r = 0; r < s.reduce.size() && !found; ++r) {
        if (tapSeen[r] || s.reduce[r].extent != 3) continue;
        auto gap = constantGap(e, s.axes[a].var, s.reduce[r].var);
        if (!gap) continue;
        form.windows.push_back({a, r, d, *gap, dims[d], s.axes[a].extent});
        axisSeen[a] = tapSeen[r] = found = true;
      }
    }
    if (!found) return std::nullopt;
  }
  // Axes and taps of one element may have been simplified away.
  for (size_t a = 0; a < o; ++a) {
    if (usesVar(sides[1 - form.dataOperand], s.axes[a].var.get())) return std::nullopt;
    if (!axisSeen[a] && s.axes[a].extent != 1) return std::nullopt;
    if (!axisSeen[a]) form.batch.push_back(a);
  }
  for (size_t r = 0; r < s.reduce.size(); ++r)
    if (!tapSeen[r] && s.reduce[r].extent != 1) return std::nullopt;
  if (form.windows.empty() || form.windows.size() > 2) return std::nullopt;
  if (guarded && !isInRangeTest(guarded->condition, s, form.windows)) return std::nullopt;
  form.outputs = s.axes[o].extent;
  return form;
}

}  // namespace locution::schedule
