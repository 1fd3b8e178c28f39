#include "driver/reduce.h"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "driver/prepare.h"
#include "graph/patch.h"
#include "passes/pass.h"
#include "support/child.h"

namespace locution::driver {

namespace {

using graph::Graph;
using graph::NodeId;
using graph::Patch;
using graph::ValueId;

// Nodes, then inputs and outputs, then elements: what makes one graph smaller than another to a reader.
int64_t elementsOf(const Graph& g) {
  int64_t n = 0;
  for (int32_t i = 0; i < g.valueCount(); ++i)
    if (const Tensor* t = g.constant(ValueId{i}); t && g.isUsed(ValueId{i})) n += t->elements();
  for (ValueId v : g.main().inputs)
    if (g.type(v).shape.isRanked() && g.type(v).shape.isStatic()) n += g.type(v).shape.elements();
  return n;
}

// What is dead goes: nodes without users, unused main inputs and constants. Outputs that name inputs or constants say nothing of the
// nodes, so they go too; a node whose results nobody reads any more is an output, unless it was dead before.
void tidy(Graph& g, const std::set<ValueId>& wereUnused) {
  Patch patch(g);
  std::vector<ValueId> outputs;
  std::set<ValueId> seen;
  for (ValueId v : g.main().outputs)
    if (g.value(v).producer.isValid() && seen.insert(v).second) outputs.push_back(v);
  for (NodeId n : g.main().nodes)
    for (ValueId v : g.node(n).outputs)
      if (v.isValid() && g.users(v).empty() && !wereUnused.contains(v) && seen.insert(v).second) outputs.push_back(v);
  patch.setRegionOutputs(g.mainRegion(), outputs);
  patch.removeDead();
  std::vector<ValueId> inputs;
  for (ValueId v : g.main().inputs)
    if (g.isUsed(v)) inputs.push_back(v);
  if (inputs.size() != g.main().inputs.size()) patch.setRegionInputs(g.mainRegion(), inputs);
  patch.releaseDeadConstants();
}

std::set<ValueId> unusedValues(const Graph& g) {
  std::set<ValueId> out;
  for (NodeId n : g.main().nodes)
    for (ValueId v : g.node(n).outputs)
      if (v.isValid() && !g.isUsed(v)) out.insert(v);
  return out;
}

bool inferAgain(Graph& g) {
  {
    Patch patch(g);
    g.forEachNode([&](NodeId n) {
      for (ValueId v : g.node(n).outputs)
        if (v.isValid() && g.type(v).kind == ValueKind::Tensor) {
          ValueType open;
          open.dtype = g.type(v).dtype;
          open.shape = Shape::unranked();
          patch.setType(v, open);
        }
    });
  }
  passes::PassContext context;
  return passes::runPass(*passes::findPass("infer-shapes"), g, context, {}).isOk();
}

// The corner [0, dims) of `t`.
Tensor corner(const Tensor& t, const std::vector<int64_t>& dims) {
  Tensor out(t.dtype(), dims);
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < out.elements(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < dims.size(); ++d) from = from * t.dims()[d] + at[d];
    if (t.dtype() == DType::String)
      out.strings()[static_cast<size_t>(i)] = t.strings()[static_cast<size_t>(from)];
    else if (dtypeBits(t.dtype()) > 64)
      std::copy_n(t.raw() + from * 16, 16, out.raw() + i * 16);
    else
      out.setElementBits(i, t.elementBits(from));
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

class Reducer {
 public:
  Reducer(Graph graph, const StillFails& fails, const std::function<bool(const Graph&, const ReduceStats&)>& onStep)
      : g_(std::move(graph)), fails_(fails), onStep_(onStep) {}

  Graph run() {
    for (int before = -1; before != stats_.kept && !stopped_;) {
      before = stats_.kept;
      dropNodes();
      dropOutputs();
      bypassNodes();
      freeConstants();
      dropAttributes();
      shrinkExtents();
    }
    return std::move(g_);
  }

 private:
  // Takes `candidate` in place of the graph when it still fails.
  bool tryOne(Graph candidate) {
    if (stopped_ || candidate.main().nodes.empty()) return false;
    ++stats_.tried;
    bool fails = inferAgain(candidate) && graph::verify(candidate).isOk() && fails_(candidate);
    if (fails) {
      ++stats_.kept;
      g_ = std::move(candidate);
    }
    if (onStep_ && !onStep_(g_, stats_)) stopped_ = true;
    return fails;
  }

  // Values of removed nodes that others read become inputs of their type.
  Graph without(const std::set<NodeId>& removed) const {
    Graph g = g_;
    std::set<ValueId> unused = unusedValues(g);
    Patch patch(g);
    std::vector<ValueId> outputs;
    for (ValueId v : g.main().outputs)
      if (!removed.contains(g.value(v).producer)) outputs.push_back(v);
    patch.setRegionOutputs(g.mainRegion(), outputs);
    for (NodeId n : removed) {
      for (ValueId v : std::vector<ValueId>(g.node(n).outputs)) {
        if (!v.isValid()) continue;
        unused.insert(v);
        bool read = std::any_of(g.users(v).begin(), g.users(v).end(), [&](NodeId u) { return !removed.contains(u); });
        if (read) patch.replaceUses(v, patch.addInput(g.mainRegion(), g.value(v).name + ".in", g.type(v)));
      }
    }
    // In reverse, so that nothing is removed while a later one reads it.
    std::vector<NodeId> order = g.main().nodes;
    for (size_t i = order.size(); i-- > 0;)
      if (removed.contains(order[i])) patch.remove(order[i]);
    tidy(g, unused);
    return g;
  }

  void dropNodes() {
    for (size_t chunk = std::max<size_t>(1, g_.main().nodes.size() / 2); !stopped_; chunk /= 2) {
      // From the end: consumers first, so that what feeds them is dead with them.
      for (size_t end = g_.main().nodes.size(); end > 0 && !stopped_;) {
        size_t begin = end > chunk ? end - chunk : 0;
        const auto& nodes = g_.main().nodes;
        tryOne(without(std::set<NodeId>(nodes.begin() + static_cast<std::ptrdiff_t>(begin),
                                        nodes.begin() + static_cast<std::ptrdiff_t>(end))));
        end = std::min(begin, g_.main().nodes.size());
      }
      if (chunk == 1) break;
    }
  }

  void dropOutputs() {
    for (size_t i = g_.main().outputs.size(); i-- > 0 && g_.main().outputs.size() > 1;) {
      if (i >= g_.main().outputs.size()) continue;
      Graph g = g_;
      std::vector<ValueId> outputs = g.main().outputs;
      std::set<ValueId> unused = unusedValues(g);
      unused.insert(outputs[i]);
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i));
      Patch(g).setRegionOutputs(g.mainRegion(), outputs);
      tidy(g, unused);
      tryOne(std::move(g));
    }
  }

  // x -> node -> y with x and y of one type: y's readers read x.
  void bypassNodes() {
    for (size_t i = g_.main().nodes.size(); i-- > 0;) {
      if (i >= g_.main().nodes.size()) continue;
      NodeId n = g_.main().nodes[i];
      if (g_.node(n).outputs.size() != 1 || !g_.node(n).outputs[0].isValid()) continue;
      ValueId y = g_.node(n).outputs[0];
      if (g_.users(y).empty()) continue;
      for (ValueId x : std::vector<ValueId>(g_.node(n).inputs)) {
        if (!x.isValid() || !(g_.type(x) == g_.type(y))) continue;
        Graph g = g_;
        std::set<ValueId> unused = unusedValues(g);
        unused.insert(y);
        Patch patch(g);
        std::vector<ValueId> outputs = g.main().outputs;
        std::erase(outputs, y);
        patch.setRegionOutputs(g.mainRegion(), outputs);
        patch.replaceUses(y, x);
        patch.remove(n);
        tidy(g, unused);
        if (tryOne(std::move(g))) break;
      }
    }
  }

  // Constants without a say in shapes become inputs: the text then needs no weights.
  void freeConstants() {
    constexpr int64_t kLong = 16;
    for (int32_t i = 0; i < g_.valueCount() && !stopped_; ++i) {
      const Tensor* t = g_.constant(ValueId{i});
      if (!t || !g_.isUsed(ValueId{i}) || t->elements() <= kLong || g_.value(ValueId{i}).region != g_.mainRegion())
        continue;
      Graph g = g_;
      Patch patch(g);
      patch.replaceUses(ValueId{i},
                        patch.addInput(g.mainRegion(), g.value(ValueId{i}).name + ".in", g.type(ValueId{i})));
      tidy(g, unusedValues(g_));
      tryOne(std::move(g));
    }
  }

  void dropAttributes() {
    for (size_t i = 0; i < g_.main().nodes.size(); ++i) {
      std::vector<std::string> keys;
      for (const auto& [key, value] : g_.node(g_.main().nodes[i]).attrs) keys.push_back(key);
      for (const std::string& key : keys) {
        Graph g = g_;
        Patch(g).eraseAttr(g.main().nodes[i], key);
        if (!inferAgain(g)) continue;
        tryOne(std::move(g));
      }
    }
  }

  std::set<int64_t> extents() const {
    std::set<int64_t> out;
    auto add = [&](const Shape& s) {
      for (const Dim& d : s.dims())
        if (d.isKnown() && d.value() > 1) out.insert(d.value());
    };
    for (ValueId v : g_.main().inputs) add(g_.type(v).shape);
    for (int32_t i = 0; i < g_.valueCount(); ++i)
      if (g_.constant(ValueId{i}) && g_.isUsed(ValueId{i})) add(g_.type(ValueId{i}).shape);
    return out;
  }

  // Every extent `from` of the inputs and constants, and `from` as an entry of short integer constants, becomes `to`. `only`: of that
  // input or constant alone.
  std::optional<Graph> resized(int64_t from, int64_t to, ValueId only) const {
    Graph g = g_;
    Patch patch(g);
    bool changed = false;
    for (ValueId v : g.main().inputs) {
      ValueType type = g.type(v);
      if (!type.shape.isRanked() || (only.isValid() && only != v)) continue;
      for (int64_t d = 0; d < type.shape.rank(); ++d)
        if (type.shape[d].isKnown() && type.shape[d].value() == from) {
          type.shape[d] = Dim(to);
          changed = true;
        }
      if (!(type == g.type(v))) patch.setType(v, type);
    }
    for (int32_t i = 0, count = g.valueCount(); i < count; ++i) {
      ValueId v{i};
      const Tensor* t = g.constant(v);
      if (!t || !g.isUsed(v) || (only.isValid() && only != v)) continue;
      std::vector<int64_t> dims = t->dims();
      std::replace(dims.begin(), dims.end(), from, to);
      Tensor made = dims == t->dims() ? *t : corner(*t, dims);
      if (t->dtype() == DType::I64 && t->elements() <= 8) {
        std::vector<int64_t> values = made.toInts();
        if (std::find(values.begin(), values.end(), from) != values.end()) {
          std::replace(values.begin(), values.end(), from, to);
          made = Tensor::of<int64_t>(DType::I64, dims, values);
        }
      }
      if (made.identical(*t)) continue;
      changed = true;
      patch.replaceUses(v, patch.addConstant(g.value(v).name, made, g.value(v).region));
    }
    if (!changed) return std::nullopt;
    patch.releaseDeadConstants();
    if (elementsOf(g) >= elementsOf(g_)) return std::nullopt;
    return g;
  }

  bool shrink(int64_t extent, ValueId only) {
    std::set<int64_t> targets = {1, 2, extent / 4, extent / 2, extent - 1};
    for (int64_t to : targets) {
      if (to < 1 || to >= extent || stopped_) continue;
      std::optional<Graph> g = resized(extent, to, only);
      if (g && tryOne(std::move(*g))) return true;
    }
    return false;
  }

  void shrinkExtents() {
    for (bool again = true; again && !stopped_;) {
      again = false;
      std::set<int64_t> all = extents();
      for (auto it = all.rbegin(); it != all.rend(); ++it) again |= shrink(*it, {});
      for (size_t i = 0; i < g_.main().inputs.size(); ++i) {
        ValueId v = g_.main().inputs[i];
        std::set<int64_t> own;
        for (const Dim& d : g_.type(v).shape.dims())
          if (d.isKnown()) own.insert(d.value());
        for (auto it = own.rbegin(); it != own.rend(); ++it) again |= shrink(*it, v);
      }
    }
  }

  Graph g_;
  const StillFails& fails_;
  const std::function<bool(const Graph&, const ReduceStats&)>& onStep_;
  ReduceStats stats_;
  bool stopped_ = false;
};

}  // namespace

Graph reduceGraph(Graph graph, const StillFails& stillFails,
                  const std::function<bool(const Graph&, const ReduceStats&)>& onStep) {
  return Reducer(std::move(graph), stillFails, onStep).run();
}

Failure failureOf(const Graph& graph, const CompileOptions& options, const std::map<std::string, Tensor>& inputs,
                  const MakeInput& makeInput, uint64_t seed, unsigned seconds) {
  ChildEnd end = runInChild(seconds, [&]() -> std::string {
    setReproducerWriter({});
    // Inputs that were resized or are no more keep nothing of what was given.
    std::map<std::string, Tensor> given;
    for (graph::ValueId v : graph.main().inputs) {
      auto it = inputs.find(graph.value(v).name);
      if (it != inputs.end() && graph.type(v).shape == it->second.shape()) given[it->first] = it->second;
    }
    auto report = verifyGraph(graph, options, given, makeInput, seed, {});
    if (!report.isOk()) return "refused " + report.status().message();
    for (const KernelVerdict& k : report->kernels)
      if (!k.difference.empty())
        return "off kernel " + k.kernel + " (" + k.op + "): " + k.difference + "\nplan: " + k.plan;
    return report->outputProblems.empty() ? "" : "off " + report->outputProblems[0];
  });
  if (end.how == ChildEnd::How::Crashed) return {Failure::Kind::Crash, end.text};
  if (end.how == ChildEnd::How::TimedOut) return {Failure::Kind::Hang, end.text};
  if (end.text.starts_with("refused ")) return {Failure::Kind::Refused, end.text.substr(8)};
  if (end.text.starts_with("off ")) return {Failure::Kind::Off, end.text.substr(4)};
  return {};
}

}  // namespace locution::driver
