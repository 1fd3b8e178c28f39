// From a kernel's space to plans: the model's words under the grammar's mask. Sentences that begin alike are read once, as far as they
// are alike. What is drawn depends on the network, the space and the seed alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "generator/tlm/reader.h"
#include "language/grammar.h"
#include "space/space.h"
#include "support/status.h"

namespace locution::generator::tlm {

struct Decoding {
  /// Sentences to draw. The first takes the likeliest word each time, the others what the probabilities give.
  int64_t sentences = 1;
  uint64_t seed = 0;
  /// Asks the value of every sentence, at the price of reading its last word.
  bool wantsValues = false;
  /// A sentence that is read along, to know its value.
  std::optional<space::Choices> also = std::nullopt;
  /// Keeps what could have been said instead of each word of it.
  bool wantsAlternatives = false;
};

/// The words that were legal, and how likely the model found each.
struct Alternatives {
  std::vector<language::Token> legal;
  std::vector<double> likely;
};

struct Decoded {
  space::Walk walk;
  double value = 0;  ///< log(time / roofline), as the model sees it
  double logProbability = 0;
  int64_t count = 0;                            ///< how many of the drawn sentences it is
  std::vector<Alternatives> alternatives = {};  ///< word by word, where they were asked for
  bool isAlso = false;                          ///< Decoding::also is it
  bool isLikeliest = false;                     ///< the first of the drawn sentences is it
};

/// Each distinct sentence once, in the order in which they part. Nothing where the sentence is longer than the model reads.
Result<std::vector<Decoded>> decode(Reader& reader, const Network& network, const space::Space& space,
                                    const Decoding& decoding);

/// e^x, the same on every machine; x at most 0.
double portableExp(double x);

}  // namespace locution::generator::tlm
