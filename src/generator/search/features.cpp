#include "generator/search/features.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"

namespace locution::generator {

using space::Access;
using space::Decision;
using space::StageChoices;

namespace {

struct StageFeatures {
#define FEATURE(name, help) double name = 0;
#include "generator/search/features.inc"
#undef FEATURE
};
constexpr size_t kStages = 2;
constexpr const char* kKernelFeatures[] = {"stages", "share", "strips", "spread", "seconds"};

double logOf(double x) { return std::log2(1 + std::max(0.0, x)); }
double ratioLog(double x) { return std::log2(std::max(1e-12, x)); }
double as(int64_t x) { return static_cast<double>(x); }

// An access within the loop nest: how many elements it touches while some of the loops run.
struct Touch {
  std::vector<bool> axes, reduce;
  double columns = 1, rows = 1;  ///< the most that column and row loops make it move over
  double elementBytes = 4, elements = 1;
};

// The part of the iteration space that the loops up to some level cover.
struct Cover {
  double columns = 1, rows = 1;
  std::vector<double> axes, reduce;

  double bytes(const Touch& t) const {
    double n = std::min(columns, t.columns) * std::min(rows, t.rows);
    for (size_t i = 0; i < axes.size(); ++i)
      if (t.axes[i]) n *= axes[i];
    for (size_t i = 0; i < reduce.size(); ++i)
      if (t.reduce[i]) n *= reduce[i];
    return std::min(n, t.elements) * t.elementBytes;
  }
};

class Nest {
 public:
  explicit Nest(const StageChoices& choices)
      : c_(choices), facts_(choices.facts()), stage_(*facts_.stage), target_(*facts_.target) {}

  StageFeatures features(double* seconds);

 private:
  struct Level {
    double iterations = 1;
    double total = 0;
    std::vector<double> bytes;  ///< of each access, over this loop's whole run
  };

  int64_t get(Decision d, int64_t otherwise) const { return c_.get(d, otherwise); }
  bool contains(const std::vector<size_t>& list, size_t i) const {
    return std::find(list.begin(), list.end(), i) != list.end();
  }

  void readAccesses() {
    columns_ = c_.isFold() ? std::vector<size_t>{} : c_.columns();
    folded_ = c_.isFold() ? c_.columns() : std::vector<size_t>{};
    rows_ = c_.rows();
    for (const Access& a : facts_.all) {
      Touch t;
      for (size_t i = 0; i < stage_.axes.size(); ++i) {
        const bool isTiled = contains(columns_, i) || contains(rows_, i);
        t.axes.push_back(!isTiled && a.used(i));
        if (a.used(i) && contains(columns_, i)) t.columns *= as(extent(i));
        if (a.used(i) && contains(rows_, i)) t.rows *= as(extent(i));
      }
      for (size_t i = 0; i < stage_.reduce.size(); ++i) {
        t.reduce.push_back(!contains(folded_, i) && a.usedReduce(i));
        if (a.usedReduce(i) && contains(folded_, i)) t.columns *= as(stage_.reduce[i].extent);
      }
      if (a.buffer) {
        t.elementBytes = as(dtypeBytes(a.buffer->element.dtype, 1));
        for (int64_t d : loop::extents(*a.buffer)) t.elements *= as(d);
      }
      touches_.push_back(std::move(t));
    }
  }

  int64_t extent(size_t axis) const { return c_.scope().extents[axis]; }

  void push(double iterations) {
    Level level;
    level.iterations = iterations;
    for (const Touch& t : touches_) level.bytes.push_back(cover_.bytes(t));
    for (double b : level.bytes) level.total += b;
    levels_.push_back(std::move(level));
  }

  void buildLevels() {
    cover_.axes.assign(stage_.axes.size(), 1);
    cover_.reduce.assign(stage_.reduce.size(), 1);
    cover_.columns = as(get(Decision::Lanes, 1) * get(Decision::Vectors, 1));
    cover_.rows = as(get(Decision::Rows, 1));
    push(1);
    const double parts = as(get(Decision::ReduceParts, 1));
    for (size_t i = stage_.reduce.size(); i-- > 0;) {
      if (contains(folded_, i)) continue;
      double n = as(stage_.reduce[i].extent);
      if (i + 1 == stage_.reduce.size()) n = std::ceil(n / parts);
      cover_.reduce[i] = n;
      push(n);
    }
    if (c_.isFold()) {
      const double n = std::max(1.0, as(c_.columnExtent()) / cover_.columns);
      cover_.columns *= n;
      push(n);
    }
    reduceLevels_ = levels_.size();
    for (size_t k = c_.order().size(); k-- > 0;) {
      const int64_t loop = c_.order()[k];
      const double n = as(c_.iterations(loop));
      if (loop == space::kRowLoop || loop == space::kRowLoopInner)
        cover_.rows *= n;
      else if (loop == space::kColumnLoop || loop == space::kColumnLoopInner)
        cover_.columns *= n;
      else if (loop == space::kPartLoop)
        cover_.reduce.back() *= n;
      else
        cover_.axes[static_cast<size_t>(loop)] *= n;
      push(n);
    }
  }

  // Of the largest part of the nest whose data fit, all that its accesses touch comes from beyond the cache, each time it runs.
  double traffic(double cacheBytes) const {
    size_t fits = 0;
    while (fits + 1 < levels_.size() && levels_[fits + 1].total <= cacheBytes) ++fits;
    double times = 1;
    for (size_t k = fits + 1; k < levels_.size(); ++k) times *= levels_[k].iterations;
    return levels_[fits].total * times;
  }

  double strideBytes(size_t access) const {
    if (access >= facts_.all.size() || get(Decision::Vector, space::kNoAxis) == space::kNoAxis) return -1;
    const Access& a = facts_.all[access];
    const std::vector<size_t> along = c_.columns();
    if (along.empty()) return -1;
    const auto stride = c_.isFold() ? a.reduce[along[0]] : a.spatial[along[0]];
    return stride ? logOf(std::abs(as(*stride)) * touches_[access].elementBytes) : -2;
  }

  static double loopClass(int64_t loop) {
    if (loop == space::kRowLoop || loop == space::kRowLoopInner) return 1;
    if (loop == space::kColumnLoop || loop == space::kColumnLoopInner) return 2;
    return loop == space::kPartLoop ? 3 : 4;
  }

  const StageChoices& c_;
  const space::StageFacts& facts_;
  const loop::Stage& stage_;
  const TargetSpec& target_;
  std::vector<size_t> columns_, folded_, rows_;
  std::vector<Touch> touches_;
  Cover cover_;
  std::vector<Level> levels_;
  size_t reduceLevels_ = 0;
};

StageFeatures Nest::features(double* seconds) {
  readAccesses();
  buildLevels();
  StageFeatures f;
  const double lanes = as(get(Decision::Lanes, 1)), vectors = as(get(Decision::Vectors, 1)),
               rows = as(get(Decision::Rows, 1));
  double points = 1, sum = 1;
  for (size_t i = 0; i < stage_.axes.size(); ++i) points *= as(extent(i));
  for (const loop::Axis& r : stage_.reduce) sum *= as(r.extent);
  const double columns = as(c_.columnExtent()), rowExtent = as(c_.rowExtent());
  const double columnWaste = as(c_.columnTiles()) * vectors * lanes / columns;
  const double rowWaste = as(c_.rowTiles()) * rows / rowExtent;
  const double updates = points * sum * columnWaste * rowWaste;
  const double tile = rows * vectors;
  double unrolled = tile * as(get(Decision::Unroll, 1));
  const int64_t window = get(Decision::Window, 0);
  for (int64_t k = 1; k <= window; ++k)
    unrolled *= as(stage_.reduce[stage_.reduce.size() - static_cast<size_t>(k)].extent);
  // With lanes along a reduction both factors are vectors.
  const double loads = c_.isFold() ? (rows + 1) * vectors / tile : (rows + vectors) / tile;

  f.points = logOf(points);
  f.sum = logOf(sum);
  f.updates = logOf(updates);
  f.columnExtent = logOf(columns);
  f.rowExtent = logOf(rowExtent);
  f.columnWaste = ratioLog(columnWaste);
  f.rowWaste = ratioLog(rowWaste);
  const double elementBytes = as(std::max<int64_t>(1, dtypeBytes(stage_.body->type.dtype, 1)));
  f.laneShare = lanes * elementBytes / as(target_.vectorBytes);
  f.tile = tile;
  f.registerShare = (tile + vectors + 1) / as(target_.vectorRegisters);
  f.isFold = c_.isFold() ? 1 : 0;
  f.unrolled = logOf(unrolled);
  f.loads = loads;
  f.stride0 = strideBytes(0);
  f.stride1 = facts_.all.size() > 2 ? strideBytes(1) : -1;
  f.strideStore = facts_.all.empty() ? -1 : strideBytes(facts_.all.size() - 1);
  double tasks = 1;
  const auto parallel = static_cast<size_t>(get(Decision::Parallel, 0));
  for (size_t k = 0; k < std::min(parallel, c_.order().size()); ++k) tasks *= as(c_.iterations(c_.order()[k]));
  const double threads = as(std::max(1, target_.threads));
  f.pieces = logOf(tasks);
  f.balance = tasks / (std::ceil(tasks / threads) * threads);
  f.taskUpdates = logOf(updates / tasks);
  const double l1 = traffic(as(target_.l1Bytes)), l2 = traffic(as(target_.l2Bytes)), l3 = traffic(as(target_.l3Bytes));
  f.trafficL1 = logOf(l1);
  f.trafficL2 = logOf(l2);
  f.trafficL3 = logOf(l3);
  f.intensityL1 = ratioLog(updates / std::max(1.0, l1));
  f.intensityL2 = ratioLog(updates / std::max(1.0, l2));
  f.innerBytes = logOf(levels_[reduceLevels_ - 1].total);
  double packed = 0;
  for (size_t k = 0; k < facts_.operands.size(); ++k)
    if (get(k == 0 ? Decision::Pack0 : Decision::Pack1, 0) != 0 && !facts_.isConstant[k]) {
      double bytes = as(dtypeBytes(facts_.operands[k].buffer->element.dtype, 1));
      for (int64_t d : loop::extents(*facts_.operands[k].buffer)) bytes *= as(d);
      packed += bytes;
    }
  f.packed = logOf(packed);
  f.innerLoop = c_.order().empty() ? 0 : loopClass(c_.order().back());
  f.outerLoop = c_.order().empty() ? 0 : loopClass(c_.order().front());

  // Two updates a cycle where the tile hides the latency of ten in flight and its loads keep up; caches at 32, 16 and 8 bytes a cycle.
  const double cyclesPerSecond = std::max(1.0, target_.peakGflops) * 1e9 / (4 * as(target_.vectorBytes) / 4);
  const bool isWinograd = get(Decision::Algorithm, 0) != 0;
  const double work = isWinograd ? updates / (as(get(Decision::Algorithm, 2)) * 1.1) : updates;
  const double registers = f.registerShare > 1 ? f.registerShare * 2 : 1;
  const double cycles = work / lanes / std::min(2.0, std::max(0.2, tile / 5)) * std::max(1.0, loads) * registers;
  const double bytes = std::max({l1 / 32, l2 / 16, l3 / 8}) + 2 * packed / 8;
  *seconds =
      (std::max(cycles, bytes) + 0.2 * std::min(cycles, bytes)) / cyclesPerSecond / std::max(1.0, threads * f.balance);
  f.estimate = ratioLog(*seconds);
  return f;
}

double updatesOf(const StageChoices& c) {
  double n = 1;
  for (const loop::Axis& a : c.facts().stage->axes) n *= as(a.extent);
  for (const loop::Axis& a : c.facts().stage->reduce) n *= as(a.extent);
  return n;
}

double decisionFeature(Decision d, int64_t value) {
  if (value == INT64_MIN) return -1;
  switch (d) {
    case Decision::Vector:
    case Decision::RowAxis:
      return as(value);
    default:
      return logOf(as(value));
  }
}

}  // namespace

const std::vector<std::string>& featureNames() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names(std::begin(kKernelFeatures), std::end(kKernelFeatures));
    for (size_t s = 0; s < kStages; ++s) {
      const std::string of = s == 0 ? "" : "second.";
#define FEATURE(name, help) names.push_back(of + #name);
#include "generator/search/features.inc"
#undef FEATURE
      for (size_t d = static_cast<size_t>(Decision::Algorithm); d < space::kDecisions; ++d)
        names.push_back(of + std::string(space::decisionName(static_cast<Decision>(d))));
    }
    return names;
  }();
  return kNames;
}

std::vector<float> featuresOf(const space::Walk& walk) {
  LOCUTION_CHECK(walk.isDone()) << "features of a walk that has open questions";
  std::vector<float> out;
  out.reserve(featureNames().size());
  const std::vector<StageChoices>& stages = walk.stages();
  auto add = [&](double x) { out.push_back(static_cast<float>(x)); };
  add(as(static_cast<int64_t>(stages.size())));
  add(as(walk.kernelValue(Decision::Share, 0)));
  add(logOf(as(walk.kernelValue(Decision::Strips, 0))));
  add(as(walk.kernelValue(Decision::SharedParallel, -1)));
  std::vector<size_t> byWork;
  for (size_t i = 0; i < stages.size(); ++i) byWork.push_back(i);
  std::stable_sort(byWork.begin(), byWork.end(),
                   [&](size_t a, size_t b) { return updatesOf(stages[a]) > updatesOf(stages[b]); });
  double whole = 0;
  std::vector<StageFeatures> all;
  for (size_t i : byWork) {
    double seconds = 0;
    all.push_back(Nest(stages[i]).features(&seconds));
    whole += seconds;
  }
  add(ratioLog(whole));
  for (size_t s = 0; s < kStages; ++s) {
    const StageFeatures f = s < all.size() ? all[s] : StageFeatures();
#define FEATURE(name, help) add(f.name);
#include "generator/search/features.inc"
#undef FEATURE
    for (size_t d = static_cast<size_t>(Decision::Algorithm); d < space::kDecisions; ++d) {
      const auto decision = static_cast<Decision>(d);
      add(s < all.size() ? decisionFeature(decision, stages[byWork[s]].get(decision, INT64_MIN)) : -1);
    }
  }
  LOCUTION_CHECK(out.size() == featureNames().size()) << out.size();
  return out;
}

double estimateOf(const std::vector<float>& features) { return static_cast<double>(features[4]); }

}  // namespace locution::generator
