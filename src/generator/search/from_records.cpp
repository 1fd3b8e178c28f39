#include "generator/search/from_records.h"

#include <map>
#include <mutex>

#include "generator/rules.h"
#include "language/sentence.h"
#include "space/workload.h"
#include "support/hash.h"

namespace locution::generator {

namespace {

/// What is faster by less may be so by luck.
constexpr double kWorthwhile = 0.99;
/// Candidates among which one that was measured often is preferred: the least of many single measurements is one of luck.
constexpr int kLooked = 16;
constexpr int64_t kOften = 3;

class Best : public FromRecords {
 public:
  explicit Best(std::unique_ptr<records::Store> store) : store_(std::move(store)) {}
  std::string_view name() const override { return "records"; }

  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    if (kernel.raw) return {};
    const space::Space space(kernel, target);
    return *space::planOf(space, *choices(space));
  }

  std::optional<space::Choices> choices(const space::Space& space) const override {
    space::Choices analytic = analyticWalk(space).choices();
    if (analytic.empty()) return analytic;  // nothing to decide
    const std::string workload = keyOf(space::canonical(space.kernel()).text);
    const std::scoped_lock lock(mutex_);
    auto best = bestOf(workload, keyOf(space.target().str()), keyOf(language::planText(analytic)));
    if (!best.isOk()) {
      if (report_.status.isOk()) report_.status = best.status();
      return analytic;
    }
    if (best->empty()) {
      ++report_.unknown;
      return analytic;
    }
    const records::Best* chosen = nullptr;
    for (const records::Best& b : *best)
      if (b.value < kWorthwhile && (!chosen || (chosen->measurements < kOften && b.measurements >= kOften)))
        chosen = &b;
    if (!chosen) return analytic;
    auto known = language::parsePlanText(space, chosen->record.sentence);
    if (!known.isOk()) return analytic;
    ++report_.found;
    return std::move(*known);
  }

  Report report() const override {
    const std::scoped_lock lock(mutex_);
    return report_;
  }

 private:
  // Ratios compare where the incumbent is the same: today's analytic plan if it was one, else whatever there is.
  Result<std::vector<records::Best>> bestOf(const std::string& workload, const std::string& target,
                                            const std::string& incumbent) const {
    records::Filter filter;
    filter.incumbent = incumbent;
    LOCUTION_ASSIGN_OR_RETURN(auto best, store_->best(workload, target, filter, records::Rank::Ratio, kLooked));
    if (!best.empty()) return best;
    return store_->best(workload, target, {}, records::Rank::Ratio, kLooked);
  }

  std::unique_ptr<records::Store> store_;
  mutable std::mutex mutex_;  // a store serves one thread
  mutable Report report_;
};

}  // namespace

std::unique_ptr<FromRecords> makeFromRecords(std::unique_ptr<records::Store> store) {
  return std::make_unique<Best>(std::move(store));
}

}  // namespace locution::generator
