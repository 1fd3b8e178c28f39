#include "tune/operands.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "loop/build.h"
#include "loop/passes.h"
#include "support/strings.h"

namespace locution::tune {

using namespace loop;  // NOLINT: reads loop IR

namespace {

// One step of a counter-based generator (SplitMix64): element i depends on the seed and i alone.
uint64_t bitsAt(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// The sum of four uniform numbers, scaled to unit variance: near enough to normal, and a nanosecond each.
float normalOf(uint64_t bits) {
  int sum = static_cast<int>(bits & 0xFFFF) + static_cast<int>(bits >> 16 & 0xFFFF) +
            static_cast<int>(bits >> 32 & 0xFFFF) + static_cast<int>(bits >> 48);
  constexpr float kScale = 1.0F / 37837.2F;  // 65536 * sqrt(4 / 12)
  return static_cast<float>(sum - 2 * 65535) * kScale;
}

// Inclusive bounds of an integer expression; loads of the inputs in `ranges` are within theirs.
class Bounds {
 public:
  Bounds(Ranges variables, const std::map<const Buffer*, int64_t>& highest)
      : variables_(std::move(variables)), highest_(highest) {}

  std::optional<Range> of(const Expr& e) {
    if (const auto* imm = as<IntImm>(e)) return Range{imm->value, imm->value};
    if (const auto* v = as<Var>(e)) {
      auto it = variables_.find(v);
      return it == variables_.end() ? std::nullopt : std::optional(it->second);
    }
    if (const auto* c = as<Cast>(e)) return isFloat(c->value->type.dtype) ? std::nullopt : of(c->value);
    if (const auto* l = as<Load>(e)) {
      auto it = highest_.find(l->buffer.get());
      return it == highest_.end() ? std::nullopt : std::optional(Range{0, it->second});
    }
    if (const auto* s = as<Select>(e)) {
      std::optional<bool> condition = decide(s->condition);
      if (condition) return of(*condition ? s->yes : s->no);
      auto yes = of(s->yes), no = of(s->no);
      if (!yes || !no) return std::nullopt;
      return Range{std::min(yes->min, no->min), std::max(yes->max, no->max)};
    }
    if (const auto* l = as<LetExpr>(e)) {
      if (auto value = of(l->value)) variables_[l->var.get()] = *value;
      return of(l->body);
    }
    if (const auto* b = as<Binary>(e)) return ofBinary(*b);
    return std::nullopt;
  }

 private:
  std::optional<Range> ofBinary(const Binary& e) {
    auto a = of(e.a), b = of(e.b);
    if (!a || !b) return std::nullopt;
    auto floorDivide = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0); };
    switch (e.op) {
      case BinaryOp::Add:
        return Range{a->min + b->min, a->max + b->max};
      case BinaryOp::Sub:
        return Range{a->min - b->max, a->max - b->min};
      case BinaryOp::Mul: {
        auto corners = {a->min * b->min, a->min * b->max, a->max * b->min, a->max * b->max};
        return Range{std::min(corners), std::max(corners)};
      }
      case BinaryOp::Min:
        return Range{std::min(a->min, b->min), std::min(a->max, b->max)};
      case BinaryOp::Max:
        return Range{std::max(a->min, b->min), std::max(a->max, b->max)};
      case BinaryOp::FloorDiv:
        if (b->min != b->max || b->min <= 0) return std::nullopt;
        return Range{floorDivide(a->min, b->min), floorDivide(a->max, b->min)};
      case BinaryOp::FloorMod:
        if (b->min != b->max || b->min <= 0) return std::nullopt;
        if (a->min >= 0 && a->max < b->min) return a;
        return Range{0, b->min - 1};
      default:
        return std::nullopt;
    }
  }
  std::optional<bool> decide(const Expr& e) {
    const auto* c = as<Binary>(e);
    if (!c) return std::nullopt;
    auto a = of(c->a), b = of(c->b);
    if (!a || !b) return std::nullopt;
    if (c->op == BinaryOp::Lt) {
      if (a->max < b->min) return true;
      if (a->min >= b->max) return false;
    }
    if (c->op == BinaryOp::Le) {
      if (a->max <= b->min) return true;
      if (a->min > b->max) return false;
    }
    return std::nullopt;
  }

  Ranges variables_;
  const std::map<const Buffer*, int64_t>& highest_;
};

// An index that depends on the contents of inputs.
struct IndexUse {
  Expr index;
  int64_t extent = 0;
  std::string indexed;
  std::set<const Buffer*> by;
};

class Indices {
 public:
  explicit Indices(const Computation& c) {
    for (const BufferRef& b : c.inputs)
      if (isInteger(b->element.dtype)) integers_.insert(b.get());
    for (const Stage& s : c.stages) {
      for (const Axis& a : s.axes) axes_[a.var.get()] = {0, std::max<int64_t>(a.extent, 1) - 1};
      for (const Axis& a : s.reduce) axes_[a.var.get()] = {0, std::max<int64_t>(a.extent, 1) - 1};
      look(s.body);
      if (s.epilogue) look(s.epilogue);
    }
  }

  /// The highest value of each input that indexes something.
  Result<std::map<const Buffer*, int64_t>> highest() const {
    std::map<const Buffer*, int64_t> out;
    for (const IndexUse& u : uses_)
      for (const Buffer* b : u.by) {
        auto [it, added] = out.emplace(b, u.extent - 1);
        if (!added) it->second = std::min(it->second, u.extent - 1);
      }
    for (const IndexUse& u : uses_)
      while (!isWithin(u, out)) {
        bool shrunk = false;
        for (const Buffer* b : u.by) {
          shrunk = shrunk || out.at(b) > 0;
          out.at(b) /= 2;
        }
        if (!shrunk)
          return Status::error("no values of '" + (*u.by.begin())->name + "' are known to be valid indices of '" +
                               u.indexed + "'");
      }
    return out;
  }

 private:
  void look(const Expr& e) {
    visit(e, [&](const Expr& x) {
      const auto* l = as<Load>(x);
      if (!l) return true;
      std::vector<int64_t> dims = extents(*l->buffer);
      for (size_t d = 0; d < l->indices.size(); ++d) {
        IndexUse use{l->indices[d], dims[d], l->buffer->name, {}};
        visit(l->indices[d], [&](const Expr& i) {
          const auto* inner = as<Load>(i);
          if (inner && integers_.count(inner->buffer.get()) > 0) use.by.insert(inner->buffer.get());
          return true;
        });
        if (!use.by.empty()) uses_.push_back(std::move(use));
      }
      return true;
    });
  }
  bool isWithin(const IndexUse& u, const std::map<const Buffer*, int64_t>& highest) const {
    auto range = Bounds(axes_, highest).of(u.index);
    return range && range->min >= 0 && range->max < u.extent;
  }

  std::set<const Buffer*> integers_;
  Ranges axes_;
  std::vector<IndexUse> uses_;
};

void fill(Tensor* t, uint64_t seed, Values values, std::optional<int64_t> highest) {
  const int64_t n = t->elements();
  const DType dtype = t->dtype();
  auto at = [&](int64_t i) { return bitsAt(seed, static_cast<uint64_t>(i)); };
  auto number = [&](int64_t i) {
    float x = normalOf(at(i));
    return values == Values::Positive ? std::fabs(x) + 0.1F : x;
  };
  if (dtype == DType::F32) {
    for (int64_t i = 0; i < n; ++i) t->data<float>()[i] = number(i);
  } else if (isFloat(dtype)) {
    for (int64_t i = 0; i < n; ++i) t->setElement(i, number(i));
  } else if (dtype == DType::Bool) {
    for (int64_t i = 0; i < n; ++i) t->setElementInt(i, static_cast<int64_t>(at(i) & 1));
  } else if (highest) {
    const auto count = static_cast<uint64_t>(*highest) + 1;
    for (int64_t i = 0; i < n; ++i) t->setElementInt(i, static_cast<int64_t>((at(i) >> 16) % count));
  } else if (isInteger(dtype) && dtypeBits(dtype) > 8) {
    constexpr int64_t kLargest = 1000;
    const bool isSigned = isSignedInt(dtype);
    for (int64_t i = 0; i < n; ++i) {
      auto value = static_cast<int64_t>((at(i) >> 16) % (kLargest + 1));
      t->setElementInt(i, isSigned && (at(i) & 1) != 0 && values == Values::AnySign ? -value : value);
    }
  } else {
    // Any bits are a number.
    for (size_t i = 0; i < t->bytes(); ++i) t->raw()[i] = static_cast<std::byte>(at(static_cast<int64_t>(i)) >> 24);
  }
}

}  // namespace

Result<std::vector<Tensor>> makeOperands(const Computation& kernel, uint64_t seed, Values values) {
  LOCUTION_ASSIGN_OR_RETURN(auto highest, Indices(kernel).highest());
  std::vector<Tensor> out;
  for (const BufferRef& b : kernel.inputs) {
    if (b->element.dtype == DType::String) return Status::error("input '" + b->name + "' is of strings");
    Tensor t(b->element.dtype, extents(*b));
    auto it = highest.find(b.get());
    fill(&t, bitsAt(seed, out.size()), values, it == highest.end() ? std::nullopt : std::optional(it->second));
    out.push_back(std::move(t));
  }
  return out;
}

}  // namespace locution::tune
