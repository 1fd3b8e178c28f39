// Operators that move or reduce nothing: slices of everything, pads of zero, pools over one element.
#include <algorithm>

#include "ops/helpers.h"
#include "passes/simplify_rules.h"

namespace locution::passes {
namespace {

bool allAre(const Ints& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v == value; });
}

void sliceOfAll(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  // With steps of 1, the whole extent can only be everything from its start.
  std::optional<Ints> steps = node.hasInput(4) ? constantInts(graph, node.input(4)) : Ints{};
  if (steps && allAre(*steps, 1)) becomeInput(patch, id, 0);
}

void concatOfOne(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  if (node.inputs.size() == 1) {
    becomeInput(patch, id, 0);
    return;
  }
  std::vector<ValueId> kept;
  for (ValueId v : node.inputs) {
    std::optional<Ints> dims = staticExtents(graph, v);
    if (!dims) return;
    if (elementsOf(*dims) != 0) kept.push_back(v);
  }
  if (!kept.empty() && kept.size() < node.inputs.size()) patch.setInputs(id, std::move(kept));
}

void sameShape(Patch& patch, NodeId id) { becomeInput(patch, id, 0); }

void padOfNothing(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  std::optional<Ints> pads = constantInts(graph, graph.node(id).input(1));
  if (pads && allAre(*pads, 0)) becomeInput(patch, id, 0);
}

void splitIntoOne(Patch& patch, NodeId id) {
  if (patch.graph().node(id).outputs.size() == 1) becomeInput(patch, id, 0);
}

void resizeToSame(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  if (node.stringAttr("coordinate_transformation_mode", "") == "tf_crop_and_resize") return;
  const Tensor* scales = graph.constant(node.input(2));
  bool byScales = scales && scales->elements() > 0;
  for (int64_t i = 0; byScales && i < scales->elements(); ++i)
    if (scales->elementAsDouble(i) != 1) return;
  if (!byScales &&
      (!graph.constant(node.input(3)) || node.stringAttr("keep_aspect_ratio_policy", "stretch") != "stretch"))
    return;
  becomeInput(patch, id, 0);
}

/// A window of one element that moves by one.
void poolOfOne(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  if (node.outputs.size() > 1 && node.outputs[1].isValid()) return;
  Ints kernel = node.intsAttr("kernel_shape");
  if (!kernel.empty() && allAre(kernel, 1) && allAre(node.intsAttr("strides"), 1) && allAre(node.intsAttr("pads"), 0))
    becomeInput(patch, id, 0);
}

/// Reductions over axes of extent 1 that leave the element as it is.
void reduceOfOne(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  ValueId in = node.input(0), out = node.outputs[0];
  std::optional<Ints> from = staticExtents(graph, in), to = staticExtents(graph, out);
  if (!from || !to || graph.type(in).dtype != graph.type(out).dtype || elementsOf(*from) == 0) return;
  // As many elements out as in: nothing of extent over 1 was reduced.
  if (elementsOf(*from) != elementsOf(*to)) return;
  if (node.hasInput(1) && !graph.constant(node.input(1))) return;
  replaceOutput(patch, id, emitReshape(patch, id, id, in, *to));
}

void decidedIf(Patch& patch, NodeId id) { inlineDecidedIf(patch, id); }

/// An elementwise node broadcasts by itself what Expand broadcast for it.
void expandIntoReader(Patch& patch, NodeId id) {
  const Graph& graph = patch.graph();
  const Node& node = graph.node(id);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    NodeId expand = producerIs(graph, node.input(i), "Expand");
    if (!expand.isValid()) continue;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      shapes.push_back(graph.type(k == i ? graph.node(expand).input(0) : node.input(k)).shape);
    Result<Shape> shape = ops::broadcastShapes(shapes);
    if (shape.isOk() && shape->isRanked() && *shape == graph.type(node.outputs[0]).shape)
      patch.setInput(id, i, graph.node(expand).input(0));
  }
}

}  // namespace

const std::vector<SimplifyRule>& movementRules() {
  static const std::vector<SimplifyRule> kRules = [] {
    std::vector<SimplifyRule> rules = {
        {"Slice", sliceOfAll},        {"Concat", concatOfOne},
        {"Expand", sameShape},        {"Pad", padOfNothing},
        {"Tile", sameShape},          {"Split", splitIntoOne},
        {"Resize", resizeToSame},     {"MaxPool", poolOfOne},
        {"AveragePool", poolOfOne},   {"GlobalAveragePool", sameShape},
        {"GlobalMaxPool", sameShape}, {"If", decidedIf},
    };
    for (std::string_view op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"})
      rules.push_back({op, reduceOfOne});
    for (std::string_view op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod", "Where", "Equal", "Less",
                                "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Xor"})
      rules.push_back({op, expandIntoReader});
    return rules;
  }();
  return kRules;
}

}  // namespace locution::passes
