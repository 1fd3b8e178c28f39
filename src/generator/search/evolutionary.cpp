// Each proposal is a few generations of a population of walks. It starts from the best that were measured and from new random walks; parents
// are drawn by their rank, children are mutations or crossovers of them, and the cost model says how good they are. What it likes best of all
// that was met is proposed, with a share of random walks, for the model knows only what was measured. Before there is a model a count of
// cycles and bytes takes its place.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "generator/search/features.h"
#include "generator/search/replay.h"
#include "generator/search/search.h"
#include "generator/search/seen.h"

namespace locution::generator {

namespace {

constexpr size_t kPopulation = 96;
constexpr int kGenerations = 3;
constexpr size_t kBest = 24;  ///< of those measured, that start a population
constexpr double kCrossover = 0.15, kSecondMutation = 0.3;
constexpr double kRandomShare = 0.1;
/// Rank at which a parent is half as likely as the first.
constexpr double kHalfRank = 10;
/// What ran wrong or not at all counts as so much slower than the incumbent.
constexpr double kFailed = 8;

class Evolutionary : public Search {
 public:
  Evolutionary(const space::Space& space, uint64_t seed, std::shared_ptr<CostModel> model)
      : space_(space), random_(seed), model_(std::move(model)) {}

  std::vector<Proposal> propose(size_t count) override {
    std::vector<Member> pool = evolve(count);
    std::vector<Proposal> out;
    for (const Member& m : pool) {
      if (out.size() + randomCount(count) >= count) break;
      take(m.walk, &out);
    }
    // Patience as long as the random draws give something new.
    for (int draws = 0; out.size() < count && draws < 100; ++draws)
      if (take(randomWalk(space_, random_), &out)) draws = 0;
    return out;
  }

  void observe(const space::Choices& choices, std::optional<double> ratio) override {
    space::Walk walk(space_);
    for (const space::Choice& c : choices)
      if (walk.isDone() || walk.stage() != c.stage || walk.decision() != c.decision || !walk.choose(c.value)) return;
    if (!walk.isDone()) return;
    seen_.add(walk.plan());
    model_->add(featuresOf(walk), std::log(ratio.value_or(kFailed)));
    if (ratio) measured_.insert({{*ratio, count_}, choices});
    ++count_;
  }

 private:
  struct Member {
    space::Walk walk;
    std::vector<float> features;
    double cost = 0;
  };

  static size_t randomCount(size_t count) {
    return static_cast<size_t>(std::lround(kRandomShare * static_cast<double>(count)));
  }

  bool take(const space::Walk& walk, std::vector<Proposal>* out) {
    schedule::Plan plan = walk.plan();
    if (!seen_.add(plan)) return false;
    out->push_back({walk.choices(), std::move(plan)});
    return true;
  }

  void add(space::Walk walk, std::vector<Member>* population) {
    Member m{std::move(walk), {}, 0};
    m.features = featuresOf(m.walk);
    population->push_back(std::move(m));
  }

  std::vector<Member> firstGeneration() {
    std::vector<Member> out;
    for (const auto& [rank, choices] : measured_) {
      if (out.size() >= kBest) break;
      add(finish(space::Walk(space_), choices, random_), &out);
    }
    // Neighbours of the best before all others: good plans lie together.
    const size_t known = out.size();
    while (known > 0 && out.size() < kPopulation / 2)
      if (auto child = mutate(space_, out[below(random_, known)].walk.choices(), random_))
        add(std::move(*child), &out);
      else
        break;
    while (out.size() < kPopulation) add(randomWalk(space_, random_), &out);
    return out;
  }

  void rate(std::vector<Member>* members) {
    std::vector<std::vector<float>> rows;
    for (const Member& m : *members) rows.push_back(m.features);
    const std::optional<std::vector<double>> costs = model_->predict(rows);
    for (size_t i = 0; i < members->size(); ++i) (*members)[i].cost = costs ? (*costs)[i] : estimateOf(rows[i]);
    std::stable_sort(members->begin(), members->end(),
                     [](const Member& a, const Member& b) { return a.cost < b.cost; });
  }

  size_t drawRank(size_t count) {
    const double rank = -std::log2(1 - unit(random_)) * kHalfRank;
    return static_cast<size_t>(rank) % count;
  }

  // All that were met and not seen before, best first, at most some times what is wanted.
  std::vector<Member> evolve(size_t count) {
    std::vector<Member> population = firstGeneration(), pool;
    std::set<std::string> met;
    auto gather = [&] {
      for (const Member& m : population) {
        std::string text = m.walk.plan().str();
        if (met.insert(std::move(text)).second && !seen_.contains(m.walk.plan())) pool.push_back(m);
        if (met.size() > kPopulation * kGenerations) break;
      }
      std::stable_sort(pool.begin(), pool.end(), [](const Member& a, const Member& b) { return a.cost < b.cost; });
      pool.erase(pool.begin() + static_cast<std::ptrdiff_t>(std::min(pool.size(), 4 * count)), pool.end());
    };
    for (int g = 0; g < kGenerations; ++g) {
      rate(&population);
      gather();
      std::vector<Member> next;
      while (next.size() < kPopulation) {
        const space::Choices& parent = population[drawRank(population.size())].walk.choices();
        if (unit(random_) < kCrossover) {
          const space::Choices& other = population[drawRank(population.size())].walk.choices();
          add(crossover(space_, parent, other, random_), &next);
          continue;
        }
        auto child = mutate(space_, parent, random_);
        if (!child) return pool;  // a space of one plan
        while (unit(random_) < kSecondMutation) child = mutate(space_, child->choices(), random_);
        add(std::move(*child), &next);
      }
      population = std::move(next);
    }
    rate(&population);
    gather();
    return pool;
  }

  const space::Space& space_;
  Random random_;
  std::shared_ptr<CostModel> model_;
  Seen seen_;
  size_t count_ = 0;
  /// By ratio, then in the order observed.
  std::map<std::pair<double, size_t>, space::Choices> measured_;
};

}  // namespace

std::unique_ptr<Search> makeEvolutionarySearch(const space::Space& space, uint64_t seed,
                                               std::shared_ptr<CostModel> model) {
  return std::make_unique<Evolutionary>(space, seed, std::move(model));
}

}  // namespace locution::generator
