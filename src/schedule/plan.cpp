#include "schedule/plan.h"

#include <array>
#include <charconv>

#include "support/strings.h"

namespace locution::schedule {
namespace {

constexpr std::string_view kNames[] = {
#define PRIMITIVE(Name, text, help) text,
#include "schedule/primitives.inc"
#undef PRIMITIVE
};

bool takesFactor(Primitive p) {
  return p == Primitive::Split || p == Primitive::Pack || p == Primitive::Share || p == Primitive::Strip ||
         p == Primitive::Prefetch || p == Primitive::Winograd || p == Primitive::Dot2 || p == Primitive::Dot4 ||
         p == Primitive::Roll;
}

}  // namespace

std::string Plan::str() const {
  std::string out;
  for (const Step& s : steps) {
    if (!out.empty()) out += "; ";
    out += kNames[static_cast<size_t>(s.primitive)];
    if (s.primitive != Primitive::Share) out += s.stage < 0 ? " shared" : " s" + std::to_string(s.stage);
    for (const std::string& loop : s.loops) out += " " + loop;
    if (takesFactor(s.primitive)) out += " " + std::to_string(s.factor);
    if (s.primitive == Primitive::Split)
      out += s.tail == Tail::Mask ? " mask" : s.tail == Tail::Clamp ? " clamp" : " peel";
  }
  return out;
}

Result<Plan> parsePlan(std::string_view text) {
  Plan plan;
  if (text.empty()) return plan;
  for (const std::string& part : splitText(text, ';')) {
    std::vector<std::string> words;
    for (std::string& w : splitText(part, ' '))
      if (!w.empty()) words.push_back(std::move(w));
    if (words.empty()) return Status::error("an empty step in the plan");
    Step step;
    size_t kind = 0;
    while (kind < std::size(kNames) && kNames[kind] != words[0]) ++kind;
    if (kind == std::size(kNames)) return Status::error("unknown primitive '" + words[0] + "'");
    step.primitive = static_cast<Primitive>(kind);
    auto number = [](std::string_view w, int64_t* value) {
      auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), *value);
      return error == std::errc() && end == w.data() + w.size();
    };
    size_t next = 1;
    if (step.primitive != Primitive::Share) {
      int64_t stage = -1;
      if (next >= words.size() ||
          (words[next] != "shared" && (words[next][0] != 's' || !number(words[next].substr(1), &stage))))
        return Status::error("'" + part + "': the stage is missing (s0, s1 ... or shared)");
      step.stage = static_cast<int32_t>(stage);
      ++next;
    }
    size_t end = words.size();
    if (step.primitive == Primitive::Split) {
      if (end <= next || (words[end - 1] != "peel" && words[end - 1] != "mask" && words[end - 1] != "clamp"))
        return Status::error("'" + part + "': a split ends with peel, mask or clamp");
      --end;
      step.tail = words[end] == "mask" ? Tail::Mask : words[end] == "clamp" ? Tail::Clamp : Tail::Peel;
    }
    if (takesFactor(step.primitive)) {
      if (end <= next || !number(words[end - 1], &step.factor))
        return Status::error("'" + part + "': the number is missing");
      --end;
    }
    for (; next < end; ++next) step.loops.push_back(words[next]);
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

}  // namespace locution::schedule
