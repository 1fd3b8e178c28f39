#include "driver/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "driver/extract.h"
#include "driver/lazy_region.h"
#include "driver/provenance.h"
#include "hostops/attrs.h"
#include "hostops/host_op.h"
#include "loop/passes.h"
#include "ops/contexts.h"
#include "passes/specialise.h"
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
  Lowering(const Graph& graph, const MakeRegion& makeRegion, const TargetSpec& target, bool openInputs)
      : g_(graph), makeRegion_(makeRegion), target_(target), openInputs_(openInputs) {}

  Result<Lowered> run() {
    planDeferred();
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
      if (deferred_.count(id) > 0) continue;
      Status s = lowerNode(id);
      if (!s.isOk()) problems.push_back(s.message());
    }
    if (problems.empty()) {
      Status s = lowerDeferred();
      if (!s.isOk()) problems.push_back(s.message());
    }
    if (!problems.empty()) return Status::error(join(problems, "\n"));
    out_.steps.insert(out_.steps.end(), last_.begin(), last_.end());
    for (size_t k = 0; k < out_.outputs.size(); ++k)
      if (out_.outputs[k].copied) out_.steps.push_back(CopyStep{out_.outputs[k].buffer, static_cast<int32_t>(k)});
    return std::move(out_);
  }

 private:
  bool isStaticValue(ValueId v) const {
    const ValueType& type = g_.type(v);
    return type.kind == ValueKind::Tensor && type.dtype != DType::String && type.shape.isRanked() &&
           type.shape.isStatic();
  }

  // An alias shares its input's memory when both lie in memory as they are.
  bool isAlias(NodeId id) const {
    const Node& node = g_.node(id);
    return patternOf(node) == ops::Pattern::Alias && deferred_.count(id) == 0 && isStaticValue(node.outputs[0]) &&
           isStaticValue(node.inputs[0]) &&
           g_.type(node.inputs[0]).shape.elements() == g_.type(node.outputs[0]).shape.elements();
  }

  // In program order: what waits for a shape or a value, and all that depends on it.
  void planDeferred() {
    std::set<ValueId> later;
    for (NodeId id : g_.main().nodes) {
      const Node& node = g_.node(id);
      auto isLater = [&](ValueId v) { return later.count(v) > 0; };
      bool waits = std::any_of(node.inputs.begin(), node.inputs.end(), isLater);
      if (!waits && !node.regions.empty() && node.op != "Kernel" && !later.empty()) {
        std::set<ValueId> captures = capturesOf(g_, id);
        waits = std::any_of(captures.begin(), captures.end(), isLater);
      }
      if (!waits && !mustWait(id)) continue;
      deferred_.insert(id);
      for (ValueId v : node.outputs)
        if (v.isValid()) later.insert(v);
    }
  }

  bool mustWait(NodeId id) const {
    const Node& node = g_.node(id);
    const ops::OpDef* def = ops::findOp(node.op);
    if (!def->compute || isAlias(id)) return false;  // kernels, host operators, control flow
    const bool isHost = hostops::findHostOp(node.op) != nullptr;
    // What is open comes from a node: as an input of the later graph it is known.
    auto isOpen = [&](ValueId v) { return v.isValid() && !isStaticValue(v) && !g_.value(v).isConstant(); };
    bool isStatic = true, waits = false;
    for (ValueId v : node.inputs)
      if (isOpen(v)) {
        isStatic = false;
        waits = waits || openInputs_ || g_.value(v).producer.isValid();
      }
    for (ValueId v : node.outputs) isStatic = isStatic && !isOpen(v);
    if (isHost && !isStatic) return false;
    bool isNeeding = false;
    if (const std::vector<size_t>* needed = passes::neededInputs(node.op))
      for (size_t i : *needed) {
        ValueId v = node.input(i);
        if (!v.isValid() || g_.value(v).isConstant()) continue;
        isNeeding = true;
        waits = waits || openInputs_ || g_.value(v).producer.isValid();
      }
    if (!waits || (isStatic && !isNeeding)) return false;
    return !(isStatic && (isHost || computes(id)));
  }

  // It needs no more than the types.
  bool computes(NodeId id) const {
    ops::KernelBuffers buffers(g_);
    return ops::NodeComputeContext(id, buffers).run().isOk();
  }

  // Without the inputs, which messages about what is inside repeat.
  std::string nameOf(NodeId id) const {
    const Node& node = g_.node(id);
    std::string out = "node";
    if (node.sourceIndex >= 0) out += " " + std::to_string(node.sourceIndex);
    if (!node.name.empty()) out += " '" + node.name + "'";
    return out + " (" + node.op + ")";
  }

  HostStep::Operand operandOf(ValueId v) {
    if (!v.isValid()) return {};
    return {static_cast<int64_t>(bufferOf(v)), dimsOf(g_.type(v).shape)};
  }

  Status addRegion(RegionStep* step, Extracted part, const std::string& name, std::map<ValueId, int32_t>* captured) {
    auto made = makeRegion_(std::move(part.graph), name);
    if (!made.isOk()) return made.status();
    for (ValueId v : part.captures) {
      auto [it, added] = captured->emplace(v, static_cast<int32_t>(step->captured.size()));
      if (added) step->captured.push_back(operandOf(v));
      made->captures.push_back(it->second);
    }
    step->regions.push_back(out_.regions.size());
    out_.regions.push_back(std::move(*made));
    return Status::ok();
  }

  Status lowerControl(NodeId id) {
    const Node& node = g_.node(id);
    RegionStep step;
    step.node = nameOf(id);
    step.attrs = hostops::serialiseAttrs(node.attrs);
    if (node.op == "If") {
      step.kind = runtime::RegionKind::If;
    } else if (node.op == "Loop") {
      step.kind = runtime::RegionKind::Loop;
    } else if (node.op == "Scan") {
      step.kind = runtime::RegionKind::Scan;
    } else {
      return Status::error(step.node + ": is not supported yet");
    }
    std::map<ValueId, int32_t> captured;
    for (size_t i = 0; i < node.regions.size(); ++i) {
      std::string name = node.op == "If" ? (i == 0 ? "then_branch of " : "else_branch of ") : "body of ";
      LOCUTION_RETURN_IF_ERROR(addRegion(&step, extractRegion(g_, node.regions[i]), name + step.node, &captured));
    }
    for (ValueId v : node.inputs) step.inputs.push_back(operandOf(v));
    for (ValueId v : node.outputs) step.outputs.push_back(operandOf(v));
    // What the regions give and nobody wants stands there, too.
    step.outputs.resize(g_.region(node.regions[0]).outputs.size() - (node.op == "Loop" ? 1 : 0));
    out_.steps.push_back(std::move(step));
    return Status::ok();
  }

  // Nobody but the model's outputs reads what it makes: whoever depends on it is part of it.
  Status lowerDeferred() {
    if (deferred_.empty()) return Status::ok();
    std::vector<NodeId> nodes;
    std::vector<ValueId> outputs;
    for (NodeId id : g_.main().nodes)
      if (deferred_.count(id) > 0) nodes.push_back(id);
    for (ValueId v : g_.main().outputs)
      if (deferred_.count(g_.value(v).producer) > 0 && std::find(outputs.begin(), outputs.end(), v) == outputs.end())
        outputs.push_back(v);
    if (outputs.empty()) return Status::ok();
    RegionStep step;
    step.node = "from " + nameOf(nodes[0]) + " on";
    step.attrs = hostops::serialiseAttrs({});
    std::map<ValueId, int32_t> captured;
    LOCUTION_RETURN_IF_ERROR(
        addRegion(&step, extractNodes(g_, nodes, outputs), "what depends on data, " + step.node, &captured));
    for (ValueId v : outputs) step.outputs.push_back(operandOf(v));
    out_.steps.push_back(std::move(step));
    return Status::ok();
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
      if (b.input >= 0 && std::any_of(b.dims.begin(), b.dims.end(), [](int64_t d) { return d < 0; })) {
        // Copied as a whole: its size is known to the run only.
        HostStep copy{"Identity", "output '" + value.name + "'", hostops::serialiseAttrs({}), {}, {}};
        copy.inputs.push_back({static_cast<int64_t>(port.buffer), b.dims});
        StepBuffer whole{value.name, b.dtype, b.dims, {}, -1, -1, true};
        port.buffer = out_.buffers.size();
        copy.outputs.push_back({static_cast<int64_t>(port.buffer), whole.dims});
        out_.buffers.push_back(std::move(whole));
        last_.push_back(std::move(copy));
      } else if (b.dynamic) {
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
        return lowerControl(id);
      case ops::Pattern::Alias:
        if (isAlias(id)) return Status::ok();
        return lowerHost(id);
      default:
        if (needsHost(id)) return lowerHost(id);
        return lowerNodes(id, {id}, node.outputs, node.outputs, node.op);
    }
  }

  // Strings, and shapes that only a run tells, are no matter for loops; a host operator may know them.
  bool needsHost(NodeId id) const {
    const Node& node = g_.node(id);
    if (!hostops::findHostOp(node.op)) return false;
    if (const std::vector<size_t>* needed = passes::neededInputs(node.op))
      for (size_t i : *needed)
        if (node.hasInput(i) && !g_.value(node.input(i)).isConstant() && !computes(id)) return true;
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
    for (ValueId v : node.inputs) step.inputs.push_back(operandOf(v));
    for (ValueId v : node.outputs) step.outputs.push_back(operandOf(v));
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
    std::vector<std::vector<ops::IndexCheck>> checksOf;  // a node
    loop::Stmt raw;
    std::vector<NodeStages> origins;
    for (NodeId id : nodes) {
      ops::NodeComputeContext context(id, buffers);
      Status s = context.run();
      if (!s.isOk()) return s.withContext(graph::describe(g_, id));
      origins.push_back({g_.node(id).op, context.stages()});
      stages.insert(stages.end(), context.stages().begin(), context.stages().end());
      checks.insert(checks.end(), context.checks().begin(), context.checks().end());
      checksOf.push_back(context.checks());
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
    for (const std::vector<ops::IndexCheck>& node : checksOf) lowerChecks(node, graph::describe(g_, owner));
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
    std::vector<loop::Computation> kernels = schedule::cutKernels(computation, target_);
    std::vector<std::vector<std::string>> opsOf = opsOfKernels(origins, kernels);
    for (size_t i = 0; i < kernels.size(); ++i) {
      loop::Computation& kernel = kernels[i];
      KernelStep step;
      step.op = anchor;
      step.ops = raw ? std::vector<std::string>{g_.node(nodes[0]).op} : std::move(opsOf[i]);
      for (const loop::BufferRef& b : kernel.inputs) step.inputs.push_back(indexOf(b));
      for (const loop::BufferRef& b : kernel.outputs) step.outputs.push_back(indexOf(b));
      step.computation = std::move(kernel);
      out_.steps.push_back(std::move(step));
    }
    return Status::ok();
  }

  // Several checks of one value are of the components of tuples (ops/index_checks.h).
  void lowerChecks(const std::vector<ops::IndexCheck>& checks, const std::string& node) {
    for (size_t first = 0; first < checks.size(); ++first) {
      const ValueId value = checks[first].value;
      auto isSame = [&](const ops::IndexCheck& c) { return c.value == value; };
      auto begin = checks.begin() + static_cast<std::ptrdiff_t>(first);
      if (std::any_of(checks.begin(), begin, isSame)) continue;
      const BufferIndex b = bufferOf(value);
      if (out_.buffers[b].constant.isValid()) continue;
      if (std::count_if(begin, checks.end(), isSame) == 1) {
        out_.steps.push_back(CheckStep{b, checks[first].low, checks[first].high, node});
        continue;
      }
      std::vector<int64_t> low, high;
      for (auto at = begin; at != checks.end(); ++at) {
        if (!isSame(*at)) continue;
        low.push_back(at->low);
        high.push_back(at->high);
      }
      graph::Attrs attrs{{"value", g_.value(value).name}, {"low", std::move(low)}, {"high", std::move(high)}};
      out_.steps.push_back(HostStep{"CheckIndexTuples", node, hostops::serialiseAttrs(attrs), {operandOf(value)}, {}});
    }
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
  const MakeRegion& makeRegion_;
  const TargetSpec& target_;
  const bool openInputs_;
  std::vector<Step> last_;
  std::set<NodeId> deferred_;
  Lowered out_;
  std::map<ValueId, BufferIndex> buffers_;
  int kernelCount_ = 0;
};

}  // namespace

std::vector<HostStep::Operand> operandsOf(const Step& step) {
  std::vector<HostStep::Operand> out;
  auto add = [&](const std::vector<HostStep::Operand>& list) { out.insert(out.end(), list.begin(), list.end()); };
  if (const auto* h = std::get_if<HostStep>(&step)) {
    add(h->inputs);
    add(h->outputs);
  } else if (const auto* r = std::get_if<RegionStep>(&step)) {
    add(r->inputs);
    add(r->captured);
    add(r->outputs);
  }
  return out;
}

Result<Lowered> lowerGraph(const Graph& graph, const MakeRegion& makeRegion, const TargetSpec& target,
                           bool openInputs) {
  return Lowering(graph, makeRegion, target, openInputs).run();
}

}  // namespace locution::driver
