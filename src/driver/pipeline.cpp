#include "driver/pipeline.h"

namespace locution::driver {

const std::vector<PipelineStep>& pipeline() {
  static const std::vector<PipelineStep> kSteps = {
      {"infer-shapes", "everything below asks for types"},
      {"integer-products", "quantised weights are still seen as such"},
      {"widen-bytes", "products have just become integer ones; their producers are not fused yet"},
      {"fold-constants", "shape arithmetic and weight preparation disappear before patterns are matched"},
      {"simplify", "identities hide patterns from each other"},
      {"cse", "equal branches of exporters' graphs become one"},
      {"dce", "what folding left over would be inferred and folded again"},
      {"infer-shapes", "decided branches and constants make more shapes known"},
      {"fold-constants", "with them, more contents"},
      {"fold-batch-norm", "needs constant weights; before layout, which would put transposes between"},
      {"simplify", "scales of one and offsets of zero go"},
      {"split-recurrent", "needs constant weights; the products it makes are laid out and fused like any other"},
      {"layout", "after all rewrites that match ONNX's own layout"},
      {"fold-constants", "weights and vectors that layout transposed"},
      {"simplify", "transposes that cancel"},
      {"sink-transposes", "what is left moves to where it is cheapest"},
      {"fold-constants", "constants that transposes moved onto"},
      {"split-conv-transpose", "channels are last; the transposes it makes stay where they are"},
      {"simplify", "pairs that met"},
      {"cse", "equal transposes of one value"},
      {"dce", "kernels are made of what is alive"},
      {"infer-shapes", "fusion needs every type"},
      {"fuse", "last: it hides nodes in kernels"},
  };
  return kSteps;
}

Status runPipeline(graph::Graph& graph, passes::PassContext& context, const passes::RunOptions& options) {
  for (const PipelineStep& step : pipeline()) {
    const passes::PassDef* pass = passes::findPass(step.pass);
    LOCUTION_CHECK(pass != nullptr) << step.pass;
    LOCUTION_RETURN_IF_ERROR(passes::runPass(*pass, graph, context, options));
  }
  return Status::ok();
}

}  // namespace locution::driver
