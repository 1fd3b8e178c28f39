#include "loop/strided_copy.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "loop/passes.h"

namespace locution::loop {

namespace {

// Units in a tile: 16 x 16 elements of 4 bytes are 16 cache lines on either side.
constexpr int64_t kTile = 16;

/// e = base + sum of factors[a] * axes[a]; false when it is not linear.
bool linearIn(Expr e, const std::vector<Axis>& axes, const Ranges& ranges, int64_t* base,
              std::vector<int64_t>* factors) {
  for (const Axis& a : axes) {
    Expr rest;
    int64_t factor = 0;
    if (!splitAffine(e, a.var.get(), &rest, &factor, ranges)) return false;
    factors->push_back(factor);
    e = rest;
  }
  return isConstInt(e, base);
}

bool addGuards(const Expr& condition, const std::vector<Axis>& axes, const Ranges& ranges,
               std::vector<StridedCopy::Guard>* out) {
  const auto* b = as<Binary>(condition);
  if (!b) return false;
  if (b->op == BinaryOp::And) return addGuards(b->a, axes, ranges, out) && addGuards(b->b, axes, ranges, out);
  if (b->op != BinaryOp::Lt && b->op != BinaryOp::Le) return false;
  if (!(b->a->type == Type{DType::I64, 1})) return false;
  StridedCopy::Guard g;
  if (!linearIn(b->a - b->b, axes, ranges, &g.base, &g.factors)) return false;
  if (b->op == BinaryOp::Le) --g.base;
  out->push_back(std::move(g));
  return true;
}

bool isZero(const Expr& e) {
  int64_t i = 1;
  if (isConstInt(e, &i)) return i == 0;
  const auto* f = as<FloatImm>(e);
  return f && f->value == 0 && !std::signbit(f->value);
}

class Copier {
 public:
  Copier(const StridedCopy& copy, const std::byte* in, std::byte* out, int64_t elementBytes)
      : copy_(copy), in_(in), out_(out), elementBytes_(elementBytes), at_(copy.axes.size(), 0) {
    std::vector<bool> used(copy_.axes.size(), false);
    // The innermost axis, where both sides are contiguous, moves as one.
    for (size_t a = 0; a < copy_.axes.size(); ++a)
      if (copy_.axes[a].to == 1 && copy_.axes[a].from == 1 && isUnguarded(a)) {
        unit_ = copy_.axes[a].extent;
        used[a] = true;
        break;
      }
    inner_ = pick(used, [](const StridedCopy::Axis& x) { return x.to; });
    if (inner_ >= 0) used[static_cast<size_t>(inner_)] = true;
    other_ = pick(used, [](const StridedCopy::Axis& x) { return x.from == 0 ? INT64_MAX : std::abs(x.from); });
    if (other_ >= 0) used[static_cast<size_t>(other_)] = true;
    for (size_t a = 0; a < copy_.axes.size(); ++a)
      if (!used[a]) outer_.push_back(a);
    std::stable_sort(outer_.begin(), outer_.end(),
                     [&](size_t x, size_t y) { return copy_.axes[x].to > copy_.axes[y].to; });
  }

  void run() {
    for (const StridedCopy::Axis& a : copy_.axes)
      if (a.extent == 0) return;
    walk(0, copy_.base, 0);
  }

 private:
  bool isUnguarded(size_t a) const {
    return std::all_of(copy_.guards.begin(), copy_.guards.end(),
                       [&](const StridedCopy::Guard& g) { return g.factors[a] == 0; });
  }
  template <typename Stride>
  int pick(const std::vector<bool>& used, Stride stride) const {
    int best = -1;
    for (size_t a = 0; a < copy_.axes.size(); ++a)
      if (!used[a] && (best < 0 || stride(copy_.axes[a]) < stride(copy_.axes[static_cast<size_t>(best)])))
        best = static_cast<int>(a);
    return best;
  }

  void walk(size_t depth, int64_t from, int64_t to) {
    if (depth < outer_.size()) {
      const size_t a = outer_[depth];
      for (at_[a] = 0; at_[a] < copy_.axes[a].extent; ++at_[a])
        walk(depth + 1, from + at_[a] * copy_.axes[a].from, to + at_[a] * copy_.axes[a].to);
      at_[a] = 0;
      return;
    }
    const StridedCopy::Axis none{1, 0, 0};
    const StridedCopy::Axis &inner = inner_ < 0 ? none : copy_.axes[static_cast<size_t>(inner_)],
                            &other = other_ < 0 ? none : copy_.axes[static_cast<size_t>(other_)];
    for (int64_t o = 0; o < other.extent; o += kTile)
      for (int64_t i = 0; i < inner.extent; i += kTile)
        tile(i, std::min(i + kTile, inner.extent), o, std::min(o + kTile, other.extent), from, to, inner, other);
  }

  void tile(int64_t i0, int64_t i1, int64_t o0, int64_t o1, int64_t from, int64_t to, const StridedCopy::Axis& inner,
            const StridedCopy::Axis& other) {
    bool all = true;
    for (const StridedCopy::Guard& g : copy_.guards) {
      int64_t low = g.base, high = g.base;
      for (size_t a = 0; a < at_.size(); ++a)
        if (static_cast<int>(a) != inner_ && static_cast<int>(a) != other_) {
          low += g.factors[a] * at_[a];
          high += g.factors[a] * at_[a];
        }
      auto span = [&](int axis, int64_t begin, int64_t end) {
        const int64_t f = axis < 0 ? 0 : g.factors[static_cast<size_t>(axis)];
        low += f * (f > 0 ? begin : end - 1);
        high += f * (f > 0 ? end - 1 : begin);
      };
      span(inner_, i0, i1);
      span(other_, o0, o1);
      if (low >= 0) return;  // all outside
      all = all && high < 0;
    }
    if (!all) {
      for (int64_t o = o0; o < o1; ++o)
        for (int64_t i = i0; i < i1; ++i)
          if (isInside(i, o)) copyUnits(i, i + 1, from + o * other.from, to + o * other.to, inner);
      return;
    }
    for (int64_t o = o0; o < o1; ++o) copyUnits(i0, i1, from + o * other.from, to + o * other.to, inner);
  }

  bool isInside(int64_t i, int64_t o) {
    for (const StridedCopy::Guard& g : copy_.guards) {
      int64_t value = g.base;
      for (size_t a = 0; a < at_.size(); ++a) {
        const int64_t x = static_cast<int>(a) == inner_ ? i : static_cast<int>(a) == other_ ? o : at_[a];
        value += g.factors[a] * x;
      }
      if (value >= 0) return false;
    }
    return true;
  }

  template <typename T>
  void copyElements(int64_t i0, int64_t i1, int64_t from, int64_t to, const StridedCopy::Axis& inner) {
    const T* source = reinterpret_cast<const T*>(in_) + from;
    T* target = reinterpret_cast<T*>(out_) + to;
    for (int64_t i = i0; i < i1; ++i) target[i * inner.to] = source[i * inner.from];
  }
  void copyUnits(int64_t i0, int64_t i1, int64_t from, int64_t to, const StridedCopy::Axis& inner) {
    if (unit_ == 1 && elementBytes_ == 4) return copyElements<uint32_t>(i0, i1, from, to, inner);
    if (unit_ == 1 && elementBytes_ == 1) return copyElements<uint8_t>(i0, i1, from, to, inner);
    if (unit_ == 1 && elementBytes_ == 2) return copyElements<uint16_t>(i0, i1, from, to, inner);
    if (unit_ == 1 && elementBytes_ == 8) return copyElements<uint64_t>(i0, i1, from, to, inner);
    for (int64_t i = i0; i < i1; ++i)
      std::memcpy(out_ + (to + i * inner.to) * elementBytes_, in_ + (from + i * inner.from) * elementBytes_,
                  static_cast<size_t>(unit_ * elementBytes_));
  }

  const StridedCopy& copy_;
  const std::byte* in_;
  std::byte* out_;
  int64_t elementBytes_, unit_ = 1;
  int inner_ = -1, other_ = -1;  ///< axes of a tile: the output's fastest, and the input's
  std::vector<size_t> outer_;
  std::vector<int64_t> at_;
};

}  // namespace

std::optional<StridedCopy> asStridedCopy(const Computation& c) {
  if (c.raw || c.stages.size() != 1 || c.inputs.size() != 1 || c.outputs.size() != 1) return std::nullopt;
  const Stage& s = c.stages[0];
  const Buffer &in = *c.inputs[0], &out = *c.outputs[0];
  if (s.out != c.outputs[0] || s.combiner != Combiner::None || s.scan || s.epilogue || !s.reduce.empty())
    return std::nullopt;
  const DType dtype = in.element.dtype;
  if (out.element.dtype != dtype || in.element.lanes != 1 || dtypeBits(dtype) % 8 != 0 || dtype == DType::String)
    return std::nullopt;
  StridedCopy copy;
  Ranges ranges;
  for (const Axis& a : s.axes) ranges[a.var.get()] = {0, a.extent - 1};
  Expr body = s.body;
  while (const auto* select = as<Select>(body)) {
    if (!isZero(select->no) || !addGuards(select->condition, s.axes, ranges, &copy.guards)) return std::nullopt;
    body = select->yes;
  }
  const auto* load = as<Load>(body);
  if (!load || load->mask || load->buffer != c.inputs[0]) return std::nullopt;
  const std::vector<int64_t> inDims = extents(in), outDims = extents(out);
  std::vector<int64_t> factors(s.axes.size(), 0);
  int64_t stride = 1;
  for (size_t d = inDims.size(); d-- > 0; stride *= inDims[d]) {
    std::vector<int64_t> here;
    int64_t base = 0;
    if (!linearIn(load->indices[d], s.axes, ranges, &base, &here)) return std::nullopt;
    copy.base += base * stride;
    for (size_t a = 0; a < here.size(); ++a) factors[a] += here[a] * stride;
  }
  stride = 1;
  copy.axes.resize(s.axes.size());
  for (size_t a = s.axes.size(); a-- > 0; stride *= outDims[a]) copy.axes[a] = {s.axes[a].extent, stride, factors[a]};
  return copy;
}

void runStridedCopy(const StridedCopy& copy, const Tensor& in, Tensor* out) {
  Copier(copy, in.raw(), out->raw(), dtypeBits(out->dtype()) / 8).run();
}

}  // namespace locution::loop
