#include "language/grammar.h"

#include <algorithm>

#include "language/choice_tokens.h"
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

Prompt promptTokens(const space::Space& space) {
  auto tokensOf = [](const Words& words) {
    std::vector<Token> tokens;
    for (const std::string& word : words) tokens.push_back(mustHave(word));
    tokens.push_back(mustHave("|"));
    return tokens;
  };
  return {tokensOf(targetWords(space.target())), tokensOf(workloadWords(space))};
}

std::vector<Token> prefixTokens(const space::Space& space) {
  Prompt prompt = promptTokens(space);
  prompt.target.insert(prompt.target.end(), prompt.workload.begin(), prompt.workload.end());
  return prompt.target;
}

std::vector<Token> Grammar::legal() const {
  if (isEnded_) return {};
  if (walk_.isDone()) return {endToken()};
  std::vector<Token> tokens;
  tokens.reserve(walk_.legal().size());
  for (int64_t value : walk_.legal()) {
    const auto token = tokenOfChoice(walk_.decision(), value);
    LOCUTION_CHECK(token.has_value()) << "no token for the word " << space::choiceText(walk_.decision(), value);
    tokens.push_back(*token);
  }
  return tokens;
}

bool Grammar::accept(Token token) {
  if (isEnded_) return false;
  if (walk_.isDone()) {
    isEnded_ = token == endToken();
    return isEnded_;
  }
  const auto choice = choiceOfToken(token);
  return choice && choice->first == walk_.decision() && walk_.choose(choice->second);
}

std::vector<Token> legal(const space::Space& space, const std::vector<Token>& prefix) {
  Grammar grammar(space);
  for (Token t : prefix)
    if (!grammar.accept(t)) return {};
  return grammar.legal();
}

}  // namespace locution::language
