// Products of 8-bit integers in groups of four along the reduction, as instructions for them want them.
#pragma once

#include <string>

#include "loop/compute.h"
#include "schedule/plan.h"

namespace locution::schedule {

/// Four iterations of a reduction loop taken at once (`dot2`, `dot4`).
struct Dot {
  std::string loop;     ///< the loop
  int64_t operand = 1;  ///< of the product: the one that is widened (dot2), the signed one (dot4)
  bool isWidened = false;
  bool isInOrder = false;  ///< of 16 bits both: products in pairs as they lie, not of bytes 0 and 2, 1 and 3
};
/// Whether the operand that is not widened has 16 bits already.
bool isInOrder(const loop::Stage& stage, int64_t operand);

/// Whether the stage is a sum of products of 8-bit integers in int32 that `dot` can take.
bool mayDot(const loop::Stage& stage, const Dot& dot);

/// Loops named dot.loop of four iterations give way to one pass with packed products:
///     for k.i in 0..4 { acc[..] = acc[..] + int32(x[k.i]) * int32(w[k.i]) }
/// ->  acc[..] = dot4(acc[..], join(join(x[0], x[1]), join(x[2], x[3])), join(join(w[0], w[1]), join(w[2], w[3])))
/// Shorter ones (a reduction's incomplete tile) stay as they are.
loop::Stmt packProducts(const loop::Stmt& s, const Dot& dot);

}  // namespace locution::schedule
