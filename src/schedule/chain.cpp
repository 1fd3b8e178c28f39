#include "schedule/chain.h"

#include <algorithm>
#include <map>

#include "loop/passes.h"

namespace locution::schedule {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

/// What lies between the products must fit the second cache for at least this many rows at a time.
constexpr int64_t kLeastRows = 8;
constexpr int64_t kMaxStripBytes = 512 << 10;
/// What every strip reads again (all keys, all values) must stay in the last cache.
constexpr int64_t kMaxRereadElements = 1 << 20;

bool isOutput(const std::vector<BufferRef>& outputs, const BufferRef& b) {
  return std::find(outputs.begin(), outputs.end(), b) != outputs.end();
}

std::vector<const Load*> loadsOf(const Stage& s) {
  std::vector<const Load*> out;
  for (const Expr& e : {s.body, s.epilogue}) {
    if (!e) continue;
    visit(e, [&](const Expr& x) {
      if (const auto* l = as<Load>(x)) out.push_back(l);
      return true;
    });
  }
  return out;
}

/// The slots of one stage while its loads are looked at.
class Aligner {
 public:
  explicit Aligner(const Stage& s, size_t slots) : s_(s), at_(slots, kOpen), alive_(slots, true) {}

  /// A load of a stage whose slots are its axes `at`, of the given extents.
  void read(const Load& l, const std::vector<size_t>& at, const std::vector<Axis>& axes) {
    for (size_t j = 0; j < at_.size(); ++j) {
      const Expr& index = l.indices[at[j]];
      int64_t value = -1;
      if (axes[at[j]].extent == 1 && isConstInt(index, &value) && value == 0) continue;
      size_t own = 0;
      while (own < s_.axes.size() && s_.axes[own].var.get() != index.get()) ++own;
      if (own == s_.axes.size() || (at_[j] != kOpen && at_[j] != own)) {
        alive_[j] = false;
      } else {
        at_[j] = own;
      }
    }
  }

  /// Axes of one element, whose index was simplified away, stand for each other; then no axis may serve twice.
  void finish(const std::vector<Axis>& first) {
    for (size_t j = 0; j < at_.size(); ++j) {
      if (!alive_[j]) continue;
      if (at_[j] == kOpen)
        for (size_t i = 0; i < s_.axes.size() && at_[j] == kOpen; ++i)
          if (s_.axes[i].extent == 1 && std::find(at_.begin(), at_.end(), i) == at_.end()) at_[j] = i;
      alive_[j] = at_[j] != kOpen && s_.axes[at_[j]].extent == first[j].extent &&
                  std::count(at_.begin(), at_.end(), at_[j]) == 1;
    }
  }
  const std::vector<size_t>& at() const { return at_; }
  bool isAlive(size_t slot) const { return alive_[slot]; }

 private:
  static constexpr size_t kOpen = static_cast<size_t>(-1);
  const Stage& s_;
  std::vector<size_t> at_;
  std::vector<bool> alive_;
};

class Replace : public Mutator {
 public:
  Replace(Expr from, Expr to) : from_(std::move(from)), to_(std::move(to)) {}
  using Mutator::mutate;
  Expr mutate(const Expr& e) override { return sameExpr(e, from_) ? to_ : Mutator::mutate(e); }

 private:
  Expr from_, to_;
};

bool contains(const Expr& e, const Expr& part) {
  bool found = false;
  if (e)
    visit(e, [&](const Expr& x) {
      found = found || sameExpr(x, part);
      return !found;
    });
  return found;
}

/// The body of a reduction over the last axis of `points`, in terms of that stage's axes; null when the axes don't correspond.
Expr bodyAt(const Stage& reduction, const std::vector<Axis>& points) {
  if (reduction.reduce.size() != 1 || points.empty() || reduction.reduce[0].extent != points.back().extent)
    return nullptr;
  if (reduction.axes.size() != points.size() - 1 && reduction.axes.size() != points.size()) return nullptr;
  Substitution map;
  for (size_t i = 0; i < reduction.axes.size(); ++i) {
    const bool isKept = i + 1 == points.size();  // the reduced axis as one element
    if (reduction.axes[i].extent != (isKept ? 1 : points[i].extent)) return nullptr;
    map[reduction.axes[i].var.get()] = isKept ? index(0) : Expr(points[i].var);
  }
  map[reduction.reduce[0].var.get()] = points.back().var;
  return substitute(reduction.body, map);
}

}  // namespace

bool isProductSum(const Stage& s) {
  const auto* b = as<Binary>(s.body);
  return s.combiner == Combiner::Sum && b && b->op == BinaryOp::Mul && !s.reduce.empty();
}

std::optional<std::vector<std::vector<size_t>>> alignStages(const std::vector<Stage>& stages) {
  if (stages.empty()) return std::nullopt;
  std::map<const Buffer*, size_t> maker;
  std::vector<std::vector<size_t>> at;
  std::vector<bool> alive(stages[0].axes.size(), true);
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& s = stages[k];
    if (k == 0) {
      std::vector<size_t>& all = at.emplace_back();
      for (size_t j = 0; j < s.axes.size(); ++j) all.push_back(j);
    } else {
      Aligner aligner(s, alive.size());
      bool reads = false;
      for (const Load* l : loadsOf(s)) {
        auto it = maker.find(l->buffer.get());
        if (it == maker.end()) continue;
        reads = true;
        // A slot that died in the maker has no axis there.
        std::vector<size_t> from = at[it->second];
        for (size_t& axis : from)
          if (axis >= stages[it->second].axes.size()) axis = 0;
        aligner.read(*l, from, stages[it->second].axes);
      }
      if (!reads) return std::nullopt;
      aligner.finish(stages[0].axes);
      at.push_back(aligner.at());
      for (size_t j = 0; j < alive.size(); ++j) alive[j] = alive[j] && aligner.isAlive(j);
    }
    maker[s.out.get()] = k;
  }
  std::vector<std::vector<size_t>> out(stages.size());
  for (size_t k = 0; k < stages.size(); ++k)
    for (size_t j = 0; j < alive.size(); ++j)
      if (alive[j]) out[k].push_back(at[k][j]);
  if (out[0].empty()) return std::nullopt;
  return out;
}

/// Each output channel has a channel of its own to sum over (depthwise): no product of matrices.
static bool isDepthwise(const Stage& s) {
  const auto* product = as<Binary>(s.body);
  const Var* last = s.axes.empty() ? nullptr : s.axes.back().var.get();
  return product && last && usesVar(product->a, last) && usesVar(product->b, last);
}

size_t chainEnd(const Computation& c, size_t first) {
  if (!isProductSum(c.stages[first]) || isDepthwise(c.stages[first])) return first;
  size_t last = first + 1;
  while (last < c.stages.size() && !isProductSum(c.stages[last])) ++last;
  if (last == c.stages.size()) return first;
  std::vector<Stage> stages(c.stages.begin() + static_cast<long>(first),
                            c.stages.begin() + static_cast<long>(last) + 1);
  auto at = alignStages(stages);
  if (!at || isDepthwise(stages.back())) return first;
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& s = stages[k];
    if (s.scan) return first;
    int64_t own = 1, work = 1;
    for (size_t i = 0; i < s.axes.size(); ++i)
      if (std::find((*at)[k].begin(), (*at)[k].end(), i) == (*at)[k].end()) own *= s.axes[i].extent;
    for (const Axis& a : s.reduce) work *= a.extent;
    if (own * work > kMaxRereadElements) return first;
  }
  const int64_t rows = std::min(kLeastRows, stages[0].axes[(*at)[0].back()].extent);
  return stripRowBytes(stages, c.outputs, *at) * rows <= kMaxStripBytes ? last + 1 : first;
}

void gatherChains(std::vector<Stage>* stages) {
  for (size_t first = 0; first < stages->size(); ++first) {
    if (!isProductSum((*stages)[first])) continue;
    std::vector<const Buffer*> made{(*stages)[first].out.get()};
    std::vector<Stage> apart, chain{(*stages)[first]};
    bool found = false;
    for (size_t k = first + 1; k < stages->size() && !found; ++k) {
      const Stage& s = (*stages)[k];
      const bool depends = std::any_of(made.begin(), made.end(), [&](const Buffer* b) {
        return readsBuffer(s.body, b) || (s.epilogue && readsBuffer(s.epilogue, b));
      });
      (depends ? chain : apart).push_back(s);
      if (depends) made.push_back(s.out.get());
      found = depends && isProductSum(s);
    }
    if (!found) continue;
    auto out = std::copy(apart.begin(), apart.end(), stages->begin() + static_cast<long>(first));
    std::copy(chain.begin(), chain.end(), out);
    first += apart.size();
  }
}

void storeRepeated(std::vector<Stage>* stages, const std::vector<BufferRef>& outputs) {
  for (size_t r = 0; r < stages->size(); ++r) {
    const Stage reduction = (*stages)[r];
    if (reduction.combiner == Combiner::None || isOutput(outputs, reduction.out) || !as<Call>(reduction.body)) continue;
    for (size_t p = r + 1; p < stages->size(); ++p) {
      Stage& reader = (*stages)[p];
      if (reader.combiner != Combiner::None) continue;
      Expr repeated = bodyAt(reduction, reader.axes);
      if (!repeated || !contains(reader.body, repeated)) continue;
      std::vector<int64_t> dims;
      std::vector<Expr> at, readAt;
      Stage once;
      Substitution map;
      for (const Axis& a : reader.axes) {
        once.axes.push_back({makeVar(a.var->name), a.extent});
        map[a.var.get()] = once.axes.back().var;
        dims.push_back(a.extent);
        at.push_back(a.var);
      }
      once.out = makeBuffer(as<Call>(reduction.body)->name, repeated->type, dims);
      once.body = substitute(repeated, map);
      reader.body = Replace(repeated, load(once.out, at)).mutate(reader.body);
      for (const Axis& a : reduction.axes) readAt.push_back(a.var);
      readAt.resize(dims.size() - 1);
      readAt.push_back(reduction.reduce[0].var);
      (*stages)[r].body = load(once.out, readAt);
      stages->insert(stages->begin() + static_cast<long>(r), std::move(once));
      ++r;
      break;
    }
  }
}

std::optional<size_t> overwrites(const std::vector<Stage>& stages, const std::vector<BufferRef>& outputs, size_t k) {
  const Stage& s = stages[k];
  if (s.combiner != Combiner::None || s.epilogue || isOutput(outputs, s.out)) return std::nullopt;
  for (size_t p = 0; p < k; ++p) {
    const BufferRef& b = stages[p].out;
    if (isOutput(outputs, b) || !readsBuffer(s.body, b.get()) || b->element != s.out->element ||
        extents(*b) != extents(*s.out))
      continue;
    bool isFree = true;
    for (const Load* l : loadsOf(s))
      for (size_t i = 0; l->buffer == b && i < s.axes.size(); ++i) {
        int64_t value = -1;
        isFree = isFree && (l->indices[i].get() == s.axes[i].var.get() ||
                            (s.axes[i].extent == 1 && isConstInt(l->indices[i], &value) && value == 0));
      }
    for (size_t later = k + 1; later < stages.size(); ++later)
      for (const Load* l : loadsOf(stages[later])) isFree = isFree && l->buffer != b;
    if (isFree) return p;
  }
  return std::nullopt;
}

int64_t stripRowBytes(const std::vector<Stage>& stages, const std::vector<BufferRef>& outputs,
                      const std::vector<std::vector<size_t>>& at) {
  int64_t bytes = 0;
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& s = stages[k];
    if (isOutput(outputs, s.out) || overwrites(stages, outputs, k)) continue;
    int64_t own = 1;
    for (size_t i = 0; i < s.axes.size(); ++i)
      if (std::find(at[k].begin(), at[k].end(), i) == at[k].end()) own *= s.axes[i].extent;
    bytes += own * ((dtypeBits(s.out->element.dtype) + 7) / 8);
  }
  return bytes;
}

bool isChain(const Computation& kernel) {
  return !kernel.raw && kernel.stages.size() > 1 && isProductSum(kernel.stages.front()) &&
         isProductSum(kernel.stages.back());
}

}  // namespace locution::schedule
