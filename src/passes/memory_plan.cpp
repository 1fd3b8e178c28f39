// Large buffers first, each at the lowest-waste gap among those alive at the same time. A buffer that may take the place of
// another shares that one's offset exactly, as its instruction reads and writes element by element.
#include "passes/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "support/check.h"

namespace locution::passes {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Placed {
  int64_t begin = 0, end = 0;
  size_t buffer = 0;
};

class Planner {
 public:
  explicit Planner(const std::vector<Lifetime>& lifetimes) : lifetimes_(lifetimes) {}

  MemoryPlan run() {
    MemoryPlan plan;
    plan.offsets.assign(lifetimes_.size(), 0);
    std::vector<size_t> order(lifetimes_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (lifetimes_[a].bytes != lifetimes_[b].bytes) return lifetimes_[a].bytes > lifetimes_[b].bytes;
      return lifetimes_[a].first < lifetimes_[b].first;
    });
    for (size_t buffer : order) {
      const Lifetime& life = lifetimes_[buffer];
      LOCUTION_CHECK(life.bytes >= 0 && life.first <= life.last) << "buffer " << buffer << " has no lifetime";
      if (life.bytes == 0) continue;
      int64_t offset = place(buffer);
      plan.offsets[buffer] = offset;
      Placed placed{offset, offset + aligned(life.bytes), buffer};
      auto at = std::upper_bound(placed_.begin(), placed_.end(), placed,
                                 [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
      placed_.insert(at, placed);
      plan.arenaBytes = std::max(plan.arenaBytes, placed.end);
    }
    return plan;
  }

 private:
  /// One of the two may take the other's place.
  bool mayShare(size_t a, size_t b) const {
    auto takes = [&](size_t late, size_t early) {
      return lifetimes_[late].inPlaceOf == static_cast<int32_t>(early) &&
             lifetimes_[early].last == lifetimes_[late].first && lifetimes_[early].first < lifetimes_[late].first;
    };
    return takes(a, b) || takes(b, a);
  }

  int64_t place(size_t buffer) const {
    const Lifetime& life = lifetimes_[buffer];
    const int64_t size = aligned(life.bytes);
    // By offset, as `placed_` is.
    std::vector<const Placed*> alive, shared;
    for (const Placed& p : placed_) {
      const Lifetime& other = lifetimes_[p.buffer];
      if (other.last < life.first || other.first > life.last) continue;
      (mayShare(buffer, p.buffer) ? shared : alive).push_back(&p);
    }
    for (const Placed* p : shared) {
      auto collides = [&](const Placed* q) { return q->begin < p->begin + size && p->begin < q->end; };
      auto crosses = [&](const Placed* q) { return q->begin != p->begin && collides(q); };
      if (std::none_of(alive.begin(), alive.end(), collides) && std::none_of(shared.begin(), shared.end(), crosses))
        return p->begin;
    }
    alive.insert(alive.end(), shared.begin(), shared.end());
    std::sort(alive.begin(), alive.end(), [](const Placed* a, const Placed* b) { return a->begin < b->begin; });
    int64_t best = -1, bestGap = std::numeric_limits<int64_t>::max(), free = 0;
    for (const Placed* p : alive) {
      int64_t gap = p->begin - free;
      if (gap >= size && gap < bestGap) {
        best = free;
        bestGap = gap;
      }
      free = std::max(free, p->end);
    }
    return best >= 0 ? best : free;
  }

  const std::vector<Lifetime>& lifetimes_;
  std::vector<Placed> placed_;
};

}  // namespace

MemoryPlan planMemory(const std::vector<Lifetime>& lifetimes) { return Planner(lifetimes).run(); }

}  // namespace locution::passes
