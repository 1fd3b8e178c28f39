// fold-constants: nodes whose inputs are all constant, and integers that shapes decide, become constants.
// Needs: types of the main inputs. Gives: types as infer-shapes does; what was folded is gone. One sweep, as a node is seen after all
// that it reads; an If whose condition became constant gives way to its branch, a
// loop whose iterations are counted to these. What would make more out of little than PassContext::foldCapBytes allows, in all runs
// of the pass together, stays a node, so does what an op refuses: whoever compiles it has the message.
//     %s = Shape(%x); %n = Gather(%s, 0); %w2 = Mul(%w, %scale)   ->   const %n = 8; const %w2 = [...]
#include <algorithm>

#include "passes/all_passes.h"
#include "passes/fold_evaluate.h"
#include "passes/propagate.h"
#include "passes/unroll.h"

namespace locution::passes {
namespace {

class Folder {
 public:
  Folder(Patch& patch, PassContext& context)
      : patch_(patch),
        graph_(patch.graph()),
        context_(context),
        propagation_(patch, context),
        hasQuantised_(hasQuantisedTypes(graph_)) {}

  Status run() {
    Propagation::Hooks hooks;
    hooks.before = [&](NodeId id, std::vector<NodeId>& instead) {
      std::optional<std::vector<NodeId>> inner = inlineDecidedIf(patch_, id);
      if (!inner) inner = unrollLoop(patch_, id);
      if (inner) instead = std::move(*inner);
      return inner.has_value();
    };
    hooks.after = [&](NodeId id) {
      if (!foldKnown(id)) foldEvaluated(id);
    };
    LOCUTION_RETURN_IF_ERROR(propagation_.run(hooks));
    patch_.releaseDeadConstants();
    return Status::ok();
  }

 private:
  static int64_t bytesOf(const Tensor& t) {
    return t.isValid() && t.dtype() != DType::String ? static_cast<int64_t>(t.bytes()) : 0;
  }

  /// Elements and bytes of constants.
  struct Size {
    int64_t elements = 0, bytes = 0;
    void add(const Tensor& t) {
      if (!t.isValid()) return;
      elements += t.elements();
      bytes += bytesOf(t);
    }
  };
  /// As many elements as went in, of another type or in another order, are no more than the file asks for.
  static int64_t made(const Size& out, const Size& in) {
    return out.elements > in.elements ? std::max<int64_t>(out.bytes - in.bytes, 0) : 0;
  }

  /// Outputs whose integers inference knows.
  bool foldKnown(NodeId id) {
    const Node& node = graph_.node(id);
    if (!node.regions.empty()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId out = node.outputs[i];
      if (!out.isValid()) continue;
      const ValueType& type = graph_.type(out);
      std::optional<Ints> dims = staticExtents(type), ints = propagation_.contents(out);
      if (!ints || !dims || dims->size() > 1 || !(isInteger(type.dtype) || type.dtype == DType::Bool)) continue;
      if (elementsOf(*dims) != static_cast<int64_t>(ints->size())) continue;
      Tensor tensor(type.dtype, *dims);
      for (size_t k = 0; k < ints->size(); ++k) tensor.setElementInt(static_cast<int64_t>(k), (*ints)[k]);
      patch_.makeConstant(out, std::move(tensor));
    }
    return finish(id);
  }

  bool foldEvaluated(NodeId id) {
    const Node& node = graph_.node(id);
    if (!node.regions.empty() || patternOf(node) == ops::Pattern::Control || isRandom(graph_, node)) return false;
    Size in, out;
    for (ValueId v : node.inputs) {
      if (!v.isValid()) continue;
      const Tensor* t = graph_.constant(v);
      if (!t) return false;
      in.add(*t);
    }
    for (ValueId v : node.outputs) {
      if (!v.isValid()) continue;
      const ValueType& type = graph_.type(v);
      if (type.kind != ValueKind::Tensor) return false;
      std::optional<Ints> dims = staticExtents(type);
      if (!dims) continue;
      out.elements += elementsOf(*dims);
      out.bytes += dtypeBytes(type.dtype, elementsOf(*dims));
    }
    if (made(out, in) > context_.foldCapBytes) return false;
    Result<std::vector<Tensor>> results = evaluateNode(graph_, id, context_);
    if (!results.isOk()) return false;
    out = {};
    for (const Tensor& t : *results) out.add(t);
    if (made(out, in) > context_.foldCapBytes) return false;
    context_.foldCapBytes -= made(out, in);
    for (size_t i = 0; i < results->size(); ++i)
      if (ValueId out = node.outputs[i]; out.isValid() && (*results)[i].isValid())
        patch_.makeConstant(out, std::move((*results)[i]));
    return finish(id);
  }

  /// Removes a node all of whose outputs became constants, and lets go of the constants that only it read: large weights must not lie
  /// twice in memory until the end of the pass.
  bool finish(NodeId id) {
    const Node& node = graph_.node(id);
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return v.isValid(); })) return false;
    const std::vector<ValueId> inputs = node.inputs;
    patch_.remove(id);
    for (ValueId v : inputs)
      if (v.isValid() && !hasQuantised_ && graph_.value(v).isConstant() && !graph_.isUsed(v)) patch_.releaseConstant(v);
    return true;
  }

  Patch& patch_;
  const Graph& graph_;
  PassContext& context_;
  Propagation propagation_;
  const bool hasQuantised_;
};

}  // namespace

Status foldConstants(Patch& patch, PassContext& context) { return Folder(patch, context).run(); }

}  // namespace locution::passes
