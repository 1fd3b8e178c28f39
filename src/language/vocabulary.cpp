#include "language/vocabulary.h"

#include <string>
#include <unordered_map>

#include "support/check.h"
#include "support/hash.h"

namespace locution::language {

namespace {

constexpr std::string_view kWords[] = {
#define TOKEN(text) text,
#include "language/vocabulary.inc"
#undef TOKEN
};

}  // namespace

size_t vocabularySize() { return std::size(kWords); }

std::string_view wordOf(Token token) {
  LOCUTION_CHECK(token >= 0 && static_cast<size_t>(token) < vocabularySize()) << token;
  return kWords[token];
}

std::optional<Token> tokenOf(std::string_view word) {
  static const auto kTokens = [] {
    std::unordered_map<std::string_view, Token> tokens;
    for (size_t i = 0; i < vocabularySize(); ++i) tokens.emplace(kWords[i], static_cast<Token>(i));
    return tokens;
  }();
  auto found = kTokens.find(word);
  return found == kTokens.end() ? std::nullopt : std::make_optional(found->second);
}

uint64_t vocabularyHash(size_t count) {
  std::string all;
  for (size_t i = 0; i < count && i < vocabularySize(); ++i) all.append(kWords[i]).push_back('\n');
  return hashText(all);
}

}  // namespace locution::language
