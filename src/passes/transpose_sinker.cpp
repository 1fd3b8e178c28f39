#include "passes/transpose_sinker.h"

#include <algorithm>

#include "passes/sink_rules.h"

namespace locution::passes {

Ints toChannelsLast(int64_t rank) {
  Ints perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}
Ints toChannelsFirst(int64_t rank) { return inverse(toChannelsLast(rank)); }

bool hasChannelsLast(const Node& node) {
  static constexpr std::string_view kOps[] = {"Conv",
                                              "ConvInteger",
                                              "QLinearConv",
                                              "ConvTranspose",
                                              "MaxPool",
                                              "AveragePool",
                                              "LpPool",
                                              "Resize",
                                              "LRN",
                                              "GlobalAveragePool",
                                              "GlobalMaxPool",
                                              "GlobalLpPool",
                                              "DepthToSpace",
                                              "SpaceToDepth",
                                              "GridSample",
                                              "BatchNormalization",
                                              "GroupNormalization",
                                              "InstanceNormalization"};
  return std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

TransposeSinker::Source TransposeSinker::sourceOf(ValueId value) const {
  NodeId producer = producerIs(graph_, value, "Transpose");
  if (!producer.isValid()) return {};
  const Node& node = graph_.node(producer);
  Ints perm = permutationOf(graph_, node);
  if (perm.empty()) return {};
  return {node.input(0), std::move(perm)};
}

bool TransposeSinker::sink(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op == "Transpose") {
    if (!sourceOf(node.input(0)).isTransposed()) return false;
    mergeTransposes(id);
    return true;
  }
  // The largest transposed input decides.
  Source best;
  int64_t bestElements = -1;
  for (ValueId v : node.inputs) {
    Source source = sourceOf(v);
    if (!source.isTransposed()) continue;
    std::optional<Ints> dims = staticExtents(graph_, v);
    int64_t elements = dims ? elementsOf(*dims) : 0;
    if (elements > bestElements) best = std::move(source), bestElements = elements;
  }
  if (!best.isTransposed()) return false;
  for (ValueId v : node.outputs)
    if (v.isValid() && (graph_.type(v).kind != ValueKind::Tensor || !graph_.type(v).shape.isRanked())) return false;
  return sinkByRule(*this, id, best.perm);
}

void TransposeSinker::makeChannelsLast(NodeId id) {
  const Node& node = graph_.node(id);
  const int64_t rank = rankOf(graph_, node.input(0));
  patch_.setInput(id, 0, transposed(id, node.input(0), toChannelsLast(rank)));
  patch_.setAttr(id, "channels_last", int64_t{1});
  restoreAll(id, toChannelsFirst(rank));
}

ValueId TransposeSinker::transposed(NodeId at, ValueId value, const Ints& perm) {
  Source source = sourceOf(value);
  Ints all = source.isTransposed() ? compose(source.perm, perm) : perm;
  ValueId from = source.isTransposed() ? source.value : value;
  if (isIdentity(all)) return from;
  ValueType type = graph_.type(value);
  type.shape = Shape(permuteList(type.shape.dims(), perm));
  return emitBefore(patch_, at, at, "Transpose", {from}, {{"perm", all}}, std::move(type));
}

ValueId TransposeSinker::below(NodeId at, ValueId value, const Ints& perm, bool force) {
  if (Source source = sourceOf(value); source.isTransposed() && source.perm == perm) return source.value;
  const Ints inversePerm = inverse(perm);
  if (const Tensor* t = graph_.constant(value)) {
    if (t->elements() == 1 || t->dtype() == DType::String) return t->elements() == 1 ? value : ValueId{};
    auto [known, isNew] = constants_.try_emplace({value, perm});
    if (!isNew) return known->second;
    Ints dims(perm.size() - t->dims().size(), 1);
    dims.insert(dims.end(), t->dims().begin(), t->dims().end());
    return known->second = patch_.addConstant(graph_.value(value).name, permuted(t->reshaped(dims), inversePerm));
  }
  const int64_t rank = rankOf(graph_, value), full = static_cast<int64_t>(perm.size());
  if (rank < 0 || rank > full) return {};
  std::optional<Ints> extents = staticExtents(graph_, value);
  if (extents && elementsOf(*extents) == 1) return value;
  if (extents) {
    Ints dims(static_cast<size_t>(full - rank), 1);
    dims.insert(dims.end(), extents->begin(), extents->end());
    // A Transpose that moves unit dims only may yet meet its inverse; a Reshape is free all the same.
    if (movesUnitDimsOnly(dims, inversePerm)) return emitReshape(patch_, at, at, value, permuteList(dims, inversePerm));
  }
  return force && rank == full ? transposed(at, value, inversePerm) : ValueId{};
}

std::vector<ValueId> TransposeSinker::allBelow(NodeId at, const std::vector<ValueId>& inputs, const Ints& perm) {
  int64_t gain = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ValueId v = inputs[i];
    if (!v.isValid() || graph_.value(v).isConstant() ||
        std::find(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(i), v) !=
            inputs.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    std::optional<Ints> extents = staticExtents(graph_, v);
    const int64_t elements = extents ? elementsOf(*extents) : 1, rank = rankOf(graph_, v);
    if (Source source = sourceOf(v); source.isTransposed() && source.perm == perm) {
      gain += elements;
      continue;
    }
    if (rank < 0 || rank > static_cast<int64_t>(perm.size())) return {};
    if (extents && elements == 1) continue;
    Ints dims(perm.size() - static_cast<size_t>(rank), 1);
    if (extents) dims.insert(dims.end(), extents->begin(), extents->end());
    if (extents && movesUnitDimsOnly(dims, inverse(perm))) continue;
    if (rank < static_cast<int64_t>(perm.size())) return {};
    gain -= elements;
  }
  if (gain <= 0) return {};
  std::vector<ValueId> out;
  for (ValueId v : inputs) out.push_back(v.isValid() ? below(at, v, perm, true) : v);
  return out;
}

void TransposeSinker::restore(NodeId id, size_t i, const Ints& perm) {
  const Node& node = graph_.node(id);
  const ValueId out = node.outputs[i];
  if (!out.isValid()) return;
  ValueType type = graph_.type(out);
  if (isIdentity(perm)) return;
  ValueType inner = type;
  inner.shape = Shape(permuteList(type.shape.dims(), inverse(perm)));
  Patch::NewNode made{"Transpose", {out}, {{"perm", perm}}, {type}, {}, node.name, node.sourceIndex};
  NodeId transpose = patch_.insertAfter(id, std::move(made));
  patch_.replaceUses(out, patch_.output(transpose), transpose);
  patch_.setType(out, inner);
}

void TransposeSinker::restoreAll(NodeId id, const Ints& perm) {
  for (size_t i = 0; i < graph_.node(id).outputs.size(); ++i) restore(id, i, perm);
}

void TransposeSinker::mergeTransposes(NodeId id) {
  const Node& node = graph_.node(id);
  Source source = sourceOf(node.input(0));
  Ints perm = compose(source.perm, permutationOf(graph_, node));
  if (isIdentity(perm)) {
    replaceOutput(patch_, id, source.value);
    return;
  }
  patch_.setInput(id, 0, source.value);
  patch_.setAttr(id, "perm", perm);
}

}  // namespace locution::passes
