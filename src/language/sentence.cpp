#include "language/sentence.h"

#include <algorithm>

#include "language/describe.h"
#include "language/grammar.h"
#include "support/check.h"
#include "support/strings.h"

namespace locution::language {

using space::Choice;
using space::Choices;

namespace {

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text) {
    const bool isSpace = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!isSpace) word += c;
    if (isSpace && !word.empty()) words.push_back(std::exchange(word, {}));
  }
  if (!word.empty()) words.push_back(word);
  return words;
}

std::string legalText(const space::Walk& walk) {
  std::vector<std::string> words;
  for (int64_t value : walk.legal()) words.push_back(space::choiceText(walk.decision(), value));
  return join(words, " ");
}

Status illegal(const space::Walk& walk, const std::string& word, size_t place) {
  const std::string where = "word " + std::to_string(place + 1) + " of the plan, " + quoted(word);
  if (walk.isDone()) return Status::error(where + ": the plan is complete before it");
  return Status::error(where + ": not legal here; legal: " + legalText(walk));
}

Status otherPart(const char* what, const std::vector<std::string>& have, const Words& wanted) {
  return Status::error(std::string("the sentence is of another ") + what + ": it says " + quoted(join(have, " ")) +
                       ", which should be " + quoted(join(wanted, " ")));
}

}  // namespace

std::string planText(const Choices& choices) {
  std::string out;
  int32_t stage = -1;
  for (const Choice& c : choices) {
    if (!out.empty()) out += ' ';
    for (; stage < c.stage; ++stage)
      if (stage >= 0) out += "/ ";
    out += space::choiceText(c.decision, c.value);
  }
  return out;
}

Result<Choices> parsePlanText(const space::Space& space, std::string_view text) {
  space::Walk walk(space);
  const std::vector<std::string> words = wordsOf(text);
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "/") continue;
    const auto choice = space::parseChoice(words[i]);
    if (walk.isDone() || !choice || choice->first != walk.decision() || !walk.choose(choice->second))
      return illegal(walk, words[i], i);
  }
  if (!walk.isDone())
    return Status::error("the plan ends after " + std::to_string(words.size()) + " words, where " +
                         quoted(space::decisionName(walk.decision())) + " is open; legal: " + legalText(walk));
  return walk.choices();
}

std::string sentenceText(const space::Space& space, const Choices& choices) {
  return join(targetWords(space.target()), " ") + " | " + join(workloadWords(space), " ") + " | " + planText(choices);
}

Result<Choices> parseSentence(const space::Space& space, std::string_view text) {
  const std::vector<std::string> parts = splitText(text, '|');
  if (parts.size() != 3) return Status::error("a sentence has three parts: TARGET | WORKLOAD | PLAN");
  const std::vector<std::string> target = wordsOf(parts[0]), workload = wordsOf(parts[1]);
  if (target != targetWords(space.target())) return otherPart("target", target, targetWords(space.target()));
  if (workload != workloadWords(space)) return otherPart("kernel", workload, workloadWords(space));
  return parsePlanText(space, parts[2]);
}

std::vector<Token> sentenceTokens(const space::Space& space, const Choices& choices) {
  std::vector<Token> tokens = prefixTokens(space);
  Grammar grammar(space);
  auto take = [&](const std::string& word) {
    const auto token = tokenOf(word);
    LOCUTION_CHECK(token && grammar.accept(*token)) << word << " is not legal";
    tokens.push_back(*token);
  };
  for (const Choice& c : choices) take(space::choiceText(c.decision, c.value));
  take("<end>");
  return tokens;
}

Result<Choices> choicesOf(const space::Space& space, const std::vector<Token>& tokens) {
  std::string text;
  for (Token t : tokens) {
    if (t < 0 || static_cast<size_t>(t) >= vocabularySize()) return Status::error("no token " + std::to_string(t));
    if (wordOf(t) != "<end>") text.append(wordOf(t)).push_back(' ');
  }
  if (tokens.empty() || wordOf(tokens.back()) != "<end>") return Status::error("the sentence has no end");
  return parseSentence(space, text);
}

}  // namespace locution::language
