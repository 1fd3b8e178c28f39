// Words, numbers, symbols and quoted texts of loop IR's text form, one token at a time.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

#include "support/status.h"

namespace locution::loop {

enum class Token : unsigned char { Word, Number, Symbol, Text, End };

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  Token kind() const { return kind_; }
  /// The token; of a quoted text what stands between the quotes.
  std::string_view text() const { return token_; }
  int line() const { return line_; }
  /// The first character that begins no token, if there was one.
  const Status& status() const { return status_; }

  void advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) line_ += text_[at_++] == '\n';
    if (at_ >= text_.size()) return set(Token::End, 0);
    auto inWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    char c = text_[at_];
    size_t n = 0;
    if (c == '"') {
      size_t end = at_ + 1;
      while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
      if (end >= text_.size()) return fail("unfinished text");
      kind_ = Token::Text;
      token_ = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return;
    }
    if (std::isdigit(static_cast<unsigned char>(c))) {
      // 12, 0.5, 1e-05, 3_int8; but "0..64" is a number and a range.
      for (n = 1; at_ + n < text_.size(); ++n) {
        char d = text_[at_ + n], before = text_[at_ + n - 1];
        bool dot =
            d == '.' && at_ + n + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + n + 1]));
        bool sign = (d == '-' || d == '+') && before == 'e';
        if (!inWord(d) && !dot && !sign) break;
      }
      return set(Token::Number, n);
    }
    if (inWord(c)) {
      while (at_ + n < text_.size() && inWord(text_[at_ + n])) ++n;
      return set(Token::Word, n);
    }
    static constexpr std::string_view kSymbols[] = {
        "..+", "->", "..", "//", "%%", "<<", ">>", "==", "!=", "<=", "+", "-", "*", "/", "%",
        "&",   "|",  "^",  "<",  ">",  "=",  "(",  ")",  "[",  "]",  "{", "}", ",", ":", ";"};
    for (std::string_view s : kSymbols)
      if (text_.substr(at_, s.size()) == s) return set(Token::Symbol, s.size());
    fail("unexpected character");
  }

 private:
  void set(Token kind, size_t length) {
    kind_ = kind;
    token_ = text_.substr(at_ < text_.size() ? at_ : text_.size(), length);
    at_ += length;
  }
  void fail(const std::string& what) {
    if (status_.isOk()) status_ = Status::error("line " + std::to_string(line_) + ": " + what);
    at_ = text_.size();
    set(Token::End, 0);
  }

  std::string_view text_, token_;
  Token kind_ = Token::End;
  size_t at_ = 0;
  int line_ = 1;
  Status status_;
};

}  // namespace locution::loop
