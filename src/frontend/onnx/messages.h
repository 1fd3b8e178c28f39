// How messages name things from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace locution::frontend {

/// 'conv1', with anything unprintable escaped and what is too long for a message cut.
std::string named(std::string_view name);
/// "node 12 'conv1' (Conv, opset 13)", "node 3 (Gelu, domain com.microsoft, opset 1)"
std::string describeNode(int index, std::string_view name, std::string_view op, std::string_view domain, int64_t opset);

}  // namespace locution::frontend
