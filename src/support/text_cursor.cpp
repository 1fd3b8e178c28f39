#include "support/text_cursor.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "support/strings.h"

namespace locution {
namespace {

bool isWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

void TextCursor::skipSpace() {
  for (;;) {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    if (text_.substr(at_, 2) != "//") return;
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
}

bool TextCursor::atEnd() {
  skipSpace();
  return at_ == text_.size();
}

char TextCursor::peek() {
  skipSpace();
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool TextCursor::eat(std::string_view token) {
  skipSpace();
  if (text_.substr(at_, token.size()) != token) return false;
  size_t end = at_ + token.size();
  if (isWordChar(token.back()) && end < text_.size() && isWordChar(text_[end])) return false;
  at_ = end;
  return true;
}

Status TextCursor::expect(std::string_view token) {
  return eat(token) ? Status::ok() : fail("expected '" + std::string(token) + "'");
}

Result<int64_t> TextCursor::integer() {
  skipSpace();
  int64_t value = 0;
  auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) return fail("integer out of range");
  if (error != std::errc()) return fail("expected an integer");
  at_ = static_cast<size_t>(end - text_.data());
  return value;
}

Result<std::string> TextCursor::quotedText() {
  if (peek() != '"') return fail("expected a text in double quotes");
  size_t end = at_ + 1;
  while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
  if (end >= text_.size()) return fail("a text in double quotes without its end");
  std::string out = unescaped(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
  return out;
}

Status TextCursor::fail(const std::string& message) {
  skipSpace();
  auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  std::string_view found = text_.substr(at_, std::min<size_t>(24, text_.find('\n', at_) - at_));
  return Status::error("line " + std::to_string(line) + ": " + message + ", found " +
                       (found.empty() ? "the end" : quoted(found)));
}

}  // namespace locution
