#include "generator/tlm/decoder.h"

#include <algorithm>
#include <cmath>

#include "language/choice_tokens.h"
#include "language/describe.h"
#include "support/check.h"
#include "support/hash.h"

namespace locution::generator::tlm {

using language::Grammar;
using language::Token;

namespace {

/// Sentences that have said the same so far.
struct Branch {
  Grammar grammar;
  double logProbability = 0;
  std::vector<int64_t> drawn;  ///< of the sentences to draw, by number
  bool isAlso = false;
  std::vector<Alternatives> alternatives = {};
  size_t row = 0;  ///< of the reader's last step
};

class Decoder {
 public:
  Decoder(Reader& reader, const Network& network, const space::Space& space, const Decoding& decoding)
      : reader_(reader), network_(network), space_(space), d_(decoding) {}

  Result<std::vector<Decoded>> run() {
    const language::Prompt prompt = language::promptTokens(space_);
    const auto length = static_cast<int64_t>(prompt.target.size() + prompt.workload.size());
    left_ = reader_.room(length);
    if (left_ < 1) return std::vector<Decoded>();
    std::vector<Branch> branches;
    branches.push_back({Grammar(space_), 0, {}, d_.also.has_value()});
    for (int64_t i = 0; i < d_.sentences; ++i) branches[0].drawn.push_back(i);
    // Nothing to decide, and nobody asks what it is worth: nothing to read.
    if (branches[0].grammar.walk().isDone() && !d_.wantsValues) {
      finish(std::move(branches[0]));
      return std::move(done_);
    }
    LOCUTION_RETURN_IF_ERROR(reader_.readPrompt(prompt.target, prompt.workload));
    for (size_t depth = 0; !branches.empty(); ++depth) {
      std::vector<Branch> next;
      std::vector<Reader::Row> rows;
      for (Branch& b : branches) part(b, depth, &next, &rows);
      if (rows.empty()) break;
      if (left_-- < 1) return std::vector<Decoded>();
      LOCUTION_RETURN_IF_ERROR(reader_.step(rows));
      branches.clear();
      for (Branch& b : next) {
        if (!b.grammar.isDone()) {
          branches.push_back(std::move(b));
          continue;
        }
        const double value = reader_.value(b.row);
        finish(std::move(b));
        done_.back().value = value;
      }
    }
    return std::move(done_);
  }

 private:
  void finish(Branch b) {
    const bool isLikeliest = !b.drawn.empty() && b.drawn.front() == 0;
    done_.push_back({b.grammar.walk(), 0, b.logProbability, static_cast<int64_t>(b.drawn.size()),
                     std::move(b.alternatives), b.isAlso, isLikeliest});
  }

  /// What the sentences of a branch say next.
  void part(Branch& b, size_t depth, std::vector<Branch>* next, std::vector<Reader::Row>* rows) {
    const std::vector<Token> legal = b.grammar.legal();
    if (b.grammar.walk().isDone()) {
      // The end is no decision; it is read for the value alone.
      if (!d_.wantsValues) return finish(std::move(b));
      LOCUTION_CHECK(b.grammar.accept(legal[0]));
      rows->push_back({b.row, legal[0]});
      b.row = rows->size() - 1;
      next->push_back(std::move(b));
      return;
    }
    const std::vector<double> likely = probabilities(legal, reader_.scores(b.row));
    std::vector<std::vector<int64_t>> drawn(legal.size());
    for (int64_t sentence : b.drawn) drawn[draw(likely, sentence, depth)].push_back(sentence);
    size_t also = legal.size();
    if (b.isAlso) {
      const space::Choice& choice = d_.also->at(b.grammar.walk().choices().size());
      const auto token = language::tokenOfChoice(choice.decision, choice.value);
      also = static_cast<size_t>(std::find(legal.begin(), legal.end(), token.value_or(-1)) - legal.begin());
      LOCUTION_CHECK(also < legal.size()) << space::choiceText(choice.decision, choice.value);
    }
    for (size_t i = 0; i < legal.size(); ++i) {
      if (drawn[i].empty() && i != also) continue;
      Branch child{b.grammar, b.logProbability + std::log(likely[i]), std::move(drawn[i]), i == also};
      if (i == also && d_.wantsAlternatives) {
        child.alternatives = std::move(b.alternatives);
        child.alternatives.push_back({legal, likely});
      }
      LOCUTION_CHECK(child.grammar.accept(legal[i]));
      if (child.grammar.walk().isDone() && !d_.wantsValues) {
        finish(std::move(child));
        continue;
      }
      child.row = rows->size();
      rows->push_back({b.row, legal[i]});
      next->push_back(std::move(child));
    }
  }

  std::vector<double> probabilities(const std::vector<Token>& legal, const float* scores) const {
    std::vector<double> out;
    double most = -1e300, sum = 0;
    for (Token t : legal) most = std::max<double>(most, scores[t - network_.first()]);
    for (Token t : legal) {
      out.push_back(portableExp(static_cast<double>(scores[t - network_.first()]) - most));
      sum += out.back();
    }
    for (double& p : out) p /= sum;
    return out;
  }

  /// The first of equally likely words.
  size_t draw(const std::vector<double>& likely, int64_t sentence, size_t depth) const {
    if (sentence == 0) return static_cast<size_t>(std::max_element(likely.begin(), likely.end()) - likely.begin());
    const uint64_t key[] = {static_cast<uint64_t>(sentence), depth};
    double left = static_cast<double>(hashBytes(key, sizeof(key), d_.seed) >> 11) * 0x1p-53;
    for (size_t i = 0; i < likely.size(); ++i) {
      left -= likely[i];
      if (left < 0) return i;
    }
    return likely.size() - 1;
  }

  Reader& reader_;
  const Network& network_;
  const space::Space& space_;
  const Decoding& d_;
  int64_t left_ = 0;
  std::vector<Decoded> done_;
};

}  // namespace

Result<std::vector<Decoded>> decode(Reader& reader, const Network& network, const space::Space& space,
                                    const Decoding& decoding) {
  return Decoder(reader, network, space, decoding).run();
}

// 2^n e^r with |r| <= ln2 / 2, by the series of e^r. Only operations that IEEE 754 defines to the last bit.
double portableExp(double x) {
  constexpr double kLog2E = 1.4426950408889634, kLn2High = 0.693147180369123816490,
                   kLn2Low = 1.90821492927058770002e-10;
  constexpr double kLeast = -700;
  if (!(x > kLeast)) return 0;
  const double n = std::floor(x * kLog2E + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double sum = 1;
  constexpr int kTerms = 14;
  for (int k = kTerms; k >= 1; --k) sum = 1 + sum * r / k;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace locution::generator::tlm
