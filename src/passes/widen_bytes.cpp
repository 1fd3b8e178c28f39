// widen-bytes: quantised values that only products read, and what dequantises them, are kept in 16 bits.
// Needs: integer-products; before layout and fuse, so that the value's producer stores the wider form. Gives: the same integers.
//     %q = QuantizeLinear(...) -> uint8; %i = ConvInteger(%q, w); %d = DequantizeLinear(%q, s, z)
// ->  %q = QuantizeLinear(...) -> uint8; %x = Cast(%q) -> int16; %i = ConvInteger(%x, w); %d = DequantizeLinear(%x, s, Cast(z))
// A machine that multiplies pairs of 16 bits takes bytes apart for each tile that reads them: two instructions beside eight that
// multiply and add, which the producer saves with none. A convolution that Winograd's transforms may take widens its data itself,
// and one of groups has vectors of channels.
#include <algorithm>

#include "ops/conv.h"
#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

bool isByte(DType type) { return type == DType::I8 || type == DType::U8; }

class WidenBytes {
 public:
  explicit WidenBytes(Patch& patch) : patch_(patch), graph_(patch.graph()) {}

  void visit(NodeId id) {
    const std::string op = graph_.node(id).op;
    if (op != "QuantizeLinear" && op != "MaxPool") return;
    const ValueId value = graph_.node(id).outputs[0];
    if (!value.isValid()) return;  // left out: only the indices of a MaxPool are used
    if (!isByte(graph_.type(value).dtype) || graph_.outputUses(value) > 0) return;
    std::vector<NodeId> users = graph_.users(value);
    if (!std::all_of(users.begin(), users.end(), [&](NodeId u) { return takesWide(u, value); }) ||
        std::none_of(users.begin(), users.end(), [&](NodeId u) { return isProduct(graph_.node(u)); }))
      return;
    ValueType type = graph_.type(value);
    type.dtype = DType::I16;
    Patch::NewNode cast{"Cast", {value}, {{"to", std::string("int16")}}, {type}, {graph_.value(value).name + ".wide"}};
    cast.name = graph_.node(id).name;
    cast.sourceIndex = graph_.node(id).sourceIndex;
    const ValueId wide = patch_.output(patch_.insertAfter(id, std::move(cast)));
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (NodeId user : users) {
      patch_.setInput(user, 0, wide);
      const Node& node = graph_.node(user);
      if (node.hasInput(2)) patch_.setInput(user, 2, widened(node.input(2)));
    }
  }

 private:
  static bool isProduct(const Node& node) { return node.op == "ConvInteger" || node.op == "MatMulInteger"; }

  bool takesWide(NodeId id, ValueId value) const {
    const Node& node = graph_.node(id);
    // Read once, as data, with a zero point that is known.
    if (node.input(0) != value || std::count(node.inputs.begin(), node.inputs.end(), value) != 1) return false;
    if (node.hasInput(2) && !graph_.constant(node.input(2))) return false;
    if (node.op == "DequantizeLinear") return true;
    if (!isProduct(node) || !graph_.constant(node.input(1))) return false;
    return node.op == "MatMulInteger" || (node.intAttr("group", 1) == 1 && !mayBeTransformed(node));
  }

  bool mayBeTransformed(const Node& node) const {
    const Tensor* weights = graph_.constant(node.input(1));
    return weights && isByte(weights->dtype()) && ops::movesWindowOfThree(node, weights->dims());
  }

  ValueId widened(ValueId zero) {
    const Tensor& from = *graph_.constant(zero);
    if (from.dtype() == DType::I16) return zero;
    Tensor to(DType::I16, from.dims());
    for (int64_t i = 0; i < from.elements(); ++i) to.setElementInt(i, from.elementAsInt(i));
    return patch_.addConstant(graph_.value(zero).name + ".wide", std::move(to));
  }

  Patch& patch_;
  const Graph& graph_;
};

}  // namespace

Status widenBytes(Patch& patch, PassContext& context) {
  if (context.target && context.target->hasVnni) return Status::ok();
  WidenBytes rewriter(patch);
  patch.graph().forEachNode([&](NodeId id) { rewriter.visit(id); });
  return Status::ok();
}

}  // namespace locution::passes
