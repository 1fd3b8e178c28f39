#include "train/examples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "language/grammar.h"
#include "language/sentence.h"
#include "loop/passes.h"
#include "loop/traffic.h"
#include "records/store.h"
#include "space/workload.h"
#include "support/hash.h"

namespace locution::train {

namespace {

/// What is known of one sentence of a group.
struct Measured {
  std::map<std::string, std::vector<double>> ratios;  // by incumbent
  std::vector<double> seconds;
};
using Sentences = std::map<std::string, Measured>;
struct GroupKey {
  std::string workload, target, machine;
  auto operator<=>(const GroupKey&) const = default;
};

class Reading {
 public:
  Reading(int64_t mostTokens, const OfMachine& ofMachine) : mostTokens_(mostTokens), ofMachine_(ofMachine) {}

  Status add(const std::string& place) {
    LOCUTION_ASSIGN_OR_RETURN(std::unique_ptr<records::Store> store,
                              records::Store::open(place, records::Store::Open::Read));
    records::Filter filter;
    LOCUTION_RETURN_IF_ERROR(store->forEach(filter, [&](const records::Record& r, bool) {
      LOCUTION_ASSIGN_OR_RETURN(const bool counts, isCounted(*store, r.machine));
      if (!counts) return Status::ok();
      const std::optional<double> seconds = r.seconds();
      if (r.outcome != records::Outcome::Ok || !seconds || *seconds <= 0) {
        ++out_.untimed;
        return Status::ok();
      }
      Measured& m = groups_[{r.workload, r.target, r.machine}][r.sentence];
      m.seconds.push_back(*seconds);
      if (r.ratio && *r.ratio > 0 && !r.incumbent.empty()) m.ratios[r.incumbent].push_back(*r.ratio);
      return Status::ok();
    }));
    for (const auto& [key, sentences] : groups_)
      for (auto [kind, name] :
           {std::pair{records::TextKind::Workload, &key.workload}, std::pair{records::TextKind::Target, &key.target}}) {
        if (texts_.contains(*name)) continue;
        LOCUTION_ASSIGN_OR_RETURN(std::optional<std::string> text, store->text(kind, *name));
        if (text) texts_[*name] = *text;
      }
    return Status::ok();
  }

  Examples finish() {
    for (const auto& [key, sentences] : groups_) group(key, sentences);
    return std::move(out_);
  }

 private:
  Result<bool> isCounted(records::Store& store, const std::string& machine) {
    if (!ofMachine_) return true;
    auto found = machines_.find(machine);
    if (found == machines_.end()) {
      LOCUTION_ASSIGN_OR_RETURN(std::optional<std::string> text, store.text(records::TextKind::Machine, machine));
      found = machines_.emplace(machine, text && ofMachine_(*text)).first;
    }
    return found->second;
  }

  void group(const GroupKey& key, const Sentences& sentences) {
    auto workload = space::parseWorkload(texts_[key.workload]);
    auto target = parseTarget(texts_[key.target]);
    if (!workload.isOk() || !target.isOk()) {
      out_.unreadable += static_cast<int64_t>(sentences.size());
      return;
    }
    const space::Space space(workload->kernel, *target);
    const std::map<std::string, double> times = timesOf(sentences);
    const double limit = roofline(workload->kernel, *target);
    ExampleGroup group{key.workload, key.target, key.machine, {}};
    double best = INFINITY;
    for (const auto& [sentence, seconds] : times) best = std::min(best, seconds);
    for (const auto& [sentence, seconds] : times) {
      auto choices = language::parsePlanText(space, sentence);
      if (!choices.isOk()) {
        ++out_.unreadable;
        continue;
      }
      Example e = exampleOf(space, *choices);
      if (e.places.empty()) continue;
      if (static_cast<int64_t>(e.tokens.size()) > mostTokens_) {
        ++out_.tooLong;
        continue;
      }
      e.slowdown = seconds / best;
      e.value = std::log(seconds / limit);
      group.examples.push_back(std::move(e));
    }
    if (!group.examples.empty()) out_.groups.push_back(std::move(group));
  }

  /// Seconds by sentence. By the ratio to the incumbent that most were measured against, in which a machine's drift cancels, times the
  /// incumbent's own; by the clock where there is none.
  static std::map<std::string, double> timesOf(const Sentences& sentences) {
    std::map<std::string, size_t> uses;
    for (const auto& [sentence, m] : sentences)
      for (const auto& [incumbent, ratios] : m.ratios) uses[incumbent] += ratios.size();
    std::string incumbent;
    for (const auto& [name, count] : uses)
      if (incumbent.empty() || count > uses[incumbent]) incumbent = name;
    std::vector<double> base;
    for (const auto& [sentence, m] : sentences)
      if (auto r = m.ratios.find(incumbent); r != m.ratios.end())
        base.push_back(records::median(m.seconds) / records::median(r->second));
    std::map<std::string, double> out;
    for (const auto& [sentence, m] : sentences) {
      auto r = m.ratios.find(incumbent);
      out[sentence] =
          r != m.ratios.end() ? records::median(r->second) * records::median(base) : records::median(m.seconds);
    }
    return out;
  }

  int64_t mostTokens_;
  const OfMachine& ofMachine_;
  std::map<std::string, bool> machines_;
  std::map<GroupKey, Sentences> groups_;
  std::map<std::string, std::string> texts_;
  Examples out_;
};

}  // namespace

int64_t Examples::count() const {
  int64_t n = 0;
  for (const ExampleGroup& g : groups) n += static_cast<int64_t>(g.examples.size());
  return n;
}

int64_t Examples::longest() const {
  size_t n = 0;
  for (const ExampleGroup& g : groups)
    for (const Example& e : g.examples) n = std::max(n, e.tokens.size());
  return static_cast<int64_t>(n);
}

Result<Examples> readExamples(const std::vector<std::string>& places, int64_t mostTokens, const OfMachine& ofMachine) {
  Reading reading(mostTokens, ofMachine);
  for (const std::string& place : places) LOCUTION_RETURN_IF_ERROR(reading.add(place));
  return reading.finish();
}

Example exampleOf(const space::Space& space, const space::Choices& choices) {
  Example e;
  e.tokens = language::sentenceTokens(space, choices);
  const size_t given = language::prefixTokens(space).size();
  language::Grammar grammar(space);
  for (size_t i = given; i < e.tokens.size(); ++i) {
    const std::vector<language::Token> legal = grammar.legal();
    if (legal.size() > 1) {
      e.places.push_back(static_cast<int32_t>(i));
      e.legal.insert(e.legal.end(), legal.begin(), legal.end());
      e.legalEnd.push_back(static_cast<int32_t>(e.legal.size()));
    }
    LOCUTION_CHECK(grammar.accept(e.tokens[i])) << "token " << i << " of a sentence isn't legal";
  }
  return e;
}

double roofline(const loop::Computation& kernel, const TargetSpec& target) {
  double bytes = 0;
  for (const loop::BufferRef& b : kernel.inputs)
    bytes += loop::countReads(kernel, *b) * dtypeBits(b->element.dtype) / 8.0;
  for (const loop::BufferRef& b : kernel.outputs) {
    double n = dtypeBits(b->element.dtype) / 8.0;
    for (int64_t d : loop::extents(*b)) n *= static_cast<double>(d);
    bytes += n;
  }
  constexpr double kLeast = 1e-9;
  return std::max(
      {kLeast, loop::countFlops(kernel) / (target.peakGflops * 1e9 * target.threads), bytes / (target.readGbs * 1e9)});
}

Examples takeHeldOut(Examples& from, double share, uint64_t seed) {
  Examples out;
  std::vector<ExampleGroup> kept;
  for (ExampleGroup& g : from.groups) {
    const double place = static_cast<double>(hashText(g.workload, seed) >> 11) / 0x1p53;
    (place < share ? out.groups : kept).push_back(std::move(g));
  }
  from.groups = std::move(kept);
  return out;
}

}  // namespace locution::train
