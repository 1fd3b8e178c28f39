// Contractions: sums of products of two operands.
#include "generator/rules.h"

namespace locution::generator {

bool planContraction(const StageQuestion&, schedule::Plan*) { return false; }

}  // namespace locution::generator
