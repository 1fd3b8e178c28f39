#include "language/choice_tokens.h"

#include <algorithm>
#include <array>
#include <vector>

#include "support/check.h"

namespace locution::language {

namespace {

struct Tables {
  std::vector<std::optional<std::pair<space::Decision, int64_t>>> choices;       // by token
  std::array<std::vector<std::pair<int64_t, Token>>, space::kDecisions> tokens;  // by decision, values ascending
  Token first = 0, end = 0;
};

const Tables& tables() {
  static const Tables kTables = [] {
    Tables t;
    t.end = tokenOf("<end>").value_or(-1);
    t.first = static_cast<Token>(vocabularySize());
    for (Token token = 0; token < static_cast<Token>(vocabularySize()); ++token) {
      t.choices.push_back(space::parseChoice(wordOf(token)));
      if (!t.choices.back()) continue;
      t.first = std::min(t.first, token);
      t.tokens[static_cast<size_t>(t.choices.back()->first)].emplace_back(t.choices.back()->second, token);
    }
    for (auto& list : t.tokens) std::sort(list.begin(), list.end());
    return t;
  }();
  return kTables;
}

}  // namespace

std::optional<Token> tokenOfChoice(space::Decision decision, int64_t value) {
  const auto& list = tables().tokens[static_cast<size_t>(decision)];
  auto found = std::lower_bound(list.begin(), list.end(), std::pair<int64_t, Token>{value, 0});
  if (found == list.end() || found->first != value) return std::nullopt;
  return found->second;
}

std::optional<std::pair<space::Decision, int64_t>> choiceOfToken(Token token) {
  if (token < 0 || static_cast<size_t>(token) >= vocabularySize()) return std::nullopt;
  return tables().choices[static_cast<size_t>(token)];
}

Token firstChoiceToken() { return tables().first; }
Token endToken() { return tables().end; }

}  // namespace locution::language
