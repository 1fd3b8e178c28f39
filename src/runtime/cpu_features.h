// Does this CPU (and its operating system) have what code was compiled for? LLVM's feature names against cpuid or the
// kernel's hardware capabilities.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace locution::runtime {

/// "x86_64", "aarch64", or "unknown": as the first part of a triple.
std::string_view hostArchitecture();
/// The names with '+' in an LLVM feature string ("+avx2,+fma,-sse4a") that this machine lacks, in order. Names that stand
/// for no instructions (tuning hints) are never lacking.
std::vector<std::string> missingFeatures(std::string_view features);

}  // namespace locution::runtime
