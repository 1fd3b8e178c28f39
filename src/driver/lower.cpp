#include "driver/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "hostops/attrs.h"
#include "hostops/host_op.h"
#include "loop/passes.h"
#include "ops/contexts.h"
#include "schedule/stages.h"
#include "schedule/whole_bytes.h"
#include "support/strings.h"

namespace locution::driver {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

int64_t StepBuffer::bytes() const {
  int64_t n = 1;
  for (int64_t d : dims) n *= std::max<int64_t>(d, 0);
  return dtypeBytes(dtype, n);
}

namespace {

std::vector<int64_t> dimsOf(const Shape& shape) {
  std::vector<int64_t> dims;
  for (const Dim& d : shape.dims()) dims.push_back(d.isKnown() ? d.value() : -1);
  return dims;
}

ops::Pattern patternOf(const Node& node) {
  const ops::OpDef* def = ops::findOp(node.op);
  LOCUTION_CHECK(def != nullptr) << node.op;
  return def->pattern;
}

std::string lowerCase(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class Lowering {
 public:
  explicit Lowering(const Graph& graph) : g_(graph) {}

  Result<Lowered> run() {
    for (ValueId v : g_.main().inputs) {
      const graph::Value& value = g_.value(v);
      out_.inputs.push_back({value.name, value.type.dtype, dimsOf(value.type.shape), value.type.kind, 0});
      BufferIndex b = bufferOf(v);
      out_.inputs.back().buffer = b;
      out_.buffers[b].input = static_cast<int32_t>(out_.inputs.size()) - 1;
    }
    bindOutputs();
    std::vector<std::string> problems;
    for (NodeId id : g_.main().nodes) {
      Status s = lowerNode(id);
      if (!s.isOk()) problems.push_back(s.message());
    }
    if (!problems.empty()) return Status::error(join(problems, "\n"));
    for (size_t k = 0; k < out_.outputs.size(); ++k)
      if (out_.outputs[k].copied) out_.steps.push_back(CopyStep{out_.outputs[k].buffer, static_cast<int32_t>(k)});
    return std::move(out_);
  }

 private:
  // An alias shares its input's memory when both lie in memory as they are.
  bool isAlias(NodeId id) const {
    const Node& node = g_.node(id);
    if (patternOf(node) != ops::Pattern::Alias) return false;
    const ValueType& type = g_.type(node.outputs[0]);
    return type.kind == ValueKind::Tensor && type.dtype != DType::String && type.shape.isRanked() &&
           type.shape.isStatic();
  }

  ValueId rootOf(ValueId v) const {
    while (g_.value(v).producer.isValid() && !g_.value(v).isConstant() && isAlias(g_.value(v).producer))
      v = g_.node(g_.value(v).producer).inputs[0];
    return v;
  }

  BufferIndex bufferOf(ValueId v) {
    ValueId root = rootOf(v);
    auto [it, added] = buffers_.emplace(root, out_.buffers.size());
    if (added) {
      const graph::Value& value = g_.value(root);
      StepBuffer b;
      b.name = value.name;
      b.dtype = value.type.dtype;
      b.dims = dimsOf(value.type.shape);
      b.constant = value.constant;
      b.dynamic = value.type.kind != ValueKind::Tensor || value.type.dtype == DType::String ||
                  !value.type.shape.isRanked() || !value.type.shape.isStatic();
      if (b.constant.isValid() || isMainInput(root)) b.dynamic = false;
      out_.buffers.push_back(std::move(b));
    }
    return it->second;
  }

  bool isMainInput(ValueId v) const {
    const auto& inputs = g_.main().inputs;
    return std::find(inputs.begin(), inputs.end(), v) != inputs.end();
  }

  // The first output that names a computed buffer is written in place; any other is copied at the end.
  void bindOutputs() {
    for (ValueId v : g_.main().outputs) {
      const graph::Value& value = g_.value(v);
      PortInfo port{value.name, value.type.dtype, dimsOf(value.type.shape), value.type.kind, bufferOf(v)};
      StepBuffer& b = out_.buffers[port.buffer];
      if (b.dynamic) {
        port.copied = false;
      } else if (b.constant.isValid() || b.input >= 0 || b.output >= 0) {
        port.copied = true;
      } else {
        b.output = static_cast<int32_t>(out_.outputs.size());
      }
      out_.outputs.push_back(std::move(port));
    }
  }

  Status lowerNode(NodeId id) {
    const Node& node = g_.node(id);
    switch (patternOf(node)) {
      case ops::Pattern::Kernel:
        return lowerKernel(id);
      case ops::Pattern::Host:
        return lowerHost(id);
      case ops::Pattern::Control:
        return Status::error(graph::describe(g_, id) + ": control flow that depends on data is not supported yet");
      case ops::Pattern::Alias:
        if (isAlias(id)) return Status::ok();
        return lowerHost(id);
      default:
        if (needsHost(node)) return lowerHost(id);
        return lowerNodes(id, {id}, node.outputs, node.outputs, node.op);
    }
  }

  // Strings, and shapes that only a run tells, are no matter for loops; a host operator may know them.
  bool needsHost(const Node& node) const {
    if (!hostops::findHostOp(node.op)) return false;
    auto odd = [&](ValueId v) {
      if (!v.isValid()) return false;
      const ValueType& type = g_.type(v);
      return type.kind != ValueKind::Tensor || type.dtype == DType::String || !type.shape.isRanked() ||
             !type.shape.isStatic();
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), odd) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), odd);
  }

  Status lowerHost(NodeId id) {
    const Node& node = g_.node(id);
    HostStep step{node.op, graph::describe(g_, id), hostops::serialiseAttrs(node.attrs), {}, {}};
    for (ValueId v : node.inputs)
      step.inputs.push_back(v.isValid() ? HostStep::Operand{static_cast<int64_t>(bufferOf(v)), dimsOf(g_.type(v).shape)}
                                        : HostStep::Operand{});
    for (ValueId v : node.outputs)
      step.outputs.push_back(v.isValid()
                                 ? HostStep::Operand{static_cast<int64_t>(bufferOf(v)), dimsOf(g_.type(v).shape)}
                                 : HostStep::Operand{});
    out_.steps.push_back(std::move(step));
    return Status::ok();
  }

  Status lowerKernel(NodeId id) {
    const Node& node = g_.node(id);
    const graph::Region& region = g_.region(node.regions[0]);
    return lowerNodes(id, region.nodes, region.outputs, node.outputs,
                      node.stringAttr("anchor", g_.node(region.nodes[0]).op));
  }

  // `inner` are the values that the nodes make, `outer` those that the rest of the graph reads, one for one.
  Status lowerNodes(NodeId owner, const std::vector<NodeId>& nodes, const std::vector<ValueId>& inner,
                    const std::vector<ValueId>& outer, const std::string& anchor) {
    ops::KernelBuffers buffers(g_);
    std::vector<loop::Stage> stages;
    std::vector<ops::IndexCheck> checks;
    loop::Stmt raw;
    for (NodeId id : nodes) {
      ops::NodeComputeContext context(id, buffers);
      Status s = context.run();
      if (!s.isOk()) return s.withContext(graph::describe(g_, id));
      stages.insert(stages.end(), context.stages().begin(), context.stages().end());
      checks.insert(checks.end(), context.checks().begin(), context.checks().end());
      if (context.raw()) raw = context.raw();
    }
    LOCUTION_CHECK(!raw || nodes.size() == 1) << graph::describe(g_, owner);
    std::vector<ValueId> results;
    std::map<ValueId, ValueId> outerOf;
    for (size_t i = 0; i < inner.size(); ++i)
      if (inner[i].isValid()) {
        results.push_back(inner[i]);
        outerOf[inner[i]] = outer[i];
      }
    std::string name = lowerCase(anchor) + "." + std::to_string(kernelCount_++);
    loop::Computation computation;
    std::map<const loop::Buffer*, ValueId> valueOf;
    if (raw) {
      auto whole = ops::computeNodeWithValues(g_, nodes[0]);
      if (!whole.isOk()) return whole.status().withContext(graph::describe(g_, owner));
      computation = whole->computation;
      for (size_t i = 0; i < computation.inputs.size(); ++i) valueOf[computation.inputs[i].get()] = whole->inputs[i];
      for (size_t i = 0; i < computation.outputs.size(); ++i) valueOf[computation.outputs[i].get()] = whole->outputs[i];
    } else {
      ops::NodeComputation whole = ops::assemble(name, buffers, std::move(stages), results, checks);
      computation = std::move(whole.computation);
      for (size_t i = 0; i < computation.inputs.size(); ++i) valueOf[computation.inputs[i].get()] = whole.inputs[i];
      for (size_t i = 0; i < computation.outputs.size(); ++i) valueOf[computation.outputs[i].get()] = whole.outputs[i];
    }
    computation.name = name;
    for (const ops::IndexCheck& c : checks) {
      BufferIndex b = bufferOf(c.value);
      if (!out_.buffers[b].constant.isValid())
        out_.steps.push_back(CheckStep{b, c.low, c.high, graph::describe(g_, owner)});
    }
    if (!raw) inlineScalars(&computation, valueOf);
    for (const loop::BufferRef& b : computation.inputs)
      if (g_.value(rootOf(valueOf.at(b.get()))).isConstant()) computation.constants.push_back(b);
    if (!raw) {
      for (const schedule::WholeBytes& w : schedule::writeWholeBytes(&computation))
        valueOf[w.to.get()] = valueOf.at(w.from.get());
      computation = schedule::fuseStages(computation);
    }
    std::map<const loop::Buffer*, BufferIndex> temporaries;
    auto indexOf = [&](const loop::BufferRef& b) -> BufferIndex {
      auto known = valueOf.find(b.get());
      if (known != valueOf.end()) {
        auto result = outerOf.find(known->second);
        return bufferOf(result == outerOf.end() ? known->second : result->second);
      }
      auto [it, added] = temporaries.emplace(b.get(), out_.buffers.size());
      if (added) {
        StepBuffer t;
        t.name = b->name;
        t.dtype = b->element.dtype;
        t.dims = loop::extents(*b);
        out_.buffers.push_back(std::move(t));
      }
      return it->second;
    };
    for (loop::Computation& kernel : schedule::cutKernels(computation)) {
      KernelStep step;
      step.op = anchor;
      for (const loop::BufferRef& b : kernel.inputs) step.inputs.push_back(indexOf(b));
      for (const loop::BufferRef& b : kernel.outputs) step.outputs.push_back(indexOf(b));
      step.computation = std::move(kernel);
      out_.steps.push_back(std::move(step));
    }
    return Status::ok();
  }

  // Constants of one element become immediates.
  void inlineScalars(loop::Computation* c, const std::map<const loop::Buffer*, ValueId>& valueOf) const {
    for (const loop::BufferRef& b : c->inputs) {
      const Tensor* t = g_.constant(rootOf(valueOf.at(b.get())));
      if (!t || t->elements() != 1 || t->dtype() == DType::String || dtypeClass(t->dtype()) == DTypeClass::Complex)
        continue;
      loop::Expr value = isFloat(t->dtype()) ? loop::floatImm(t->dtype(), t->elementAsDouble(0))
                                             : loop::intImm(t->dtype(), t->elementAsInt(0));
      auto make = [&](const loop::Load&) { return value; };
      for (loop::Stage& s : c->stages) {
        s.body = loop::replaceLoads(s.body, b.get(), make);
        if (s.epilogue) s.epilogue = loop::replaceLoads(s.epilogue, b.get(), make);
      }
    }
  }

  const Graph& g_;
  Lowered out_;
  std::map<ValueId, BufferIndex> buffers_;
  int kernelCount_ = 0;
};

}  // namespace

Result<Lowered> lowerGraph(const Graph& graph) { return Lowering(graph).run(); }

}  // namespace locution::driver
