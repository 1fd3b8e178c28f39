// Which tokens may follow a prefix. The target and the kernel are given; then come the decisions that the kernel's space asks for, and
// the end. Sampling, a model's mask, reading and mutation all ask here.
#pragma once

#include <vector>

#include "language/vocabulary.h"
#include "space/space.h"

namespace locution::language {

/// What every sentence of a space begins with: "TARGET |" and "WORKLOAD |".
struct Prompt {
  std::vector<Token> target, workload;
};
Prompt promptTokens(const space::Space& space);
/// The same in one.
std::vector<Token> prefixTokens(const space::Space& space);

/// The words that the answers to a walk's question are; those of a walk that is done: the end.
class Grammar {
 public:
  explicit Grammar(const space::Space& space) : walk_(space) {}

  /// The sentence is complete, its last token the end.
  bool isDone() const { return isEnded_; }
  /// At least one token, unless done. In the order of the walk's legal values.
  std::vector<Token> legal() const;
  /// False, and nothing changes, when the token is not legal.
  bool accept(Token token);
  const space::Walk& walk() const { return walk_; }

 private:
  space::Walk walk_;
  bool isEnded_ = false;
};

/// legal(prefix): the tokens that may follow the decisions so far (without "TARGET | WORKLOAD |"); none when they are no prefix of a
/// sentence, or a whole one.
std::vector<Token> legal(const space::Space& space, const std::vector<Token>& prefix);

}  // namespace locution::language
