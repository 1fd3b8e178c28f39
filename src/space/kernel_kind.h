// What kind of kernel it is, read off its stages (the rules: kernel_kinds.inc).
#pragma once

#include <cstdint>
#include <string_view>

#include "loop/compute.h"

namespace locution::space {

enum class KernelKind : uint8_t {
#define KERNEL_KIND(Name, text, rule) Name,
#include "space/kernel_kinds.inc"
#undef KERNEL_KIND
};

KernelKind kindOf(const loop::Computation& kernel);
std::string_view kindText(KernelKind kind);
/// Multiply-adds of one run: the points that products sum. 0 without a product; of raw loops half their operations.
double multiplyAdds(const loop::Computation& kernel);

}  // namespace locution::space
