// A schedule as a value: the list of primitive applications that turn a Computation's stages into loops. Never a mutation of shared
// state: `apply` (apply.h) is the one function that reads it. Loops are named by their stage and a path: an axis starts as "i0",
// "r1"; split("i0", 6) makes "i0.o" and "i0.i"; fuse("a", "b") makes "a*b".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace locution::schedule {

enum class Primitive : uint8_t {
#define PRIMITIVE(Name, text, help) Name,
#include "schedule/primitives.inc"
#undef PRIMITIVE
};

/// What happens to the last, incomplete tile of a split.
enum class Tail : uint8_t {
  Peel,   ///< a copy of the body with smaller constant extents
  Mask,   ///< full extents, stores and unpacked loads guarded
  Clamp,  ///< the inner loop, serial and not divided further, ends where the axis does
};

struct Step {
  Primitive primitive;
  int32_t stage = 0;               ///< index into the Computation's stages; -1: the loops that all stages share
  std::vector<std::string> loops;  ///< what it applies to, in order
  int64_t factor = 0;  ///< Split: the inner extent; Pack, Prefetch, Dot2, Dot4: the operand; Share: how many axes;
                       ///< Strip, Roll: rows; Winograd: outputs of a tile
  Tail tail = Tail::Peel;
  bool operator==(const Step&) const = default;
};

struct Plan {
  std::vector<Step> steps;
  /// "split s0 i1 6 peel; reorder s0 i0 i1.o r0 i1.i; ..."
  std::string str() const;
  bool operator==(const Plan&) const = default;
};

Result<Plan> parsePlan(std::string_view text);

}  // namespace locution::schedule
