#include "hostops/regex.h"

#include <algorithm>
#include <memory>

#include "hostops/utf8.h"
#include "support/strings.h"

namespace locution::hostops {
namespace {

constexpr uint32_t kNone = 0xffffffff;  // before the first and after the last character
constexpr uint32_t kHighest = kInvalidUtf8 + 0xff;
constexpr size_t kMaxSteps = 100000;  // as RE2: a pattern that grows past this is refused
constexpr int kMaxRepeat = 1000;
constexpr int kMaxDepth = 200;

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;
Ranges digits() { return {{'0', '9'}}; }
Ranges spaces() { return {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}}; }
Ranges words() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }

struct NamedClass {
  std::string_view name;
  Ranges ranges;
};
const std::vector<NamedClass>& posixClasses() {
  static const std::vector<NamedClass> kClasses = {
      {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {"ascii", {{0, 0x7f}}},
      {"blank", {{'\t', '\t'}, {' ', ' '}}},
      {"cntrl", {{0, 0x1f}, {0x7f, 0x7f}}},
      {"digit", {{'0', '9'}}},
      {"graph", {{'!', '~'}}},
      {"lower", {{'a', 'z'}}},
      {"print", {{' ', '~'}}},
      {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {"space", {{'\t', '\r'}, {' ', ' '}}},
      {"upper", {{'A', 'Z'}}},
      {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return kClasses;
}

Ranges sorted(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges out;
  for (const auto& r : ranges) {
    if (!out.empty() && r.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, r.second);
    else
      out.push_back(r);
  }
  return out;
}
Ranges complement(const Ranges& ranges) {
  Ranges out;
  uint32_t next = 0;
  for (const auto& [low, high] : sorted(ranges)) {
    if (low > next) out.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= kHighest) out.emplace_back(next, kHighest);
  return out;
}
// Letters of ASCII and Latin-1 in both cases; that is what (?i) means here.
Ranges bothCases(Ranges ranges) {
  Ranges extra;
  auto mirror = [&](uint32_t low, uint32_t high, int32_t shift) {
    for (const auto& [from, to] : ranges) {
      uint32_t l = std::max(from, low), h = std::min(to, high);
      if (l <= h) extra.emplace_back(l + static_cast<uint32_t>(shift), h + static_cast<uint32_t>(shift));
    }
  };
  mirror('A', 'Z', 32);
  mirror('a', 'z', -32);
  mirror(0xc0, 0xd6, 32);
  mirror(0xd8, 0xde, 32);
  mirror(0xe0, 0xf6, -32);
  mirror(0xf8, 0xfe, -32);
  ranges.insert(ranges.end(), extra.begin(), extra.end());
  return sorted(std::move(ranges));
}
void add(Ranges& to, const Ranges& from) { to.insert(to.end(), from.begin(), from.end()); }

bool isWord(uint32_t c) {
  return c < 0x80 && ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z'));
}

}  // namespace

// Recursive descent straight to steps: a piece of pattern becomes a range of steps_, copied for a repetition.
class RegexParser {
 public:
  explicit RegexParser(std::string_view pattern) : rest_(pattern) {}

  Result<Regex> run() {
    alternation(0);
    if (error_.empty() && !rest_.empty()) error_ = "a ) that closes nothing";
    if (!error_.empty()) return Status::error(error_);
    emit({Regex::Op::Match});
    return std::move(out_);
  }

 private:
  struct Flags {
    bool ignoreCase = false, multiLine = false, dotAll = false;
  };
  using Op = Regex::Op;
  using Place = Regex::Place;
  using Step = Regex::Step;

  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
    rest_ = {};
  }
  bool take(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  char peek() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool isAt(char c) const { return !rest_.empty() && rest_[0] == c; }

  size_t here() const { return out_.steps_.size(); }
  void emit(Step step) {
    if (here() >= kMaxSteps) return fail("too large");
    out_.steps_.push_back(step);
  }
  void emitClass(Ranges ranges) {
    if (flags_.ignoreCase) ranges = bothCases(std::move(ranges));
    out_.classes_.push_back(sorted(std::move(ranges)));
    emit({Op::Class, static_cast<int32_t>(out_.classes_.size()) - 1});
  }
  void emitPlace(Place place) { emit({Op::Assert, static_cast<int32_t>(place)}); }
  /// Steps from `from` on, cut off; jumps in them are relative to it.
  std::vector<Step> cut(size_t from) {
    std::vector<Step> piece(out_.steps_.begin() + static_cast<int64_t>(from), out_.steps_.end());
    out_.steps_.resize(from);
    for (Step& s : piece) {
      if (s.op == Op::Split || s.op == Op::Jump) s.a -= static_cast<int32_t>(from);
      if (s.op == Op::Split) s.b -= static_cast<int32_t>(from);
    }
    return piece;
  }
  void paste(const std::vector<Step>& piece) {
    auto base = static_cast<int32_t>(here());
    if (here() + piece.size() > kMaxSteps) return fail("too large");
    for (Step s : piece) {
      if (s.op == Op::Split || s.op == Op::Jump) s.a += base;
      if (s.op == Op::Split) s.b += base;
      out_.steps_.push_back(s);
    }
  }

  void alternation(int depth) {
    if (depth > kMaxDepth) return fail("nested too deep");
    Flags outer = flags_;
    std::vector<std::vector<Step>> branches;
    size_t from = here();
    do {
      sequence(depth);
      branches.push_back(cut(from));
    } while (take("|"));
    flags_ = outer;
    // split L1, next; L1: branch; jump end; next: ...
    std::vector<size_t> exits;
    for (size_t i = 0; i < branches.size() && error_.empty(); ++i) {
      if (i + 1 < branches.size()) {
        auto at = static_cast<int32_t>(here());
        emit({Op::Split, at + 1, at + 2 + static_cast<int32_t>(branches[i].size())});
      }
      paste(branches[i]);
      if (i + 1 < branches.size()) {
        exits.push_back(here());
        emit({Op::Jump});
      }
    }
    if (!error_.empty()) return;
    for (size_t at : exits) out_.steps_[at].a = static_cast<int32_t>(here());
  }

  void sequence(int depth) {
    while (!rest_.empty() && (quoting_ || (peek() != '|' && peek() != ')'))) {
      size_t from = here();
      bool repeatable = quoting_ ? quotedCharacter() : atom(depth);
      if (!error_.empty()) return;
      if (!quoting_) repetition(from, repeatable);
    }
  }

  void repetition(size_t from, bool repeatable) {
    bool any = false;
    for (;;) {
      int least = 0, most = 0;
      std::string_view before = rest_;
      if (take("*")) {
        least = 0, most = -1;
      } else if (take("+")) {
        least = 1, most = -1;
      } else if (take("?")) {
        least = 0, most = 1;
      } else if (!counted(&least, &most)) {
        return;
      }
      if (!error_.empty()) return;
      if (!repeatable) return fail("nothing to repeat before " + quoted(before.substr(0, 1)));
      if (any) return fail("a repetition of a repetition");
      any = true;
      take("?");  // lazy or not makes no difference to a whole match
      repeat(from, least, most);
    }
  }

  // {n}, {n,}, {n,m}; anything else in braces is literal.
  bool counted(int* least, int* most) {
    if (!isAt('{')) return false;
    std::string_view saved = rest_;
    rest_.remove_prefix(1);
    auto number = [&](int* out) {
      if (peek() < '0' || peek() > '9') return false;
      *out = 0;
      while (peek() >= '0' && peek() <= '9') {
        *out = std::min(*out * 10 + (peek() - '0'), kMaxRepeat + 1);
        rest_.remove_prefix(1);
      }
      return true;
    };
    bool ok = number(least);
    *most = *least;
    if (ok && take(",") && !number(most)) *most = -1;
    if (!ok || !take("}")) {
      rest_ = saved;
      return false;
    }
    if (*least > kMaxRepeat || *most > kMaxRepeat) fail("more than " + std::to_string(kMaxRepeat) + " repetitions");
    if (*most >= 0 && *most < *least) fail("a repetition of at most less than at least");
    return true;
  }

  void repeat(size_t from, int least, int most) {
    std::vector<Step> piece = cut(from);
    auto length = static_cast<int32_t>(piece.size());
    for (int i = 0; i < least && error_.empty(); ++i) paste(piece);
    auto at = [this] { return static_cast<int32_t>(here()); };
    if (most < 0) {
      // loop: split in, out; in: piece; jump loop
      int32_t loop = at();
      emit({Op::Split, loop + 1, loop + 2 + length});
      paste(piece);
      emit({Op::Jump, loop});
      return;
    }
    std::vector<size_t> exits;
    for (int i = least; i < most && error_.empty(); ++i) {
      exits.push_back(here());
      emit({Op::Split, at() + 1});
      paste(piece);
    }
    if (!error_.empty()) return;
    for (size_t e : exits) out_.steps_[e].b = at();
  }

  // Between \Q and \E.
  bool quotedCharacter() {
    bool any = !take("\\E");
    if (any) {
      uint32_t c = takeCodePoint(rest_);
      emitClass({{c, c}});
    }
    quoting_ = any && !take("\\E");
    return any;
  }

  // False for what can't be repeated.
  bool atom(int depth) {
    if (take("(")) {
      group(depth);
      return true;
    }
    if (take("[")) {
      bracket();
      return true;
    }
    if (take(".")) {
      emitClass(flags_.dotAll ? Ranges{{0, kHighest}} : complement({{'\n', '\n'}}));
      return true;
    }
    if (take("^")) {
      emitPlace(flags_.multiLine ? Place::LineBegin : Place::TextBegin);
      return true;
    }
    if (take("$")) {
      emitPlace(flags_.multiLine ? Place::LineEnd : Place::TextEnd);
      return true;
    }
    if (isAt('*') || isAt('+') || isAt('?')) return false;
    if (take("\\")) {
      escape();
      return true;
    }
    uint32_t c = takeCodePoint(rest_);
    emitClass({{c, c}});
    return true;
  }

  void group(int depth) {
    Flags outer = flags_;
    if (take("?P<") || take("?<")) {
      if (isAt('=') || isAt('!')) return fail("look-behind is not supported");
      size_t end = rest_.find('>');
      if (end == std::string_view::npos || end == 0) return fail("a group name without an end");
      rest_.remove_prefix(end + 1);
    } else if (take("?")) {
      bool on = true, closed = false;
      while (!closed && !isAt(':')) {
        if (take("-"))
          on = false;
        else if (take("i"))
          flags_.ignoreCase = on;
        else if (take("m"))
          flags_.multiLine = on;
        else if (take("s"))
          flags_.dotAll = on;
        else if (take("U"))
          continue;  // which match is preferred does not matter
        else if (take(")"))
          closed = true;
        else
          return fail("an unknown kind of group");
      }
      if (closed) return;  // (?i): from here to the end of the surrounding group
      take(":");
    }
    alternation(depth + 1);
    if (!error_.empty()) return;
    if (!take(")")) return fail("a ( that nothing closes");
    flags_ = outer;
  }

  // One of \d \s \w and their opposites; false when `c` is none.
  static bool perlClass(char c, Ranges* out) {
    switch (c) {
      case 'd':
        *out = digits();
        return true;
      case 's':
        *out = spaces();
        return true;
      case 'w':
        *out = words();
        return true;
      case 'D':
        *out = complement(digits());
        return true;
      case 'S':
        *out = complement(spaces());
        return true;
      case 'W':
        *out = complement(words());
        return true;
      default:
        return false;
    }
  }

  void escape() {
    if (rest_.empty()) return fail("a \\ at the end");
    Ranges ranges;
    if (perlClass(peek(), &ranges)) {
      rest_.remove_prefix(1);
      return emitClass(std::move(ranges));
    }
    if (take("A")) return emitPlace(Place::TextBegin);
    if (take("z")) return emitPlace(Place::TextEnd);
    if (take("b")) return emitPlace(Place::Word);
    if (take("B")) return emitPlace(Place::NotWord);
    if (take("C")) return fail("\\C is not supported");
    if (take("Q")) {
      quoting_ = true;
      return;
    }
    uint32_t c = escapedCharacter();
    if (error_.empty()) emitClass({{c, c}});
  }

  // After the backslash.
  uint32_t escapedCharacter() {
    char c = peek();
    if (c == 'p' || c == 'P') {
      fail("Unicode classes (\\p) are not supported");
      return 0;
    }
    if (take("a")) return '\a';
    if (take("f")) return '\f';
    if (take("n")) return '\n';
    if (take("r")) return '\r';
    if (take("t")) return '\t';
    if (take("v")) return '\v';
    if (take("x")) return hexadecimal();
    if (c >= '0' && c <= '7') {
      uint32_t value = 0;
      int digits = 0;
      for (; digits < 3 && peek() >= '0' && peek() <= '7'; ++digits, rest_.remove_prefix(1))
        value = value * 8 + static_cast<uint32_t>(peek() - '0');
      if (c != '0' && digits == 1) fail("back-references are not supported");
      return value;
    }
    if (isWord(static_cast<unsigned char>(c)) || rest_.empty()) {
      fail("an unknown escape \\" + std::string(1, c));
      return 0;
    }
    return takeCodePoint(rest_);
  }

  uint32_t hexadecimal() {
    bool braced = take("{");
    uint32_t value = 0;
    int digits = 0;
    for (; (braced || digits < 2) && !rest_.empty(); ++digits, rest_.remove_prefix(1)) {
      char c = peek();
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) break;
      value = std::min(value * 16 + static_cast<uint32_t>(digit), kInvalidUtf8);
    }
    if (digits == 0 || (braced ? !take("}") : digits != 2) || value >= kInvalidUtf8) fail("a bad \\x escape");
    return value;
  }

  // After the opening bracket.
  void bracket() {
    bool negated = take("^");
    Ranges ranges;
    for (bool first = true; first || !isAt(']'); first = false) {
      if (rest_.empty()) return fail("a [ that nothing closes");
      if (posixClass(ranges)) continue;
      Ranges perl;
      if (isAt('\\') && rest_.size() > 1 && perlClass(rest_[1], &perl)) {
        rest_.remove_prefix(2);
        add(ranges, perl);
        continue;
      }
      uint32_t low = bracketCharacter(), high = low;
      if (isAt('-') && rest_.size() > 1 && rest_[1] != ']') {
        rest_.remove_prefix(1);
        high = bracketCharacter();
      }
      if (!error_.empty()) return;
      if (high < low) return fail("a range from high to low");
      ranges.emplace_back(low, high);
    }
    if (!take("]")) return fail("a [ that nothing closes");
    if (flags_.ignoreCase) ranges = bothCases(std::move(ranges));
    if (negated) {
      // Not through emitClass: both cases are in already, and the complement must keep them out.
      out_.classes_.push_back(complement(ranges));
      return emit({Op::Class, static_cast<int32_t>(out_.classes_.size()) - 1});
    }
    emitClass(std::move(ranges));
  }

  uint32_t bracketCharacter() {
    if (rest_.empty()) {
      fail("a [ that nothing closes");
      return 0;
    }
    if (take("\\")) return escapedCharacter();
    return takeCodePoint(rest_);
  }

  bool posixClass(Ranges& ranges) {
    if (rest_.substr(0, 2) != "[:") return false;
    size_t end = rest_.find(":]");
    if (end == std::string_view::npos) return false;
    std::string_view name = rest_.substr(2, end - 2);
    bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    for (const NamedClass& c : posixClasses()) {
      if (c.name != name) continue;
      add(ranges, negated ? complement(c.ranges) : c.ranges);
      rest_.remove_prefix(end + 2);
      return true;
    }
    fail("an unknown class " + std::string(rest_.substr(0, end + 2)));
    return true;
  }

  std::string_view rest_;
  Flags flags_;
  bool quoting_ = false;
  Regex out_;
  std::string error_;
};

Result<Regex> Regex::parse(std::string_view pattern) {
  auto regex = RegexParser(pattern).run();
  if (regex.isOk()) return regex;
  return Status::error("the pattern " + quoted(pattern) + " can't be used: " + regex.status().message());
}

bool Regex::holds(Place place, uint32_t before, uint32_t after) {
  switch (place) {
    case Place::TextBegin:
      return before == kNone;
    case Place::TextEnd:
      return after == kNone;
    case Place::LineBegin:
      return before == kNone || before == '\n';
    case Place::LineEnd:
      return after == kNone || after == '\n';
    case Place::Word:
      return isWord(before) != isWord(after);
    case Place::NotWord:
      return isWord(before) == isWord(after);
  }
  return false;
}

// Adds what can be reached from `at` without taking a character. The explicit stack keeps deep patterns off ours.
void Regex::follow(int32_t at, uint32_t before, uint32_t after, std::vector<int32_t>& list,
                   std::vector<uint32_t>& marks, uint32_t mark) const {
  std::vector<int32_t> stack = {at};
  while (!stack.empty()) {
    int32_t i = stack.back();
    stack.pop_back();
    if (marks[static_cast<size_t>(i)] == mark) continue;
    marks[static_cast<size_t>(i)] = mark;
    const Step& s = steps_[static_cast<size_t>(i)];
    switch (s.op) {
      case Op::Jump:
        stack.push_back(s.a);
        break;
      case Op::Split:
        stack.push_back(s.a);
        stack.push_back(s.b);
        break;
      case Op::Assert:
        if (holds(static_cast<Place>(s.a), before, after)) stack.push_back(i + 1);
        break;
      default:
        list.push_back(i);
    }
  }
}

bool Regex::matches(std::string_view text) const {
  std::vector<int32_t> now, next;
  std::vector<uint32_t> marks(steps_.size(), 0);
  uint32_t mark = 1, before = kNone;
  auto peekAfter = [](std::string_view rest) { return rest.empty() ? kNone : takeCodePoint(rest); };
  follow(0, before, peekAfter(text), now, marks, mark);
  while (!text.empty() && !now.empty()) {
    uint32_t c = takeCodePoint(text), after = peekAfter(text);
    ++mark;
    next.clear();
    for (int32_t i : now) {
      const Step& s = steps_[static_cast<size_t>(i)];
      if (s.op != Op::Class) continue;
      const Ranges& ranges = classes_[static_cast<size_t>(s.a)];
      auto at = std::upper_bound(ranges.begin(), ranges.end(), std::make_pair(c, kNone));
      if (at != ranges.begin() && c <= std::prev(at)->second) follow(i + 1, c, after, next, marks, mark);
    }
    now.swap(next);
    before = c;
  }
  return text.empty() &&
         std::any_of(now.begin(), now.end(), [&](int32_t i) { return steps_[static_cast<size_t>(i)].op == Op::Match; });
}

}  // namespace locution::hostops
