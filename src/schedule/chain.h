// Chains of products: stages between two sums of products (attention's scores, their softmax, the values) that can run strip by strip
// of rows, so that what lies between stays in the caches and never reaches memory.
#pragma once

#include <optional>
#include <vector>

#include "loop/compute.h"

namespace locution::schedule {

/// A stage that sums products of two operands.
bool isProductSum(const loop::Stage& stage);

/// For each stage its axes that stand for the same loops, in the order of the first stage's: every load of another's temporary is at
/// exactly those. Nothing when a stage reads none of the others or no axis is left.
std::optional<std::vector<std::vector<size_t>>> alignStages(const std::vector<loop::Stage>& stages);

/// The end (one past) of the chain that begins with stage `first`; `first` itself when none does.
size_t chainEnd(const loop::Computation& computation, size_t first);

/// Stages between two products that need nothing of the first (a copy of the values) move before it, so that chains are seen.
void gatherChains(std::vector<loop::Stage>* stages);

/// An expensive call that a reduction and a later stage both evaluate at each element becomes a stage of its own: within a chain, where
/// temporaries are cheap.
void storeRepeated(std::vector<loop::Stage>* stages, const std::vector<loop::BufferRef>& outputs);

/// The stage whose temporary the point-by-point stage `k` may write over: it reads each element just before it writes the same one, and
/// nobody reads it later.
std::optional<size_t> overwrites(const std::vector<loop::Stage>& stages, const std::vector<loop::BufferRef>& outputs,
                                 size_t k);

/// Bytes of temporaries for one row of a strip.
int64_t stripRowBytes(const std::vector<loop::Stage>& stages, const std::vector<loop::BufferRef>& outputs,
                      const std::vector<std::vector<size_t>>& at);

/// A kernel whose stages are a chain.
bool isChain(const loop::Computation& kernel);

}  // namespace locution::schedule
