// Regular expressions in RE2's syntax, for matching whole strings in time linear in the string (Thompson, "Regular expression
// search algorithm", 1968): no back-tracking, so no pattern from a model can hang or overflow the stack. Left out, with an error
// that says so: Unicode classes (\p{...}). Our own, because the runtime needs nothing but libc, and libstdc++'s <regex>
// recurses once a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/status.h"

namespace locution::hostops {

class Regex {
 public:
  static Result<Regex> parse(std::string_view pattern);
  /// The whole of `text`, which is UTF-8.
  bool matches(std::string_view text) const;

 private:
  friend class RegexParser;
  enum class Op : uint8_t { Class, Split, Jump, Assert, Match };
  enum class Place : uint8_t { TextBegin, TextEnd, LineBegin, LineEnd, Word, NotWord };
  struct Step {
    Op op;
    int32_t a = 0, b = 0;  // Split, Jump: where to; Class: index; Assert: a Place
  };
  using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  // inclusive, of code points

  void follow(int32_t at, uint32_t before, uint32_t after, std::vector<int32_t>& list, std::vector<uint32_t>& marks,
              uint32_t mark) const;
  static bool holds(Place place, uint32_t before, uint32_t after);

  std::vector<Step> steps_;
  std::vector<Ranges> classes_;
};

}  // namespace locution::hostops
