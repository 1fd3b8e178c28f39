// infer-shapes: types of all values in all regions, by the ops' own rules.
// Needs: types of the main inputs. Gives: dtype and, as far as it can be told, shape of every value; shapes that hang on the
// contents of integer values (Shape -> Gather -> Concat -> Reshape) are followed through those, symbols included.
//     input %x: float32[batchx8x4]; %s = Shape(%x); %n: ? = Reshape(%x, [0, -1])   ->   %n: float32[batchx32]
#include "passes/all_passes.h"
#include "passes/propagate.h"

namespace locution::passes {

Status inferShapes(Patch& patch, PassContext& context) { return Propagation(patch, context).run({}); }

}  // namespace locution::passes
