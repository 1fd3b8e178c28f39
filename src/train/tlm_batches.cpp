#include "train/tlm_batches.h"

#include <algorithm>
#include <cmath>

#include "support/check.h"
#include "support/hash.h"

namespace locution::train {

using generator::tlm::TrainingShape;

namespace {

constexpr float kNever = -1e9F;
constexpr int64_t kAlign = 8, kAlignDecisions = 64;
/// Lines are no shorter, so that sentences fill them well.
constexpr int64_t kLeastLine = 128;

int64_t roundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

TlmBatches::TlmBatches(const Examples& examples, int64_t sentences, int64_t group, uint64_t seed, const TlmLoss& loss)
    : examples_(examples), sentences_(sentences), group_(group), loss_(loss), order_(0, seed) {
  LOCUTION_CHECK(group > 0 && sentences % group == 0 && examples.count() > 0);
  for (size_t g = 0; g < examples.groups.size(); ++g) {
    const auto count = static_cast<int64_t>(examples.groups[g].examples.size());
    orders_.emplace_back(count, hashText(examples.groups[g].workload + examples.groups[g].target, seed));
    for (int64_t i = 0; i < count; i += group) pieces_.push_back({g, i});
  }
  order_ = Shuffle(static_cast<int64_t>(pieces_.size()), seed);
}

int64_t TlmBatches::stepsPerEpoch() const {
  return std::max<int64_t>(1, static_cast<int64_t>(pieces_.size()) * group_ / sentences_);
}

std::vector<const Example*> TlmBatches::sentencesOf(int64_t step) {
  std::vector<const Example*> out(static_cast<size_t>(sentences_));
  const int64_t count = sentences_ / group_, all = static_cast<int64_t>(pieces_.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = step * count + i;
    const Piece& piece = pieces_[static_cast<size_t>(order_.at(place))];
    const auto& examples = examples_.groups[piece.group].examples;
    const auto size = static_cast<int64_t>(examples.size());
    for (int64_t k = piece.first; k < std::min(piece.first + group_, size); ++k)
      out[static_cast<size_t>(i * group_ + k - piece.first)] =
          &examples[static_cast<size_t>(orders_[piece.group].at(place / all * size + k))];
  }
  return out;
}

TrainingShape TlmBatches::shape(int64_t steps) {
  TrainingShape s;
  s.sentences = sentences_;
  s.group = group_;
  s.length = std::max(kLeastLine, roundUp(examples_.longest(), kAlign));
  s.lines = 1;
  size_t most = 1;
  for (int64_t step = 0; step < steps; ++step) {
    size_t decisions = 0;
    const std::vector<const Example*> sentences = sentencesOf(step);
    for (const Example* e : sentences) decisions += e ? e->places.size() : 0;
    most = std::max(most, decisions);
    s.lines = std::max(s.lines, pack(sentences, s.length).lines);
  }
  s.decisions = roundUp(static_cast<int64_t>(most), kAlignDecisions);
  return s;
}

TlmBatches::Packing TlmBatches::pack(const std::vector<const Example*>& sentences, int64_t length) {
  Packing out;
  std::vector<int64_t> used;
  for (const Example* e : sentences) {
    const auto size = e ? static_cast<int64_t>(e->tokens.size()) : 0;
    const auto line = std::find_if(used.begin(), used.end(), [&](int64_t u) { return u + size <= length; });
    const int64_t at = line - used.begin();
    if (line == used.end()) used.push_back(0);
    out.begins.push_back(at * length + used[static_cast<size_t>(at)]);
    used[static_cast<size_t>(at)] += size;
  }
  out.lines = static_cast<int64_t>(used.size());
  return out;
}

int64_t TlmBatches::tokens(int64_t step) {
  size_t n = 0;
  for (const Example* e : sentencesOf(step)) n += e ? e->tokens.size() : 0;
  return static_cast<int64_t>(n);
}

std::map<std::string, Tensor> TlmBatches::at(int64_t step, const TrainingShape& s, int64_t words) {
  const std::vector<const Example*> sentences = sentencesOf(step);
  const int64_t groups = sentences_ / group_;
  const Packing packing = pack(sentences, s.length);
  LOCUTION_CHECK(packing.lines <= s.lines) << "the batch has more lines than the graph";
  Tensor tokens(DType::I64, {s.lines, s.length}), positions(DType::I64, {s.lines, s.length}),
      segments(DType::I64, {s.lines, s.length}), rows(DType::I64, {s.decisions}), labels(DType::I64, {s.decisions}),
      legal(DType::Bool, {s.decisions, words}), weights(DType::F32, {s.decisions}), ends(DType::I64, {sentences_}),
      targets(DType::F32, {sentences_}), valueWeights(DType::F32, {sentences_}), ranks(DType::F32, {groups, group_}),
      mask(DType::F32, {groups, group_});
  int64_t row = 0, present = 0;
  double weightSum = 0;
  for (int64_t i = 0; i < sentences_; ++i) {
    const Example* e = sentences[static_cast<size_t>(i)];
    const int64_t begin = packing.begins[static_cast<size_t>(i)];
    mask.data<float>()[i] = e ? 0 : kNever;
    if (!e) continue;
    ++present;
    const auto size = static_cast<int64_t>(e->tokens.size());
    for (int64_t t = 0; t < size; ++t) {
      tokens.data<int64_t>()[begin + t] = e->tokens[static_cast<size_t>(t)];
      positions.data<int64_t>()[begin + t] = t;
      segments.data<int64_t>()[begin + t] = i + 1;
    }
    ends.data<int64_t>()[i] = begin + size - 1;
    targets.data<float>()[i] = std::isnan(e->value) ? 0.0F : static_cast<float>(e->value);
    const double weight = loss_.temperature > 0 ? std::exp(-(e->slowdown - 1) / loss_.temperature) : 1;
    for (size_t d = 0; d < e->places.size() && row < s.decisions; ++d, ++row) {
      const int32_t place = e->places[d];
      rows.data<int64_t>()[row] = begin + place - 1;
      labels.data<int64_t>()[row] = e->tokens[static_cast<size_t>(place)];
      weights.data<float>()[row] = static_cast<float>(weight);
      for (int32_t k = d == 0 ? 0 : e->legalEnd[d - 1]; k < e->legalEnd[d]; ++k)
        legal.data<uint8_t>()[row * words + e->legal[static_cast<size_t>(k)]] = 1;
      weightSum += weight;
    }
  }
  for (int64_t r = 0; r < row && weightSum > 0; ++r)
    weights.data<float>()[r] = static_cast<float>(weights.data<float>()[r] / weightSum);
  for (int64_t g = 0; g < groups; ++g) {
    // Shares as 1 / time: what the value of a perfect model gives.
    double sum = 0;
    for (int64_t k = 0; k < group_; ++k)
      if (const Example* e = sentences[static_cast<size_t>(g * group_ + k)]) sum += 1 / e->slowdown;
    for (int64_t k = 0; k < group_; ++k)
      if (const Example* e = sentences[static_cast<size_t>(g * group_ + k)]) {
        ranks.data<float>()[g * group_ + k] =
            static_cast<float>(loss_.rankShare / e->slowdown / sum / static_cast<double>(groups));
        valueWeights.data<float>()[g * group_ + k] =
            std::isnan(e->value) ? 0.0F : static_cast<float>(loss_.valueShare / static_cast<double>(present));
      }
  }
  return {{"tokens", tokens},         {"positions", positions},
          {"segments", segments},     {"rows", rows},
          {"labels", labels},         {"legal", legal},
          {"weights", weights},       {"ends", ends},
          {"value.targets", targets}, {"value.weights", valueWeights},
          {"rank.targets", ranks},    {"rank.mask", mask}};
}

}  // namespace locution::train
