// Reads one of our text forms from left to right; every parser of such a form (types, graphs) works on a cursor, so that
// errors name the line and what stood there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/status.h"

namespace locution {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  /// Skips white space and `//` comments to the end of their line.
  void skipSpace();
  bool atEnd();
  /// The next character after white space, '\0' at the end.
  char peek();
  /// Takes `token` if it comes next; a token that is a word must end where the word ends.
  bool eat(std::string_view token);
  Status expect(std::string_view token);
  /// The longest run of characters that `accept` likes, after white space; empty when there is none.
  template <typename Predicate>
  std::string_view word(Predicate accept) {
    skipSpace();
    size_t end = at_;
    while (end < text_.size() && accept(text_[end])) ++end;
    std::string_view out = text_.substr(at_, end - at_);
    at_ = end;
    return out;
  }
  /// A decimal integer with an optional sign. Error: none there, or out of range.
  Result<int64_t> integer();
  /// Text in double quotes as `quoted` writes it.
  Result<std::string> quotedText();
  /// "line 3: MESSAGE, found 'xyz'"
  Status fail(const std::string& message);

  /// Characters that are left.
  size_t remaining() const { return text_.size() - at_; }
  size_t position() const { return at_; }
  void rewind(size_t position) { at_ = position; }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

/// Nesting that a parser follows before it gives up: hostile text must not exhaust the stack.
constexpr int kMaxParseDepth = 200;

}  // namespace locution
