// When a kernel's parallel loop is worth handing to other threads: one rule for running and for measuring.
#pragma once

#include <algorithm>
#include <cstdint>

namespace locution::runtime {

/// `flops`, `bytes`: of one run of the kernel; both zero: not known. A loop that is done before another thread has taken its share of it
/// stays with the caller.
inline bool isWorthSharing(int64_t parallelExtent, double flops, double bytes) {
  constexpr double kMinNs = 4000, kFlopsPerNs = 20, kBytesPerNs = 10;
  if (parallelExtent <= 1) return false;
  return (flops <= 0 && bytes <= 0) || std::max(flops / kFlopsPerNs, bytes / kBytesPerNs) >= kMinNs;
}

}  // namespace locution::runtime
