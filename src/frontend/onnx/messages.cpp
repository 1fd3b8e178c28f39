#include "frontend/onnx/messages.h"

#include "support/strings.h"

namespace locution::frontend {

std::string named(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string text = quoted(name.substr(0, kLongest));
  text = "'" + text.substr(1, text.size() - 2) + "'";
  return name.size() > kLongest ? text + "..." : text;
}

std::string describeNode(int index, std::string_view name, std::string_view op, std::string_view domain,
                         int64_t opset) {
  auto plain = [](std::string_view text) {
    std::string quotes = named(text);
    return quotes.substr(1, quotes.size() - 2);
  };
  std::string out = "node " + std::to_string(index) + " ";
  if (!name.empty()) out += named(name) + " ";
  out += "(" + plain(op);
  if (!domain.empty()) out += ", domain " + plain(domain);
  if (opset > 0) out += ", opset " + std::to_string(opset);
  return out + ")";
}

}  // namespace locution::frontend
