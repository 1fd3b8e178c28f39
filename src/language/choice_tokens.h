// The words that answers to a walk's questions are, without their text: what decoding asks for at every step.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "language/vocabulary.h"
#include "space/decision.h"

namespace locution::language {

/// Of "mr=6"; null when the vocabulary has no such word.
std::optional<Token> tokenOfChoice(space::Decision decision, int64_t value);
/// Null for words that are no decision, and for numbers that are no token.
std::optional<std::pair<space::Decision, int64_t>> choiceOfToken(Token token);
/// Decisions have words from here on; others may stand among them.
Token firstChoiceToken();
Token endToken();

}  // namespace locution::language
