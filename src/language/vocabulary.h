// The words of tensor sentences (vocabulary.inc). A token is a word's place in the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace locution::language {

using Token = int32_t;

/// Raised when the order of questions or the meaning of a word changes; appended words leave it as it is.
inline constexpr int kGrammarVersion = 1;

size_t vocabularySize();
std::string_view wordOf(Token token);
std::optional<Token> tokenOf(std::string_view word);
/// Of the first `count` words: what was made with them fits every longer list with the same hash.
uint64_t vocabularyHash(size_t count);

}  // namespace locution::language
