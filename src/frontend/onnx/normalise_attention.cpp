// com.microsoft's attention, where ai.onnx's says the same.
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {

/// Query, key and value projected already; a bias (all three in a row) is added first. Packed inputs, padding masks and shared
/// buffers have no counterpart.
Status multiHeadAttention(NodeContext& c) {
  if (!c.has(1) || !c.has(2)) return c.unsupported("packed query, key and value");
  if (c.has(4)) return c.unsupported("key_padding_mask");
  for (size_t i = 8; i < c.inputs().size(); ++i)
    if (c.has(i)) return c.unsupported("past_sequence_length and cache_indirection");
  if (c.wants(3)) return c.unsupported("the output qk");
  NodeContext::Inputs inputs = {c.input(0), c.input(1), c.input(2), c.input(5), c.input(6), c.input(7)};
  if (c.has(3)) {
    // The parts are equal where the value is as wide as the key; otherwise the sum doesn't fit, which is an error later.
    graph::Attrs attrs;
    attrs["num_outputs"] = int64_t{3};
    std::vector<graph::ValueId> parts = c.addMany("Split", {c.input(3)}, std::move(attrs), 3);
    for (size_t i = 0; i < 3; ++i) inputs[i] = c.add("Add", {inputs[i], parts[i]});
  }
  graph::Attrs attrs;
  attrs["q_num_heads"] = c.intAttr("num_heads", 0);
  attrs["kv_num_heads"] = c.intAttr("num_heads", 0);
  attrs["is_causal"] = c.intAttr("unidirectional", 0);
  if (double scale = c.floatAttr("scale", 0); scale != 0) attrs["scale"] = scale;
  c.finish("Attention", std::move(inputs), std::move(attrs));
  return Status::ok();
}

}  // namespace locution::frontend::normalise
