// The contexts over graph nodes.
#include "ops/contexts.h"

#include <set>
#include <utility>

#include "loop/passes.h"
#include "ops/helpers.h"

namespace locution::ops {
namespace {

/// Contents longer than this are no shape.
constexpr int64_t kMaxKnownElements = 1024;

/// Runs over every load and store of a stage or statement.
void collectReads(const loop::Expr& e, const std::function<void(const loop::BufferRef&)>& onRead) {
  if (!e) return;
  loop::visit(e, [&](const loop::Expr& node) {
    if (const auto* load = loop::as<loop::Load>(node)) onRead(load->buffer);
    return true;
  });
}

}  // namespace

GraphInferContext::GraphInferContext(const graph::Graph& graph, graph::NodeId node, KnownDims& known)
    : graph_(graph), node_(graph.node(node)), known_(known), types_(node_.outputs.size()) {}

const ValueType& GraphInferContext::input(size_t i) const {
  LOCUTION_CHECK(hasInput(i)) << node_.op << " asks for input " << i << ", which is left out";
  return graph_.type(node_.input(i));
}

std::optional<std::vector<Dim>> GraphInferContext::inputDims(size_t i) const {
  if (!hasInput(i)) return std::nullopt;
  if (const Tensor* t = constant(i)) {
    if (!isIntOrBool(t->dtype()) || t->rank() > 1 || t->elements() > kMaxKnownElements) return std::nullopt;
    std::vector<int64_t> ints = t->toInts();
    return std::vector<Dim>(ints.begin(), ints.end());
  }
  auto it = known_.find(node_.input(i));
  return it == known_.end() ? std::nullopt : std::optional(it->second);
}

void GraphInferContext::setOutput(size_t i, ValueType type) {
  if (wantsOutput(i)) types_[i] = std::move(type);
}

void GraphInferContext::setOutputDims(size_t i, std::vector<Dim> dims) {
  if (wantsOutput(i) && static_cast<int64_t>(dims.size()) <= kMaxKnownElements)
    known_[node_.outputs[i]] = std::move(dims);
}

Dim GraphInferContext::freshDim() {
  std::string stem = "unknown";
  for (graph::ValueId out : node_.outputs) {
    if (!out.isValid()) continue;
    stem = graph_.value(out).name;
    break;
  }
  return Dim::symbol("%" + stem + "." + std::to_string(fresh_++));
}

Result<InferredTypes> inferNode(const graph::Graph& graph, graph::NodeId node, KnownDims& known) {
  const OpDef* op = findOp(graph.node(node).op);
  if (!op) return Status::error("there is no operator " + graph.node(node).op);
  GraphInferContext context(graph, node, known);
  LOCUTION_RETURN_IF_ERROR(op->infer(context));
  for (const auto& type : context.types())
    if (type && type->shape.isRanked() && type->shape.isStatic() && type->shape.elements() > kMostElements)
      return Status::error("an output of the shape " + type->shape.str() + " is too large");
  return context.types();
}

loop::BufferRef KernelBuffers::of(graph::ValueId value) {
  loop::BufferRef& buffer = buffers_[value];
  if (!buffer) {
    const graph::Value& v = graph_.value(value);
    buffer = loop::makeBuffer(v.name, {v.type.dtype, 1}, v.type.shape.extents());
    values_[buffer.get()] = value;
  }
  return buffer;
}

graph::ValueId KernelBuffers::valueOf(const loop::Buffer* buffer) const {
  auto it = values_.find(buffer);
  return it == values_.end() ? graph::ValueId{} : it->second;
}

loop::BufferRef KernelBuffers::temporary(const std::string& stem, DType dtype, const std::vector<int64_t>& dims) {
  int n = ++stems_[stem];
  std::string name = n == 1 ? stem : stem + "." + std::to_string(n);
  return loop::makeBuffer(std::move(name), {dtype, 1}, dims, loop::Scope::Stack);
}

NodeComputeContext::NodeComputeContext(graph::NodeId node, KernelBuffers& buffers)
    : graph_(buffers.graph()), node_(graph_.node(node)), buffers_(buffers) {}

const ValueType& NodeComputeContext::input(size_t i) const {
  LOCUTION_CHECK(hasInput(i)) << node_.op << " asks for input " << i << ", which is left out";
  return graph_.type(node_.input(i));
}

const ValueType& NodeComputeContext::output(size_t i) const {
  LOCUTION_CHECK(wantsOutput(i)) << node_.op << " asks for output " << i << ", which is left out";
  return graph_.type(node_.outputs[i]);
}

loop::BufferRef NodeComputeContext::inputBuffer(size_t i) {
  LOCUTION_CHECK(hasInput(i)) << node_.op << " asks for input " << i << ", which is left out";
  return buffers_.of(node_.input(i));
}

loop::BufferRef NodeComputeContext::outputBuffer(size_t i) {
  LOCUTION_CHECK(wantsOutput(i)) << node_.op << " asks for output " << i << ", which is left out";
  return buffers_.of(node_.outputs[i]);
}

loop::BufferRef NodeComputeContext::temporary(const std::string& stem, DType dtype, const std::vector<int64_t>& dims) {
  // '%' keeps temporaries apart from graph values of any name.
  std::string owner;
  for (graph::ValueId out : node_.outputs)
    if (owner.empty() && out.isValid()) owner = graph_.value(out).name;
  return buffers_.temporary(owner + "%" + stem, dtype, dims);
}

void NodeComputeContext::addStage(loop::Stage stage) {
  LOCUTION_CHECK(stage.out && stage.body && stage.axes.size() == stage.out->dims.size())
      << node_.op << ": a stage needs an axis for each of its output's dims";
  stages_.push_back(std::move(stage));
}

void NodeComputeContext::setRaw(loop::Stmt body) { raw_ = std::move(body); }

void NodeComputeContext::checkIndices(size_t i, int64_t low, int64_t high) {
  const Tensor* t = constant(i);
  if (!t) {
    checks_.push_back({node_.input(i), low, high});
    return;
  }
  for (int64_t k = 0; k < t->elements() && status_.isOk(); ++k) {
    int64_t v = t->elementAsInt(k);
    if (v < low || v > high)
      status_ =
          Status::error("input " + std::to_string(i) + " ('" + graph_.value(node_.input(i)).name + "'): index " +
                        std::to_string(v) + " is outside [" + std::to_string(low) + ", " + std::to_string(high) + "]");
  }
}

namespace {

constexpr int64_t kMaxElements = int64_t{1} << 48;

}  // namespace

Status NodeComputeContext::run() {
  const OpDef* op = findOp(node_.op);
  if (!op) return Status::error("there is no operator " + node_.op);
  if (!op->compute) return Status::error(node_.op + " isn't loops");
  auto check = [&](graph::ValueId id) {
    if (!id.isValid()) return Status::ok();
    const graph::Value& v = graph_.value(id);
    DTypeClass kind = dtypeClass(v.type.dtype);
    if (v.type.kind != ValueKind::Tensor || kind == DTypeClass::String || kind == DTypeClass::Complex)
      return Status::error("'" + v.name + "' is " + v.type.str() + ": there are no loops over such values");
    if (!v.type.shape.isStatic())
      return Status::error("the shape of '" + v.name + "' isn't known: " + v.type.shape.str());
    // Offsets in elements and bytes must not overflow, nor products of extents meet at the same saturated number.
    if (v.type.shape.elements() > kMaxElements)
      return Status::error("'" + v.name + "' is " + v.type.str() + ": too large for any memory");
    return Status::ok();
  };
  for (graph::ValueId id : node_.inputs) LOCUTION_RETURN_IF_ERROR(check(id));
  for (graph::ValueId id : node_.outputs) LOCUTION_RETURN_IF_ERROR(check(id));
  LOCUTION_RETURN_IF_ERROR(op->compute(*this));
  return status_;
}

NodeComputation assemble(const std::string& name, KernelBuffers& buffers, std::vector<loop::Stage> stages,
                         const std::vector<graph::ValueId>& outputs, std::vector<IndexCheck> checks) {
  NodeComputation out;
  out.computation.name = name;
  out.checks = std::move(checks);
  std::set<const loop::Buffer*> written, taken;
  for (const loop::Stage& s : stages) written.insert(s.out.get());
  auto onRead = [&](const loop::BufferRef& b) {
    graph::ValueId value = buffers.valueOf(b.get());
    if (!value.isValid() || written.count(b.get()) || !taken.insert(b.get()).second) return;
    out.computation.inputs.push_back(b);
    out.inputs.push_back(value);
  };
  for (const loop::Stage& s : stages) {
    collectReads(s.body, onRead);
    collectReads(s.epilogue, onRead);
  }
  for (graph::ValueId v : outputs) {
    out.outputs.push_back(v);
    out.computation.outputs.push_back(buffers.of(v));
  }
  out.computation.stages = std::move(stages);
  return out;
}

Result<NodeComputation> computeNodeWithValues(const graph::Graph& graph, graph::NodeId id) {
  KernelBuffers buffers(graph);
  NodeComputeContext context(id, buffers);
  LOCUTION_RETURN_IF_ERROR(context.run());
  const graph::Node& node = graph.node(id);
  std::vector<graph::ValueId> outputs;
  for (graph::ValueId v : node.outputs)
    if (v.isValid()) outputs.push_back(v);
  if (!context.raw()) return assemble(node.op, buffers, context.stages(), outputs, context.checks());

  LOCUTION_CHECK(context.stages().empty()) << node.op << " gave stages and raw loops";
  NodeComputation out = assemble(node.op, buffers, {}, outputs, context.checks());
  out.computation.raw = context.raw();
  std::set<graph::ValueId> taken(outputs.begin(), outputs.end());
  loop::visit(
      context.raw(), [](const loop::Stmt&) { return true; },
      [&](const loop::Expr& e) {
        const auto* load = loop::as<loop::Load>(e);
        graph::ValueId value = load ? buffers.valueOf(load->buffer.get()) : graph::ValueId{};
        if (value.isValid() && taken.insert(value).second) {
          out.computation.inputs.push_back(load->buffer);
          out.inputs.push_back(value);
        }
        return true;
      });
  return out;
}

Result<loop::Computation> computeNode(const graph::Graph& graph, graph::NodeId node) {
  LOCUTION_ASSIGN_OR_RETURN(NodeComputation out, computeNodeWithValues(graph, node));
  return std::move(out.computation);
}

}  // namespace locution::ops
