#include "language/grammar.h"

#include <algorithm>

#include "language/describe.h"
#include "support/check.h"

namespace locution::language {

namespace {

Token mustHave(const std::string& word) {
  const auto token = tokenOf(word);
  LOCUTION_CHECK(token.has_value()) << "no token for the word " << word;
  return *token;
}

}  // namespace

std::vector<Token> prefixTokens(const space::Space& space) {
  std::vector<Token> tokens;
  for (const Words& part : {targetWords(space.target()), workloadWords(space)}) {
    for (const std::string& word : part) tokens.push_back(mustHave(word));
    tokens.push_back(mustHave("|"));
  }
  return tokens;
}

std::vector<Token> Grammar::legal() const {
  if (isEnded_) return {};
  if (walk_.isDone()) return {mustHave("<end>")};
  std::vector<Token> tokens;
  for (int64_t value : walk_.legal()) tokens.push_back(mustHave(space::choiceText(walk_.decision(), value)));
  return tokens;
}

bool Grammar::accept(Token token) {
  if (isEnded_ || token < 0 || static_cast<size_t>(token) >= vocabularySize()) return false;
  if (walk_.isDone()) {
    isEnded_ = wordOf(token) == "<end>";
    return isEnded_;
  }
  const auto choice = space::parseChoice(wordOf(token));
  return choice && choice->first == walk_.decision() && walk_.choose(choice->second);
}

std::vector<Token> legal(const space::Space& space, const std::vector<Token>& prefix) {
  Grammar grammar(space);
  for (Token t : prefix)
    if (!grammar.accept(t)) return {};
  return grammar.legal();
}

}  // namespace locution::language
