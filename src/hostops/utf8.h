// UTF-8, one code point at a time. A byte that begins no valid sequence is a code point of its own (kInvalid + byte), so that
// text is never lost.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace locution::hostops {

constexpr uint32_t kInvalidUtf8 = 0x110000;

/// Takes the next code point off `text`, which must not be empty.
inline uint32_t takeCodePoint(std::string_view& text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(0);
  size_t length = lead < 0x80                   ? 1
                  : lead >= 0xc2 && lead < 0xe0 ? 2
                  : lead >= 0xe0 && lead < 0xf0 ? 3
                  : lead >= 0xf0 && lead < 0xf5 ? 4
                                                : 0;
  uint32_t code = length == 1 ? lead : lead & (0x7fU >> length);
  bool valid = length > 0 && text.size() >= length;
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xc0) == 0x80;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  valid = valid && code >= kLeast[length] && code < kInvalidUtf8 && (code < 0xd800 || code > 0xdfff);
  text.remove_prefix(valid ? length : 1);
  return valid ? code : kInvalidUtf8 + lead;
}

inline void appendCodePoint(std::string& out, uint32_t code) {
  if (code >= kInvalidUtf8) {
    out += static_cast<char>(code - kInvalidUtf8);
  } else if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

}  // namespace locution::hostops
