// Tensor sentences as text and as tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "language/vocabulary.h"
#include "space/space.h"
#include "support/status.h"

namespace locution::language {

/// "vec=i2 lanes=8 nr=2 row=i1 mr=6 ...": the choices in order, a slash before those of the next stage. Empty: nothing was asked.
std::string planText(const space::Choices& choices);
/// Errors: a word that is no decision, not the one asked for, or not legal; the message names it, its place, and what was legal.
Result<space::Choices> parsePlanText(const space::Space& space, std::string_view text);

/// "TARGET | WORKLOAD | PLAN"
std::string sentenceText(const space::Space& space, const space::Choices& choices);
/// Errors: the sentence is of another target or kernel than the space; those of parsePlanText.
Result<space::Choices> parseSentence(const space::Space& space, std::string_view text);

/// The sentence's tokens, from the target to the end.
std::vector<Token> sentenceTokens(const space::Space& space, const space::Choices& choices);
/// Its inverse. Errors: as parseSentence.
Result<space::Choices> choicesOf(const space::Space& space, const std::vector<Token>& tokens);

}  // namespace locution::language
