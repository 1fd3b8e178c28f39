// Recipes of recurrence, attention and signals.
#include "graph_maker.h"

namespace locution::fuzz {

namespace {

using graph::Attrs;

bool recurrent(GraphMaker& g, const std::string& op) {
  int64_t steps = 1 + g.pick(5), batch = 1 + g.pick(3), in = 1 + g.pick(5), hidden = 1 + g.pick(5);
  int64_t gates = op == "RNN" ? 1 : op == "GRU" ? 3 : 4, layout = g.pick(2);
  std::string direction = g.oneOf({"forward", "reverse", "bidirectional"});
  int64_t dirs = direction == "bidirectional" ? 2 : 1;
  DType t = g.floatDType();
  Attrs a{{"hidden_size", hidden}, {"direction", direction}, {"layout", layout}};
  if (g.chance(3)) a["clip"] = g.real(0.3, 3);
  if (op == "GRU") g.maybe(a, "linear_before_reset", g.pick(2));
  if (op == "LSTM" && g.chance(3)) a["input_forget"] = int64_t{1};
  auto optional = [&](const Ints& d) { return g.chance(2) ? ValueId{} : g.value(t, d); };
  Ints state = layout ? Ints{batch, dirs, hidden} : Ints{dirs, batch, hidden};
  std::vector<ValueId> inputs = {g.value(t, layout ? Ints{batch, steps, in} : Ints{steps, batch, in}),
                                 g.value(t, {dirs, gates * hidden, in}),
                                 g.value(t, {dirs, gates * hidden, hidden}),
                                 optional({dirs, 2 * gates * hidden}),
                                 g.chance(2) ? ValueId{} : g.indices(DType::I32, {batch}, 0, steps),
                                 optional(state)};
  if (op == "LSTM") {
    inputs.push_back(optional(state));
    inputs.push_back(optional({dirs, 3 * hidden}));
  }
  return g.make(op, inputs, a, op == "LSTM" ? 3 : 2);
}

bool attention(GraphMaker& g, const std::string& op) {
  int64_t batch = 1 + g.pick(2), kv = 1 + g.pick(2), q = kv * (1 + g.pick(2)), size = 1 + g.pick(6),
          vSize = 1 + g.pick(6);
  int64_t lq = 1 + g.pick(5), lk = 1 + g.pick(5), past = g.chance(2) ? 0 : 1 + g.pick(3);
  DType t = g.floatDType();
  Attrs a;
  g.maybe(a, "is_causal", g.pick(2));
  if (g.chance(3)) a["scale"] = g.real(0.1, 1);
  if (g.chance(3)) a["softcap"] = g.real(0.5, 4);
  if (g.chance(3)) a["qk_matmul_output_mode"] = g.pick(4);
  bool flat = g.chance(2);
  if (flat) {
    a["q_num_heads"] = q;
    a["kv_num_heads"] = kv;
  }
  auto operand = [&](int64_t heads, int64_t length, int64_t width) {
    return g.value(t, flat ? Ints{batch, length, heads * width} : Ints{batch, heads, length, width});
  };
  ValueId mask;
  if (g.chance(2)) mask = g.value(g.chance(2) ? DType::Bool : t, {lq, lk + past});
  std::vector<ValueId> in = {operand(q, lq, size), operand(kv, lk, size), operand(kv, lk, vSize), mask};
  if (past > 0) {
    in.push_back(g.value(t, {batch, kv, past, size}));
    in.push_back(g.value(t, {batch, kv, past, vSize}));
  }
  return g.make(op, in, a, past > 0 ? 4 : 1);
}

bool rotary(GraphMaker& g, const std::string& op) {
  int64_t batch = 1 + g.pick(2), heads = 1 + g.pick(3), length = 1 + g.pick(4), size = 2 * (1 + g.pick(4));
  bool flat = g.chance(2), positions = g.chance(2);
  int64_t rotated = g.chance(3) && size > 2 ? size - 2 : 0, half = (rotated ? rotated : size) / 2;
  Attrs a{{"interleaved", g.pick(2)}};
  if (rotated) a["rotary_embedding_dim"] = rotated;
  if (flat) a["num_heads"] = heads;
  DType t = g.floatDType();
  ValueId x = g.value(t, flat ? Ints{batch, length, heads * size} : Ints{batch, heads, length, size});
  Ints table = positions ? Ints{length + 3, half} : Ints{batch, length, half};
  ValueId at = positions ? g.indices(DType::I64, {batch, length}, 0, length + 2) : ValueId{};
  return g.make(op, {x, g.value(t, table), g.value(t, table), at}, a);
}

bool linearAttention(GraphMaker& g, const std::string& op) {
  std::string rule = g.oneOf({"linear", "gated", "delta", "gated_delta"});
  int64_t batch = 1 + g.pick(2), length = 1 + g.pick(4), kv = 1 + g.pick(2), q = kv * (1 + g.pick(2));
  int64_t size = 1 + g.pick(4), vSize = 1 + g.pick(4);
  DType t = g.floatDType();
  std::vector<ValueId> in = {
      g.value(t, {batch, length, q * size}),
      g.value(t, {batch, length, kv * size}),
      g.value(t, {batch, length, kv * vSize}),
      g.chance(2) ? ValueId{} : g.value(t, {batch, kv, size, vSize}),
      rule.starts_with("gated") ? g.value(t, {batch, length, g.chance(2) ? kv : kv * size}) : ValueId{},
      rule.ends_with("delta") ? g.value(t, {batch, length, g.chance(2) ? kv : 1}) : ValueId{}};
  return g.make(op, in, {{"update_rule", rule}, {"q_num_heads", q}, {"kv_num_heads", kv}}, 2);
}

bool stft(GraphMaker& g, const std::string& op) {
  int64_t frame = 2 + g.pick(7), length = frame + g.pick(10), parts = 1 + g.pick(2);
  DType t = g.oneOf({DType::F32, DType::F64});
  ValueId window = g.chance(2) ? g.value(t, {frame}) : ValueId{};
  ValueId size = !window.isValid() || g.chance(2) ? g.constant(Tensor::scalarI64(frame)) : ValueId{};
  return g.make(
      op, {g.value(t, {1 + g.pick(2), length, parts}), g.constant(Tensor::scalarI64(1 + g.pick(4))), window, size},
      {{"onesided", parts == 1 ? g.pick(2) : 0}});
}

}  // namespace

void addSequenceRecipes(std::vector<Recipe>& out) {
  out.push_back({{"RNN", "GRU", "LSTM"}, recurrent});
  out.push_back({{"Attention"}, attention});
  out.push_back({{"RotaryEmbedding"}, rotary});
  out.push_back({{"LinearAttention"}, linearAttention});
  out.push_back({{"CausalConvWithState"}, [](GraphMaker& g, const std::string& op) {
                   int64_t n = 1 + g.pick(2), c = 1 + g.pick(4), k = 1 + g.pick(4), length = 1 + g.pick(6);
                   DType t = g.floatDType();
                   return g.make(
                       op,
                       {g.value(t, {n, c, length}), g.value(t, {c, 1, k}), g.chance(2) ? ValueId{} : g.value(t, {c}),
                        g.chance(2) ? ValueId{} : g.value(t, {n, c, k - 1})},
                       {{"activation", std::string(g.oneOf({"none", "silu", "swish"}))}}, 2);
                 }});
  out.push_back({{"HannWindow", "HammingWindow", "BlackmanWindow"}, [](GraphMaker& g, const std::string& op) {
                   Attrs a;
                   g.maybe(a, "periodic", g.pick(2));
                   return g.make(op, {g.constant(Tensor::scalarI64(1 + g.pick(12)))}, a);
                 }});
  out.push_back({{"DFT"}, [](GraphMaker& g, const std::string& op) {
                   Ints d = {1 + g.pick(2), 2 + g.pick(7), 1 + g.pick(4), 1 + g.pick(2)};
                   int64_t inverse = g.pick(2), axis = 1 + g.pick(2);
                   ValueId length = g.chance(2) ? ValueId{} : g.constant(Tensor::scalarI64(1 + g.pick(9)));
                   return g.make(
                       op, {g.value(g.oneOf({DType::F32, DType::F64}), d), length, g.constant(Tensor::scalarI64(axis))},
                       {{"inverse", inverse}, {"onesided", g.pick(2)}});
                 }});
  out.push_back({{"STFT"}, stft});
  out.push_back({{"MelWeightMatrix"}, [](GraphMaker& g, const std::string& op) {
                   return g.make(op, {g.constant(Tensor::scalarI64(1 + g.pick(8))), g.constant(Tensor::scalarI64(16)),
                                      g.constant(Tensor::scalarI64(8000)), g.constant(Tensor::scalarF32(0)),
                                      g.constant(Tensor::scalarF32(4000))});
                 }});
}

}  // namespace locution::fuzz
