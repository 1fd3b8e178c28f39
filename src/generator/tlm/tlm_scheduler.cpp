#include "generator/tlm/tlm_scheduler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "generator/rules.h"
#include "generator/tlm/decoder.h"
#include "language/sentence.h"
#include "space/workload.h"
#include "support/check.h"
#include "support/hash.h"

namespace locution::generator::tlm {

namespace {

class Tlm : public Scheduler {
 public:
  Tlm(const Weights& weights, ProgramSource programs, SchedulerOptions options)
      : network_(std::make_shared<const Network>(weights)),
        programs_(std::make_shared<const ProgramSource>(std::move(programs))),
        options_(std::move(options)),
        margin_(weights.margin) {}

  std::string_view name() const override { return "tlm"; }
  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    if (kernel.raw) return {};
    const space::Space space(kernel, target);
    auto plan = space::planOf(space, *choices(space));
    LOCUTION_CHECK(plan.has_value()) << kernel.name;
    return *plan;
  }
  std::optional<space::Choices> choices(const space::Space& space) const override {
    if (space.stages().empty()) return space::Choices();
    const std::string target = space.target().str();
    const uint64_t seed = space::workloadHash(space.kernel()), key = hashText(target, seed);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (auto found = known_.find(key); found != known_.end()) return found->second;
    }
    if (auto given = options_.known.find({seed, hashText(target)}); given != options_.known.end())
      if (auto parsed = language::parsePlanText(space, given->second)) return std::move(*parsed);
    std::unique_ptr<Reader> reader = takeReader();
    space::Choices written = write(*reader, space, seed);
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(reader));
    return known_.emplace(key, std::move(written)).first->second;
  }

  /// Each word with how likely the model found it, and what else was legal, the likeliest first.
  std::string explain(const space::Space& space) const override {
    if (space.stages().empty()) return {};
    Decoding decoding;
    decoding.sentences = 0;
    decoding.wantsValues = true;
    decoding.also = choices(space);
    decoding.wantsAlternatives = true;
    std::unique_ptr<Reader> reader = takeReader();
    auto decoded = decode(*reader, *network_, space, decoding);
    LOCUTION_CHECK(decoded.isOk()) << decoded.status().message();
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(reader));
    if (decoded->empty()) return "the sentence is longer than the model reads: the analytic plan\n";
    return explanation(decoded->front(), *decoding.also);
  }

 private:
  static std::string explanation(const Decoded& decoded, const space::Choices& choices) {
    std::array<char, 64> line{};
    std::snprintf(line.data(), line.size(), "value %.3f, log-probability %.3f\n", decoded.value,
                  decoded.logProbability);
    std::string out = line.data();
    for (size_t i = 0; i < choices.size(); ++i) {
      const Alternatives& a = decoded.alternatives.at(i);
      const std::string said = space::choiceText(choices[i].decision, choices[i].value);
      std::vector<size_t> order(a.legal.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) { return a.likely[x] > a.likely[y]; });
      std::string others;
      for (size_t k : order) {
        const std::string word(language::wordOf(a.legal[k]));
        std::snprintf(line.data(), line.size(), "%.3f", a.likely[k]);
        if (word == said) {
          out += line.data() + (" " + word);
        } else {
          others += "  " + word + " " + line.data();
        }
      }
      out += " |" + others + "\n";
    }
    return out;
  }

  std::unique_ptr<Reader> takeReader() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) return std::make_unique<Reader>(network_, programs_);
    std::unique_ptr<Reader> reader = std::move(idle_.back());
    idle_.pop_back();
    return reader;
  }

  space::Choices write(Reader& reader, const space::Space& space, uint64_t seed) const {
    Decoding decoding;
    decoding.seed = seed;
    if (!options_.isGreedy) {
      decoding.sentences = options_.sentences;
      decoding.wantsValues = true;
      decoding.also = analyticWalk(space).choices();
    }
    auto decoded = decode(reader, *network_, space, decoding);
    // The programs came with the compiler, and their shapes are ours.
    LOCUTION_CHECK(decoded.isOk()) << decoded.status().message();
    if (decoded->empty()) return decoding.also ? *decoding.also : analyticWalk(space).choices();
    const Decoded* best = &decoded->front();
    const Decoded* analytic = nullptr;
    for (const Decoded& d : *decoded) {
      if (d.isAlso) analytic = &d;
      if (d.value < best->value) best = &d;
    }
    if (analytic && !(best->value < analytic->value - margin_)) best = analytic;
    return best->walk.choices();
  }

  // Shared with readers.
  std::shared_ptr<const Network> network_;
  std::shared_ptr<const ProgramSource> programs_;
  SchedulerOptions options_;
  double margin_;
  mutable std::mutex mutex_;
  mutable std::map<uint64_t, space::Choices> known_;
  mutable std::vector<std::unique_ptr<Reader>> idle_;
};

}  // namespace

std::unique_ptr<Scheduler> makeTlm(const Weights& weights, ProgramSource programs, SchedulerOptions options) {
  return std::make_unique<Tlm>(weights, std::move(programs), std::move(options));
}

}  // namespace locution::generator::tlm
