// Small text helpers that messages and printers share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace locution {

/// "a, b, c"
template <typename Range>
std::string join(const Range& parts, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) out += separator;
    out += part;
    first = false;
  }
  return out;
}
std::vector<std::string> splitText(std::string_view text, char separator);
/// In double quotes with \n, \", \\ and non-printable bytes escaped: for names from files.
/// Where <iomanip> is included, write locution::quoted: std::quoted is found too.
std::string quoted(std::string_view text);
/// The inverse of `quoted` on the text between the quotes.
std::string unescaped(std::string_view text);

}  // namespace locution
