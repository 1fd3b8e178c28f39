// A kernel and its plan as numbers, for the cost model: what the table features.inc says of the two stages that do most, each with its
// decisions one by one, and a little about the kernel as a whole.
#pragma once

#include <string>
#include <vector>

#include "space/space.h"

namespace locution::generator {

/// One for each column.
const std::vector<std::string>& featureNames();
/// Of a walk that is done; a kernel of raw loops has none.
std::vector<float> featuresOf(const space::Walk& walk);
/// log2 of the seconds that a simple count of cycles and bytes gives: what plans are ranked by before anything is measured.
double estimateOf(const std::vector<float>& features);

}  // namespace locution::generator
