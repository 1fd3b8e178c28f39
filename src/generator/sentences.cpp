#include "generator/sentences.h"

#include <map>

#include "language/sentence.h"
#include "space/workload.h"
#include "support/check.h"
#include "support/strings.h"

namespace locution::generator {

namespace {

struct Line {
  size_t number = 0;
  std::string sentence;
};

class FromSentences : public Scheduler {
 public:
  FromSentences(std::map<std::string, Line> lines, std::string name, std::unique_ptr<Scheduler> otherwise)
      : lines_(std::move(lines)), name_(std::move(name)), otherwise_(std::move(otherwise)) {}

  std::string_view name() const override { return otherwise_->name(); }
  Status check(const loop::Computation& kernel, const TargetSpec& target) const override {
    const Line* line = find(kernel);
    if (!line) return otherwise_->check(kernel, target);
    Status s = language::parseSentence(space::Space(kernel, target), line->sentence).status();
    return s.isOk() ? s : s.withContext(name_ + ", line " + std::to_string(line->number));
  }
  schedule::Plan propose(const loop::Computation& kernel, const TargetSpec& target) const override {
    const space::Space space(kernel, target);
    auto chosen = choices(space);
    if (!chosen) return otherwise_->propose(kernel, target);
    auto plan = space::planOf(space, *chosen);
    LOCUTION_CHECK(plan.has_value()) << kernel.name;
    return *plan;
  }
  std::optional<space::Choices> choices(const space::Space& space) const override {
    const Line* line = find(space.kernel());
    if (!line) return otherwise_->choices(space);
    auto parsed = language::parseSentence(space, line->sentence);
    LOCUTION_CHECK(parsed.isOk()) << parsed.status().message();
    return *parsed;
  }

  std::string explain(const space::Space& space) const override {
    return find(space.kernel()) ? std::string() : otherwise_->explain(space);
  }

 private:
  const Line* find(const loop::Computation& kernel) const {
    if (kernel.raw) return nullptr;
    auto found = lines_.find(space::canonical(kernel).id());
    return found == lines_.end() ? nullptr : &found->second;
  }

  std::map<std::string, Line> lines_;
  std::string name_;
  std::unique_ptr<Scheduler> otherwise_;
};

}  // namespace

Result<std::unique_ptr<Scheduler>> makeFromSentences(const std::string& text, const std::string& name,
                                                     std::unique_ptr<Scheduler> otherwise) {
  std::map<std::string, Line> lines;
  size_t number = 0;
  for (const std::string& line : splitText(text, '\n')) {
    ++number;
    const size_t from = line.find_first_not_of(" \t\r");
    if (from == std::string::npos || line[from] == '#') continue;
    const size_t end = line.find_first_of(" \t", from);
    const std::string id = line.substr(from, end == std::string::npos ? end : end - from);
    constexpr size_t kDigits = 16;
    if (id.size() != kDigits || id.find_first_not_of("0123456789abcdef") != std::string::npos ||
        end == std::string::npos)
      return Status::error(name + ", line " + std::to_string(number) +
                           ": want the 16 digits of a workload, then TARGET | WORKLOAD | PLAN");
    if (!lines.emplace(id, Line{number, line.substr(end)}).second)
      return Status::error(name + ", line " + std::to_string(number) + ": workload " + id + " is named twice");
  }
  return std::unique_ptr<Scheduler>(std::make_unique<FromSentences>(std::move(lines), name, std::move(otherwise)));
}

std::string sentenceLine(const space::Space& space, const space::Choices& choices) {
  return space::canonical(space.kernel()).id() + " " + language::sentenceText(space, choices);
}

}  // namespace locution::generator
