// Typed indices: a ValueId can't be used where a NodeId is meant.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace locution {

template <typename Tag>
struct Id {
  int32_t index = -1;
  constexpr bool isValid() const { return index >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

}  // namespace locution

template <typename Tag>
struct std::hash<locution::Id<Tag>> {
  size_t operator()(locution::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.index); }
};
