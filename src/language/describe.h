// The words for what is given: the target and the kernel. Sizes and rates of the target stand on ladders of half octaves, so that noise
// of a measurement does not change a sentence; extents of iterators are exact.
#pragma once

#include <string>
#include <vector>

#include "core/target.h"
#include "space/space.h"

namespace locution::language {

using Words = std::vector<std::string>;

Words targetWords(const TargetSpec& target);
/// Stage after stage: what it combines, its iterators, each distinct operand with its steps by iterator (three to a word: `.` none, `1`,
/// `s` up to eight elements, `L` more, `?` not affine), the result, the kinds of operations at a point. Kernels of equal text
/// (space/workload.h) have equal words; unequal ones may, when they differ in nothing that plans depend on.
Words workloadWords(const space::Space& space);

/// "s64 +8" for 72 with the stem "s": the largest step of the ladder, then steps that add what is left.
Words numberWords(const std::string& stem, int64_t value);
/// The number that such words mean; 0: none.
int64_t numberOf(const std::string& stem, const Words& words);

}  // namespace locution::language
