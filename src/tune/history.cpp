#include "tune/history.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "generator/search/features.h"
#include "language/sentence.h"
#include "space/workload.h"
#include "support/hash.h"

namespace locution::tune {

namespace {

std::optional<records::Outcome> recorded(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok:
      return records::Outcome::Ok;
    case Outcome::Wrong:
      return records::Outcome::Wrong;
    case Outcome::Crash:
      return records::Outcome::Crash;
    case Outcome::Timeout:
      return records::Outcome::Timeout;
    case Outcome::Illegal:
      return std::nullopt;  // nothing was measured
  }
  return std::nullopt;
}

/// Four digits: what is behind them is noise, and takes most of a record's space.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", value);
  return std::strtod(text, nullptr);
}

struct Ratios {
  std::vector<double> values;
  bool hasFailed = false, isOwn = false;
};

using BySentence = std::map<std::string, Ratios>;

std::optional<double> ratioOf(const Ratios& r) {
  if (r.hasFailed || r.values.empty()) return std::nullopt;
  return records::median(r.values);
}

}  // namespace

Result<History> History::open(records::Store& store, const TargetSpec& target, Author author) {
  History out(store, std::move(author));
  LOCUTION_ASSIGN_OR_RETURN(out.target_, store.put(records::TextKind::Target, target.str()));
  LOCUTION_ASSIGN_OR_RETURN(out.machine_, store.put(records::TextKind::Machine, records::machineText(target.str())));
  return out;
}

Status History::add(const space::Space& space, const space::Choices& incumbent) {
  Kernel k{&space, "", "", language::planText(incumbent)};
  LOCUTION_ASSIGN_OR_RETURN(k.workload,
                            store_->put(records::TextKind::Workload, space::canonical(space.kernel()).text));
  LOCUTION_ASSIGN_OR_RETURN(k.incumbent, store_->put(records::TextKind::Incumbent, k.incumbentSentence));
  kernels_.push_back(std::move(k));
  return Status::ok();
}

Result<std::vector<History::Known>> History::known(size_t kernel) {
  const Kernel& k = kernels_[kernel];
  records::Filter filter;
  filter.workload = k.workload;
  filter.target = target_;
  filter.machine = machine_;
  BySentence bySentence;
  LOCUTION_RETURN_IF_ERROR(store_->forEach(filter, [&](const records::Record& r, bool) {
    // Ratios to other incumbents don't compare, but what failed failed.
    const bool isOk = r.outcome == records::Outcome::Ok;
    if (isOk && (r.incumbent != k.incumbent || !r.ratio)) return Status::ok();
    Ratios& of = bySentence[r.sentence];
    if (isOk)
      of.values.push_back(*r.ratio);
    else
      of.hasFailed = true;
    of.isOwn = of.isOwn || (r.proposer == author_.proposer && r.seed == author_.seed);
    return Status::ok();
  }));
  std::vector<Known> out;
  for (const auto& [sentence, ratios] : bySentence)
    if (auto choices = language::parsePlanText(*k.space, sentence))
      out.push_back({std::move(*choices), ratioOf(ratios), ratios.isOwn});
  return out;
}

std::optional<records::Record> History::recordOf(const Kernel& kernel, std::string sentence,
                                                 const Measurement& m) const {
  const auto outcome = recorded(m.outcome);
  if (!outcome) return std::nullopt;
  records::Record r;
  r.workload = kernel.workload;
  r.target = target_;
  r.machine = machine_;
  r.sentence = std::move(sentence);
  r.proposer = author_.proposer;
  r.seed = author_.seed;
  r.model = author_.model;
  r.outcome = *outcome;
  r.compiler = author_.compiler;
  r.code = hexDigits(m.codeHash);
  r.grammar = language::kGrammarVersion;
  r.vocabularyCount = static_cast<int64_t>(language::vocabularySize());
  r.vocabulary = hexDigits(language::vocabularyHash(language::vocabularySize()));
  r.time = std::time(nullptr);
  for (double seconds : m.samples) r.samples.push_back(rounded(seconds));
  if (m.ratio > 0) {
    r.incumbent = kernel.incumbent;
    r.ratio = rounded(m.ratio);
    r.spread = rounded(m.spread);
  }
  return r;
}

Status History::store(size_t kernel, std::span<const generator::Proposal> plans, std::span<const Measurement> results) {
  std::vector<records::Record> made;
  for (size_t i = 0; i < plans.size(); ++i)
    if (auto r = recordOf(kernels_[kernel], language::planText(plans[i].choices), results[i]))
      made.push_back(std::move(*r));
  return store_->addAll(made).status();
}

Status History::storeIncumbent(size_t kernel, const Measurement& result) {
  auto r = recordOf(kernels_[kernel], kernels_[kernel].incumbentSentence, result);
  if (!r) return Status::ok();
  r->proposer = "analytic";
  r->seed = 0;
  return store_->add(*r).status();
}

Status History::codeIs(size_t kernel, const space::Choices& choices, uint64_t code) {
  return store_
      ->codeIs(kernels_[kernel].workload, target_, language::planText(choices), hexDigits(code), author_.compiler)
      .status();
}

Result<int64_t> History::teach(generator::CostModel& model, int64_t most) {
  std::vector<std::string> others;
  LOCUTION_RETURN_IF_ERROR(
      store_->forEachText(records::TextKind::Workload, [&](const std::string& key, const std::string&) {
        if (std::none_of(kernels_.begin(), kernels_.end(), [&](const Kernel& k) { return k.workload == key; }))
          others.push_back(key);
        return Status::ok();
      }));
  int64_t taught = 0;
  for (const std::string& key : others) {
    if (taught >= most) break;
    records::Filter filter;
    filter.workload = key;
    filter.target = target_;
    BySentence bySentence;
    LOCUTION_RETURN_IF_ERROR(store_->forEach(filter, [&](const records::Record& r, bool) {
      Ratios& of = bySentence[r.sentence];
      if (r.outcome == records::Outcome::Ok && r.ratio)
        of.values.push_back(*r.ratio);
      else
        of.hasFailed = true;
      return Status::ok();
    }));
    if (bySentence.empty()) continue;
    LOCUTION_ASSIGN_OR_RETURN(auto text, store_->text(records::TextKind::Workload, key));
    if (!text) continue;
    // Written by another version, perhaps: then there is nothing to learn from it.
    auto workload = space::parseWorkload(*text);
    if (!workload.isOk()) continue;
    const space::Space space(workload->kernel, kernels_.front().space->target());
    for (const auto& [sentence, ratios] : bySentence) {
      const auto choices = language::parsePlanText(space, sentence);
      const auto ratio = ratioOf(ratios);
      if (!choices || !ratio || taught >= most) continue;
      space::Walk walk(space);
      for (const space::Choice& c : *choices) walk.choose(c.value);
      model.add(generator::featuresOf(walk), std::log(*ratio));
      ++taught;
    }
  }
  return taught;
}

}  // namespace locution::tune
