// layout: where there are convolutions, they and what lies between them run channels-last.
// Needs: types, batch norms folded (constants are in ONNX's order). Gives: convolutions, pooling and the like have channels_last = 1;
// transposes are left at the borders and where an op can't do without one. Graphs without convolutions stay as they are, and so do those
// whose convolutions are all matrix products of pixels and channels: they run as fast in either order, and transposes are not free.
//     %c = Conv(%x, %w); %r = Relu(%c); %y = MaxPool(%r)
// ->  %t = Transpose(%x, [0, 2, 3, 1]); %c = Conv(%t, %w) {channels_last = 1}; %r = Relu(%c); %m = MaxPool(%r) {channels_last = 1};
//     %y = Transpose(%m, [0, 3, 1, 2])
#include "passes/all_passes.h"
#include "passes/transpose_sinker.h"

namespace locution::passes {
namespace {

bool isConvolution(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.op != "Conv" && node.op != "ConvTranspose" && node.op != "ConvInteger" && node.op != "QLinearConv")
    return false;
  const int64_t rank = rankOf(graph, node.input(0));
  return rank >= 3 && rank <= 5 && rankOf(graph, node.outputs[0]) == rank;
}

/// It sums over channels alone, at every pixel.
bool isPointwise(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Shape& w = graph.type(node.input(1)).shape;
  if (node.op != "Conv" || !w.isRanked() || node.intAttr("group", 1) != 1) return false;
  for (size_t d = 2; d < static_cast<size_t>(w.rank()); ++d)
    if (!w[d].isKnown() || w[d].value() != 1) return false;
  auto isAll = [&](const char* name, int64_t value) {
    const std::vector<int64_t> values = node.intsAttr(name);
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == value; });
  };
  return isAll("strides", 1) && isAll("pads", 0);
}

}  // namespace

Status chooseLayout(Patch& patch, PassContext&) {
  const Graph& graph = patch.graph();
  bool any = false;
  graph.forEachNode([&](NodeId id) { any = any || (isConvolution(graph, id) && !isPointwise(graph, id)); });
  if (!any) return Status::ok();
  TransposeSinker sinker(patch);
  graph.forEachNode([&](NodeId id) {
    if (isConvolution(graph, id) && graph.node(id).intAttr("channels_last", 0) == 0)
      sinker.makeChannelsLast(id);
    else
      sinker.sink(id);
  });
  patch.removeDead();
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes
