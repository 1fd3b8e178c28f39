#include "tune/again.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <tuple>

#include "core/target.h"
#include "language/sentence.h"
#include "space/space.h"
#include "space/workload.h"
#include "support/hash.h"
#include "tune/measure.h"

namespace locution::tune {

namespace {

using records::Record;
using records::TextKind;

Result<std::string> textOf(records::Store& store, TextKind kind, const std::string& key) {
  LOCUTION_ASSIGN_OR_RETURN(auto text, store.text(kind, key));
  return text.value_or("");
}

// The records with the least hashes.
class Draw {
 public:
  Draw(int64_t count, uint64_t seed) : count_(static_cast<size_t>(count)), seed_(seed) {}
  void add(const Record& r) {
    drawn_.push({hashText(r.id(), seed_), r});
    if (drawn_.size() > count_) drawn_.pop();
  }
  std::vector<Record> take() {
    std::vector<Record> out;
    for (; !drawn_.empty(); drawn_.pop()) out.push_back(drawn_.top().record);
    return out;
  }

 private:
  struct Drawn {
    uint64_t hash;
    Record record;
    bool operator<(const Drawn& other) const { return hash < other.hash; }
  };
  size_t count_;
  uint64_t seed_;
  std::priority_queue<Drawn> drawn_;
};

Result<std::vector<Record>> draw(records::Store& store, const AgainOptions& options) {
  std::map<std::string, std::string> machines;  // of this machine, by target
  Draw draw(options.records, options.seed);
  records::Filter filter;
  filter.outcome = records::Outcome::Ok;
  LOCUTION_RETURN_IF_ERROR(store.forEach(filter, [&](const Record& r, bool) {
    if (!r.ratio || r.incumbent.empty()) return Status::ok();
    auto machine = machines.find(r.target);
    if (machine == machines.end()) {
      LOCUTION_ASSIGN_OR_RETURN(std::string target, textOf(store, TextKind::Target, r.target));
      LOCUTION_ASSIGN_OR_RETURN(std::string measuredOn, textOf(store, TextKind::Machine, r.machine));
      const bool isHere = measuredOn == records::machineText(target);
      machine = machines.emplace(r.target, isHere ? r.machine : "").first;
    }
    if (machine->second == r.machine) draw.add(r);
    return Status::ok();
  }));
  std::vector<Record> drawn = draw.take();
  if (drawn.empty())
    return Status::error(store.place() + ": no record was timed on a machine like this one (" + records::cpuModel() +
                         ")");
  return drawn;
}

// Those of one workload on one target.
class Again {
 public:
  Again(records::Store& store, const AgainOptions& options) : store_(store), options_(options) {}

  Status measure(std::vector<MeasuredAgain>::iterator from, std::vector<MeasuredAgain>::iterator to) {
    LOCUTION_ASSIGN_OR_RETURN(std::string target, textOf(store_, TextKind::Target, from->record.target));
    LOCUTION_ASSIGN_OR_RETURN(std::string workload, textOf(store_, TextKind::Workload, from->record.workload));
    auto spec = parseTarget(target);
    auto parsed = space::parseWorkload(workload);
    if (!spec.isOk() || !parsed.isOk()) {
      for (; from != to; ++from) from->problem = "written by another version";
      return Status::ok();
    }
    if (from->record.target != target_) compiler_ = options_.makeCompiler(*spec);
    target_ = from->record.target;
    const space::Space space(parsed->kernel, *spec);
    for (; from != to; ++from) {
      LOCUTION_ASSIGN_OR_RETURN(std::string incumbent, textOf(store_, TextKind::Incumbent, from->record.incumbent));
      measureOne(space, incumbent, &*from);
    }
    return Status::ok();
  }

 private:
  void measureOne(const space::Space& space, const std::string& incumbent, MeasuredAgain* of) const {
    auto before = language::parsePlanText(space, incumbent);
    auto choices = language::parsePlanText(space, of->record.sentence);
    if (!before.isOk() || !choices.isOk()) {
      of->problem = (before.isOk() ? choices.status() : before.status()).message();
      return;
    }
    MeasureOptions measure;
    measure.jobs = options_.jobs;
    measure.seed = options_.seed + 1;
    auto bench = Measurer(*compiler_, measure).open(space.kernel(), *space::planOf(space, *before));
    auto measured = bench.isOk() ? (*bench)->measure({*space::planOf(space, *choices)})
                                 : Result<std::vector<Measurement>>(bench.status());
    if (!measured.isOk())
      of->problem = measured.status().message();
    else if (const Measurement& m = measured->front(); m.outcome == Outcome::Ok && m.ratio > 0)
      of->ratio = m.ratio;
    else
      of->problem = std::string(outcomeName(m.outcome)) + ": " + m.reason;
  }

  records::Store& store_;
  const AgainOptions& options_;
  std::string target_;
  std::unique_ptr<codegen::KernelCompiler> compiler_;
};

}  // namespace

double MeasuredAgain::difference() const { return std::abs(ratio / *record.ratio - 1); }

Result<std::vector<MeasuredAgain>> measureAgain(records::Store& store, const AgainOptions& options) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<Record> drawn, draw(store, options));
  std::vector<MeasuredAgain> out;
  for (Record& r : drawn) out.push_back({std::move(r), 0, ""});
  std::sort(out.begin(), out.end(), [](const MeasuredAgain& a, const MeasuredAgain& b) {
    return std::tie(a.record.target, a.record.workload, a.record.sentence) <
           std::tie(b.record.target, b.record.workload, b.record.sentence);
  });
  Again again(store, options);
  for (auto from = out.begin(); from != out.end();) {
    if (options.isStopped && options.isStopped()) {
      out.erase(from, out.end());
      break;
    }
    if (options.progress) options.progress(static_cast<size_t>(from - out.begin()), out.size());
    const auto to = std::find_if(from, out.end(), [&](const MeasuredAgain& m) {
      return m.record.target != from->record.target || m.record.workload != from->record.workload;
    });
    LOCUTION_RETURN_IF_ERROR(again.measure(from, to));
    from = to;
  }
  return out;
}

}  // namespace locution::tune
