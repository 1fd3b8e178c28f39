// The body of a loop is inferred from the types that its state starts with; what changes from one iteration to the next is
// generalised (a dim to a symbol, a rank to none) until nothing changes any more.
#include "passes/propagate.h"

#include <algorithm>
#include <utility>

namespace locution::passes {
namespace {

bool conflict(const Shape& inferred, const Shape& existing) {
  if (!inferred.isRanked() || !existing.isRanked()) return false;
  if (inferred.rank() != existing.rank()) return true;
  for (int64_t i = 0; i < inferred.rank(); ++i)
    if (inferred[i].isKnown() && existing[i].isKnown() && !(inferred[i] == existing[i])) return true;
  return false;
}

Dim stateDim(const std::string& name, int64_t axis) { return Dim::symbol("%" + name + "." + std::to_string(axis)); }

}  // namespace

bool isFreshDim(const Dim& dim) {
  if (dim.isKnown()) return false;
  std::string text = dim.str();
  return text.find("\"%") != std::string::npos || text[0] == '%';
}

ValueType refineType(const ValueType& inferred, const ValueType& existing) {
  ValueType out = inferred;
  out.layout = existing.layout;
  out.quantisation = inferred.quantisation ? inferred.quantisation : existing.quantisation;
  if (existing.kind != inferred.kind || existing.dtype != inferred.dtype || !existing.shape.isRanked()) return out;
  if (!inferred.shape.isRanked()) {
    out.shape = existing.shape;
    return out;
  }
  if (existing.shape.rank() != inferred.shape.rank()) return out;
  for (int64_t i = 0; i < out.shape.rank(); ++i) {
    const Dim &now = inferred.shape[i], &before = existing.shape[i];
    if (now.isKnown()) continue;
    if (before.isKnown() || (isFreshDim(now) && !isFreshDim(before))) out.shape[i] = before;
  }
  return out;
}

Status Propagation::run(const Hooks& hooks) {
  hooks_ = hooks;
  return region(graph_.mainRegion());
}

Status Propagation::region(RegionId id) {
  std::vector<NodeId> work = graph_.region(id).nodes;
  std::reverse(work.begin(), work.end());
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    if (graph_.node(node).dead) continue;
    std::vector<NodeId> instead;
    if (hooks_.before && hooks_.before(node, instead)) {
      work.insert(work.end(), instead.rbegin(), instead.rend());
      continue;
    }
    LOCUTION_RETURN_IF_ERROR(infer(node));
    if (hooks_.after) hooks_.after(node);
  }
  return Status::ok();
}

Status Propagation::infer(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op == "If") {
    branches(id);
    return Status::ok();
  }
  LOCUTION_RETURN_IF_ERROR(regions(id));
  Result<ops::InferredTypes> types = ops::inferNode(graph_, id, known_);
  if (!types.isOk()) return types.status().withContext(describe(graph_, id));
  for (size_t i = 0; i < types->size(); ++i)
    if ((*types)[i] && node.outputs[i].isValid()) setRefined(node.outputs[i], *(*types)[i]);
  return Status::ok();
}

void Propagation::setRefined(ValueId value, const ValueType& inferred) {
  const ValueType& existing = graph_.type(value);
  if (graph_.isMainOutput(value) && inferred.dtype == existing.dtype && conflict(inferred.shape, existing.shape))
    context_.warnings.push_back("output '" + graph_.value(value).name + "' is declared as " + existing.str() +
                                " but is " + inferred.str());
  patch_.setType(value, refineType(inferred, existing));
}

Status Propagation::regions(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.regions.empty()) return Status::ok();
  if (node.op == "Loop" || node.op == "Scan") return loopBody(id);
  const std::vector<RegionId> inner = node.regions;
  for (RegionId r : inner) LOCUTION_RETURN_IF_ERROR(region(r));
  return Status::ok();
}

void Propagation::branches(NodeId id) {
  const Node& node = graph_.node(id);
  const std::vector<RegionId> inner = node.regions;
  if (std::optional<double> condition = splatOf(graph_, node.input(0)); condition && inner.size() == 2) {
    const RegionId taken = inner[*condition != 0 ? 0 : 1];
    if (!region(taken).isOk()) return;
    const std::vector<ValueId>& results = graph_.region(taken).outputs;
    for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
      if (node.outputs[i].isValid()) setRefined(node.outputs[i], graph_.type(results[i]));
    return;
  }
  std::vector<RegionId> possible;
  for (RegionId r : inner)
    if (region(r).isOk()) possible.push_back(r);
  if (possible.size() == 1) {
    // What the other branch gives can't be told: of this one's types only the element type is sure.
    const std::vector<ValueId>& results = graph_.region(possible[0]).outputs;
    for (size_t i = 0; i < results.size() && i < node.outputs.size(); ++i) {
      ValueType type = graph_.type(results[i]);
      type.shape = Shape::unranked();
      if (node.outputs[i].isValid()) setRefined(node.outputs[i], type);
    }
    return;
  }
  Result<ops::InferredTypes> types = ops::inferNode(graph_, id, known_);
  for (size_t i = 0; types.isOk() && i < types->size(); ++i)
    if ((*types)[i] && node.outputs[i].isValid()) setRefined(node.outputs[i], *(*types)[i]);
}

Status Propagation::loopBody(NodeId id) {
  const Node& node = graph_.node(id);
  const RegionId body = node.regions[0];
  const bool isLoop = node.op == "Loop";
  // Where the state stands among node inputs, body inputs and body outputs. Loop: (trips, condition, state...) to
  // (iteration, condition, state...) to (condition, state..., scanned...). Scan: (state..., scanned...) all along.
  const size_t firstIn = isLoop ? 2 : 0, firstOut = isLoop ? 1 : 0;
  const size_t inputs = node.inputs.size();
  const size_t scans = isLoop ? 0 : static_cast<size_t>(std::max<int64_t>(node.intAttr("num_scan_inputs", 0), 0));
  const std::vector<ValueId> params = graph_.region(body).inputs;
  if (inputs < firstIn + scans || params.size() != inputs) return Status::ok();  // inferNode has the message
  const size_t states = inputs - firstIn - scans;
  if (isLoop) {
    ValueType iteration = graph_.type(params[0]), condition = graph_.type(params[1]);
    iteration.dtype = DType::I64;
    condition.dtype = DType::Bool;
    if (!iteration.shape.isRanked()) iteration.shape = {};
    if (!condition.shape.isRanked()) condition.shape = {};
    patch_.setType(params[0], iteration);
    patch_.setType(params[1], condition);
  }
  for (size_t i = 0; i < states; ++i) {
    ValueId outer = node.input(firstIn + i), param = params[firstIn + i];
    if (!outer.isValid()) continue;
    ValueType type = graph_.type(outer);
    const Shape before = graph_.type(param).shape;
    if (type.shape.isRanked() && before.isRanked() && type.shape.rank() == before.rank())
      for (int64_t d = 0; d < before.rank(); ++d)
        if (before[d] == stateDim(graph_.value(param).name, d)) type.shape[d] = before[d];
    patch_.setType(param, type);
  }
  const Ints axes = node.intsAttr("scan_input_axes");
  for (size_t i = 0; i < scans; ++i) {
    ValueId outer = node.input(states + i), param = params[states + i];
    if (!outer.isValid()) continue;
    ValueType type = graph_.type(outer);
    int64_t axis = i < axes.size() ? axes[i] : 0, rank = type.shape.isRanked() ? type.shape.rank() : 0;
    if (axis < 0) axis += rank;
    if (axis >= 0 && axis < rank) {
      std::vector<Dim> dims = type.shape.dims();
      dims.erase(dims.begin() + axis);
      type.shape = Shape(std::move(dims));
    }
    patch_.setType(param, type);
  }
  // Nothing may be folded before the types hold for every iteration.
  const Hooks hooks = std::exchange(hooks_, {});
  for (;;) {
    if (Status s = region(body); !s.isOk()) return s;
    const std::vector<ValueId>& results = graph_.region(body).outputs;
    bool changed = false;
    for (size_t i = 0; i < states && firstOut + i < results.size(); ++i) {
      ValueId param = params[firstIn + i];
      ValueType type = graph_.type(param);
      const Shape& next = graph_.type(results[firstOut + i]).shape;
      if (!type.shape.isRanked() || type.shape == next) continue;
      if (!next.isRanked() || next.rank() != type.shape.rank()) {
        type.shape = Shape::unranked();
      } else {
        for (int64_t d = 0; d < next.rank(); ++d)
          if (!(next[d] == type.shape[d])) type.shape[d] = stateDim(graph_.value(param).name, d);
        if (type.shape == graph_.type(param).shape) continue;
      }
      patch_.setType(param, type);
      changed = true;
    }
    if (!changed) break;
    // What was inferred from the narrower types doesn't hold.
    const std::vector<NodeId> nodes = graph_.region(body).nodes;
    for (NodeId n : nodes)
      for (ValueId v : graph_.node(n).outputs) {
        if (!v.isValid()) continue;
        known_.erase(v);
        ValueType type = graph_.type(v);
        type.shape = Shape::unranked();
        patch_.setType(v, type);
      }
  }
  hooks_ = hooks;
  return hooks_.before || hooks_.after ? region(body) : Status::ok();
}

std::optional<Ints> Propagation::contents(ValueId value) const {
  if (const Tensor* t = graph_.constant(value)) {
    if (!isInteger(t->dtype()) || t->rank() > 1) return std::nullopt;
    return t->toInts();
  }
  auto at = known_.find(value);
  if (at == known_.end()) return std::nullopt;
  Ints out;
  for (const Dim& d : at->second) {
    if (!d.isKnown()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

}  // namespace locution::passes
