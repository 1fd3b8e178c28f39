// Types of the outputs of nodes with regions, from the types of what the regions give. The values inside are inferred by the pass that
// walks the graph, before these run.
#include <algorithm>

#include "ops/contexts.h"
#include "ops/families.h"
#include "ops/helpers.h"

namespace locution::ops {

namespace {

/// The types of a region's outputs, or an error when the node has no such region. The graph is known to graph contexts only.
Result<std::vector<ValueType>> regionOutputs(InferContext& c, size_t which) {
  const auto* context = dynamic_cast<const GraphInferContext*>(&c);
  if (!context) return Status::error("the regions can't be seen from here");
  if (which >= c.node().regions.size()) return Status::error("region " + std::to_string(which) + " is missing");
  const graph::Graph& graph = context->graph();
  std::vector<ValueType> types;
  for (graph::ValueId v : graph.region(c.node().regions[which]).outputs) types.push_back(graph.type(v));
  return types;
}

/// What two types of one value have in common; dims that differ become symbols of their own.
Result<ValueType> common(InferContext& c, const ValueType& a, const ValueType& b, const std::string& what) {
  if (a == b) return a;
  // An empty optional takes the kind of the other.
  if (a.kind != b.kind && a.kind != ValueKind::Optional && b.kind != ValueKind::Optional) {
    return Status::error(what + " is " + a.str() + " in one place, " + b.str() + " in another");
  }
  ValueType out = a.kind == ValueKind::Optional ? b : a;
  if (a.kind != b.kind) {
    out.kind = ValueKind::Optional;
    return out;
  }
  if (a.dtype != b.dtype) return Status::error(what + " is " + a.str() + " in one place, " + b.str() + " in another");
  if (!a.shape.isRanked() || !b.shape.isRanked() || a.shape.rank() != b.shape.rank()) {
    out.shape = Shape::unranked();
    return out;
  }
  for (int64_t i = 0; i < a.shape.rank(); ++i) {
    if (a.shape[i] != b.shape[i]) out.shape[i] = c.freshDim();
  }
  return out;
}

Status needOutputs(const InferContext& c, size_t have, size_t most) {
  if (c.outputCount() <= most && c.outputCount() <= have) return Status::ok();
  return Status::error("the node has " + std::to_string(c.outputCount()) + " outputs, its body gives " +
                       std::to_string(std::min(have, most)));
}

Status needBoolScalar(const InferContext& c, size_t i) {
  LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isBool, "bool"));
  if (!c.hasInput(i) || !c.input(i).shape.isRanked()) return Status::ok();
  const Shape& s = c.input(i).shape;
  for (const Dim& d : s.dims()) {
    if (d.isKnown() && d.value() != 1)
      return Status::error("the condition has the shape " + s.str() + ", expected one element");
  }
  return Status::ok();
}

/// `element` with a dim of `length` put in at `axis`.
ValueType stacked(const ValueType& element, int64_t axis, const Dim& length) {
  ValueType out = element;
  if (!element.shape.isRanked()) return out;
  std::vector<Dim> dims = element.shape.dims();
  dims.insert(dims.begin() + axis, length);
  out.shape = Shape(dims);
  return out;
}

/// How often a Loop's body runs, if nothing but the trip count ends it.
std::optional<Dim> loopTrips(InferContext& c) {
  const auto* context = dynamic_cast<const GraphInferContext*>(&c);
  if (!context || !c.hasInput(0)) return std::nullopt;
  std::optional<std::vector<Dim>> trips = c.inputDims(0);
  if (!trips || trips->size() != 1) return std::nullopt;
  const graph::Graph& graph = context->graph();
  auto isTrue = [](const Tensor* t) {
    return t && t->dtype() == DType::Bool && t->elements() == 1 && t->elementAsInt(0) != 0;
  };
  if (c.hasInput(1) && !isTrue(c.constant(1))) return std::nullopt;
  const graph::Region& body = graph.region(c.node().regions[0]);
  if (body.outputs.empty() || body.inputs.size() < 2) return std::nullopt;
  graph::ValueId next = body.outputs[0];
  // Exporters write the unchanging condition as an Identity of the body's input.
  for (graph::NodeId from = graph.value(next).producer;
       from.isValid() && graph.node(from).op == "Identity" && graph.node(from).hasInput(0);) {
    next = graph.node(from).input(0);
    from = graph.value(next).producer;
  }
  if (next != body.inputs[1] && !isTrue(graph.constant(next))) return std::nullopt;
  const Dim& count = trips->front();
  return count.isKnown() ? Dim(std::max<int64_t>(0, count.value())) : count;
}

}  // namespace

Status inferIf(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needBoolScalar(c, 0));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> yes, regionOutputs(c, 0));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> no, regionOutputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needOutputs(c, yes.size(), no.size()));
  for (size_t i = 0; i < c.outputCount(); ++i) {
    LOCUTION_ASSIGN_OR_RETURN(ValueType type, common(c, yes[i], no[i], "output " + std::to_string(i)));
    c.setOutput(i, std::move(type));
  }
  return Status::ok();
}

// Inputs: trip count, condition, state... Body outputs: condition, state..., scanned... Outputs: state..., scanned...
Status inferLoop(InferContext& c) {
  if (c.inputCount() < 2) return Status::error("a loop has at least two inputs, trip count and condition");
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isInteger, "int64"));
  LOCUTION_RETURN_IF_ERROR(needBoolScalar(c, 1));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> results, regionOutputs(c, 0));
  size_t states = c.inputCount() - 2;
  if (results.size() < states + 1) {
    return Status::error("the body gives " + std::to_string(results.size()) + " values, expected the condition and " +
                         std::to_string(states) + " of the state");
  }
  LOCUTION_RETURN_IF_ERROR(needOutputs(c, results.size() - 1, results.size() - 1));
  std::optional<Dim> trips = loopTrips(c);
  Dim length = trips ? *trips : c.freshDim();
  for (size_t i = 0; i < c.outputCount(); ++i) {
    ValueType type = results[i + 1];
    if (i >= states) {
      type = stacked(type, 0, length);
    } else if (c.hasInput(i + 2)) {
      // The start value comes out when there is no iteration.
      LOCUTION_ASSIGN_OR_RETURN(type, common(c, type, c.input(i + 2), "state " + std::to_string(i)));
    }
    c.setOutput(i, std::move(type));
  }
  return Status::ok();
}

// Inputs: state..., scanned...; body and node outputs: state..., scanned...
Status inferScanLoop(InferContext& c) {
  const graph::Node& node = c.node();
  int64_t scans = node.intAttr("num_scan_inputs", 0);
  if (scans < 1 || scans > static_cast<int64_t>(c.inputCount())) {
    return Status::error("attribute num_scan_inputs is " + std::to_string(scans) + ", there are " +
                         std::to_string(c.inputCount()) + " inputs");
  }
  size_t states = c.inputCount() - static_cast<size_t>(scans);
  LOCUTION_RETURN_IF_ERROR(needInputs(c, c.inputCount()));
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> results, regionOutputs(c, 0));
  if (results.size() < states)
    return Status::error("the body gives " + std::to_string(results.size()) + " values, the state has " +
                         std::to_string(states));
  LOCUTION_RETURN_IF_ERROR(needOutputs(c, results.size(), results.size()));
  std::vector<int64_t> inAxes = node.intsAttr("scan_input_axes"), outAxes = node.intsAttr("scan_output_axes");
  if (!inAxes.empty() && static_cast<int64_t>(inAxes.size()) != scans)
    return Status::error("attribute scan_input_axes has " + std::to_string(inAxes.size()) + " entries, expected " +
                         std::to_string(scans));
  if (!outAxes.empty() && outAxes.size() != results.size() - states) {
    return Status::error("attribute scan_output_axes has " + std::to_string(outAxes.size()) + " entries, expected " +
                         std::to_string(results.size() - states));
  }
  std::optional<Dim> length;
  for (int64_t i = 0; i < scans; ++i) {
    const Shape& s = c.input(states + static_cast<size_t>(i)).shape;
    if (!s.isRanked()) continue;
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                              normaliseAxis(inAxes.empty() ? 0 : inAxes[static_cast<size_t>(i)], s.rank()));
    if (length) LOCUTION_RETURN_IF_ERROR(needSameDim(*length, s[axis], "lengths of the scanned inputs"));
    if (!length || s[axis].isKnown()) length = s[axis];
  }
  if (!length) length = c.freshDim();
  for (size_t i = 0; i < c.outputCount(); ++i) {
    ValueType type = results[i];
    if (i < states) {
      LOCUTION_ASSIGN_OR_RETURN(type, common(c, type, c.input(i), "state " + std::to_string(i)));
    } else if (type.shape.isRanked()) {
      LOCUTION_ASSIGN_OR_RETURN(int64_t axis,
                                normaliseAxis(outAxes.empty() ? 0 : outAxes[i - states], type.shape.rank() + 1));
      type = stacked(type, axis, *length);
    }
    c.setOutput(i, std::move(type));
  }
  return Status::ok();
}

Status inferSequenceMap(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  if (c.input(0).kind == ValueKind::Tensor)
    return Status::error("input 0: expected a sequence, got " + c.input(0).str());
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> results, regionOutputs(c, 0));
  LOCUTION_RETURN_IF_ERROR(needOutputs(c, results.size(), results.size()));
  for (size_t i = 0; i < c.outputCount(); ++i) {
    ValueType type = results[i];
    if (type.kind != ValueKind::Tensor)
      return Status::error("the body gives " + type.str() + " as output " + std::to_string(i) + ", expected a tensor");
    type.kind = ValueKind::Sequence;
    c.setOutput(i, std::move(type));
  }
  return Status::ok();
}

Status inferKernel(InferContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<ValueType> results, regionOutputs(c, 0));
  LOCUTION_RETURN_IF_ERROR(needOutputs(c, results.size(), results.size()));
  for (size_t i = 0; i < c.outputCount(); ++i) c.setOutput(i, results[i]);
  return Status::ok();
}

}  // namespace locution::ops
