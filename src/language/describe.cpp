#include "language/describe.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "language/vocabulary.h"
#include "loop/passes.h"

namespace locution::language {

using loop::Stage;

namespace {

/// Steps of the extents' ladder: that of decisions, then quarters of octaves without end.
int64_t stepAtMost(int64_t value) {
  const std::vector<int64_t>& steps = space::ladder();
  if (value < steps.back()) return *(std::upper_bound(steps.begin(), steps.end(), value) - 1);
  int64_t octave = steps.back();
  constexpr int64_t kMost = int64_t{1} << 36;
  while (octave * 2 <= value && octave * 2 <= kMost) octave *= 2;
  if (octave >= kMost) return kMost;
  return octave + octave / 4 * ((value - octave) / (octave / 4));
}

/// The nearest of 1, 1.5, 2, 3, 4, 6 ... (from `least` to `most`) in ratio.
int64_t halfOctave(double value, int64_t least, int64_t most) {
  int64_t best = least;
  double bestError = 1e300;
  auto consider = [&](int64_t step) {
    const double error = std::fabs(std::log(std::max(value, 1e-9) / static_cast<double>(step)));
    if (step <= most && error < bestError) {
      bestError = error;
      best = step;
    }
  };
  for (int64_t octave = least; octave <= most; octave *= 2) {
    consider(octave);
    if (octave > 1) consider(octave * 3 / 2);
  }
  return best;
}

char stepClass(const std::optional<int64_t>& step) {
  constexpr int64_t kNear = 8;
  if (!step || *step < 0) return '?';
  if (*step == 0) return '.';
  if (*step == 1) return '1';
  return *step <= kNear ? 's' : 'L';
}

class Describer {
 public:
  Describer(const space::Space& space, Words* words) : kernel_(space.kernel()), words_(words) {}

  void stage(const space::StageFacts& facts) {
    const Stage& s = *facts.stage;
    static constexpr std::string_view kCombiners[] = {"points", "sum", "product", "max", "min", "and", "or"};
    add("stage:", s.scan ? "scan" : kCombiners[static_cast<size_t>(s.combiner)]);
    // Of the whole, where decisions are about a row.
    for (const loop::Axis& a : kernel_.stages[facts.index].axes) number("s", a.extent);
    for (const loop::Axis& a : s.reduce) number("r", a.extent);
    std::set<std::string> seen;
    for (size_t i = 0; i + 1 < facts.all.size(); ++i) {
      const space::Access& a = facts.all[i];
      Words operand{role(a.buffer) + ":" + std::string(dtypeName(a.buffer->element.dtype))};
      steps(a, &operand);
      std::string key = operand[0];
      for (const std::string& w : operand) key += w;
      if (seen.insert(key).second) words_->insert(words_->end(), operand.begin(), operand.end());
    }
    words_->push_back("out:" + std::string(dtypeName(s.out->element.dtype)));
    steps(facts.all.back(), words_);
    int left = kMostOperations;
    for (const loop::Expr& e : {s.body, s.epilogue})
      if (e) operations(e, &left);
  }

 private:
  static constexpr int kMostOperations = 16;

  void add(const char* stem, std::string_view text) { words_->push_back(stem + std::string(text)); }
  void number(const std::string& stem, int64_t value) {
    for (std::string& w : numberWords(stem, value)) words_->push_back(std::move(w));
  }
  std::string role(const loop::Buffer* b) const {
    auto holds = [&](const std::vector<loop::BufferRef>& list) {
      return std::any_of(list.begin(), list.end(), [&](const loop::BufferRef& x) { return x.get() == b; });
    };
    if (holds(kernel_.constants)) return "const";
    return holds(kernel_.inputs) ? "in" : "tmp";
  }
  static void steps(const space::Access& a, Words* words) {
    std::string classes;
    for (const auto& step : a.spatial) classes += stepClass(step);
    for (const auto& step : a.reduce) classes += stepClass(step);
    for (size_t i = 0; i < classes.size(); i += 3) {
      std::string group = classes.substr(i, 3);
      group.resize(3, '.');
      words->push_back("at:" + group);
    }
  }
  // Indices and conditions about them: no value is read.
  static bool isIndexing(const loop::Expr& e) {
    if (isFloat(e->type.dtype)) return false;
    bool reads = false;
    loop::visit(e, [&](const loop::Expr& x) {
      reads = reads || loop::as<loop::Load>(x) || isFloat(x->type.dtype);
      return !reads;
    });
    return !reads;
  }
  // Kinds of operations on values, parents first, runs of one kind once. Index arithmetic is what the steps say.
  void operations(const loop::Expr& root, int* left) {
    std::string last;
    loop::visit(root, [&](const loop::Expr& e) {
      if (loop::as<loop::Load>(e) || isIndexing(e)) return false;
      std::string word;
      if (const auto* b = loop::as<loop::Binary>(e)) {
        static constexpr std::string_view kOps[] = {
#define BINARY_OP(Name, text) #Name,
#include "loop/nodes.inc"
#undef BINARY_OP
        };
        word = kOps[static_cast<size_t>(b->op)];
        std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
      } else if (loop::as<loop::Select>(e)) {
        word = "select";
      } else if (loop::as<loop::Cast>(e)) {
        word = "cast";
      } else if (const auto* c = loop::as<loop::Call>(e)) {
        word = tokenOf("op:" + c->name) ? c->name : "call";
      }
      if (!word.empty() && word != last && *left > 0) {
        add("op:", word);
        --*left;
        last = word;
      }
      return true;
    });
  }

  const loop::Computation& kernel_;
  Words* words_;
};

}  // namespace

Words numberWords(const std::string& stem, int64_t value) {
  Words words;
  std::string prefix = stem;
  for (int64_t left = std::max<int64_t>(1, value); left > 0; prefix = "+") {
    const int64_t step = stepAtMost(left);
    words.push_back(prefix + std::to_string(step));
    left -= step;
  }
  return words;
}

int64_t numberOf(const std::string& stem, const Words& words) {
  int64_t value = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& prefix = i == 0 ? stem : "+";
    if (words[i].compare(0, prefix.size(), prefix) != 0) return 0;
    value += std::atoll(words[i].c_str() + prefix.size());
  }
  return value;
}

Words targetWords(const TargetSpec& t) {
  Words words{"v" + std::to_string(t.vectorBytes), "reg" + std::to_string(t.vectorRegisters)};
  if (t.hasFma) words.emplace_back("fma");
  if (t.hasMask) words.emplace_back("mask");
  if (t.hasVnni) words.emplace_back("vnni");
  if (t.hasF16c) words.emplace_back("f16c");
  if (t.strict) words.emplace_back("strict");
  constexpr int kThreads[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  int threads = 1;
  for (int n : kThreads)
    if (n <= t.threads) threads = n;
  words.push_back("t" + std::to_string(threads));
  constexpr int64_t kLeastCache = 8, kMostCache = 1 << 19, kMostRate = 1 << 14;
  auto cache = [&](const char* stem, int64_t bytes) {
    words.push_back(stem + std::to_string(halfOctave(static_cast<double>(bytes) / 1024, kLeastCache, kMostCache)) +
                    "k");
  };
  cache("l1:", t.l1Bytes);
  cache("l2:", t.l2Bytes);
  cache("l3:", t.l3Bytes);
  words.push_back("gflops:" + std::to_string(halfOctave(t.peakGflops, 1, kMostRate)));
  words.push_back("gbs:" + std::to_string(halfOctave(t.readGbs, 1, kMostRate)));
  return words;
}

Words workloadWords(const space::Space& space) {
  Words words;
  if (space.stages().empty()) return {"stage:raw"};
  Describer describer(space, &words);
  for (size_t k = 0; k < space.stages().size(); ++k) {
    if (k > 0) words.emplace_back("/");
    describer.stage(space.stages()[k]);
  }
  return words;
}

}  // namespace locution::language
