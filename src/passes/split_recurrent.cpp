// split-recurrent: RNN, GRU and LSTM of float32 with constant weights become a matrix product, which projects the inputs of all steps at
// once, and a Recurrence over the result (ops/recurrence.h), whose weights are packed here in the order in which its loops read them.
// Needs: constant weights and biases, static shapes. Gives: no such node is left, except where the two directions have different
// activations. What is not constant, empty or of another type stays as it is.
//     %y = LSTM(%x, const %w, const %r, const %b)
// ->  %p = Gemm(Reshape(%x), const %w.packed, const %b.packed); %y = Recurrence(Reshape(%p), const %r.packed) {cell = "LSTM"}
#include <algorithm>

#include "core/saturate.h"
#include "ops/recurrence.h"
#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

class RecurrentSplitter {
 public:
  RecurrentSplitter(Patch& patch, const TargetSpec& target) : patch_(patch), graph_(patch.graph()), target_(target) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op != "LSTM" && node.op != "GRU" && node.op != "RNN") return;
    if (!read(node)) return;
    chooseTile();
    rewrite(id);
  }

 private:
  /// False: not for us.
  bool read(const Node& node) {
    cell_ = node.op;
    auto parsed = ops::parseRecurrentAttributes(node, ops::gatesOf(cell_), ops::defaultActivations(cell_));
    if (!parsed.isOk()) return false;
    r_ = std::move(*parsed);
    const size_t each = r_.activations.size() / static_cast<size_t>(r_.directions);
    for (size_t i = each; i < r_.activations.size(); ++i) {
      const auto &a = r_.activations[i], &b = r_.activations[i - each];
      if (a.name != b.name || a.alpha != b.alpha || a.beta != b.beta) return false;
    }
    auto constantOrNone = [&](size_t i) { return !node.hasInput(i) || graph_.constant(node.input(i)); };
    w_ = graph_.constant(node.input(1));
    recurrent_ = graph_.constant(node.input(2));
    if (!w_ || !recurrent_ || !constantOrNone(3) || !constantOrNone(7)) return false;
    bias_ = node.hasInput(3) ? graph_.constant(node.input(3)) : nullptr;
    peepholes_ = node.hasInput(7) ? graph_.constant(node.input(7)) : nullptr;
    const std::optional<Ints> x = staticExtents(graph_, node.input(0));
    if (!x || x->size() != 3 || w_->rank() != 3 || recurrent_->rank() != 3 || elementsOf(*x) == 0) return false;
    for (const Tensor* t : {w_, recurrent_, bias_, peepholes_})
      if (t && t->dtype() != DType::F32) return false;
    r_.steps = (*x)[r_.batchFirst ? 1 : 0];
    r_.batch = (*x)[r_.batchFirst ? 0 : 1];
    r_.inputs = (*x)[2];
    r_.hidden = recurrent_->dims()[2];
    resetAfter_ = cell_ == "GRU" && node.intAttr("linear_before_reset", 0) != 0;
    return graph_.type(node.input(0)).dtype == DType::F32 && r_.hidden > 0;
  }

  /// Accumulators enough to hide the latency of multiply-adds, which all come from one stream of weights; rows of a batch share it.
  void chooseTile() {
    constexpr int64_t kChains = 8;  // multiply-adds in flight
    const int64_t lanes = target_.lanes(4), gates = cell_ == "GRU" && !resetAfter_ ? 2 : r_.gates;
    const int64_t spare = 4;  // registers for the weights and what is broadcast
    tile_ = {lanes, 1, 1, 1};
    if (r_.batch == 1) {
      const int64_t most = std::max<int64_t>(1, ceilDivide(kChains, gates));
      auto padded = [&](int64_t v) { return ceilDivide(r_.hidden, v * lanes) * v * lanes; };
      for (int64_t v = 2; v <= most; ++v)
        if (padded(v) <= padded(tile_.vectors)) tile_.vectors = v;
    } else {
      tile_.rows = std::clamp<int64_t>((target_.vectorRegisters - spare) / gates, 1, r_.batch);
    }
    // Tasks share nothing: a direction each, and parts of the batch as far as there are threads for them.
    const int64_t rowTiles = ceilDivide(r_.batch, tile_.rows);
    const int64_t parts = std::clamp<int64_t>(target_.threads / r_.directions, 1, rowTiles);
    tile_.tiles = ceilDivide(rowTiles, parts);
    constexpr int64_t kStateBytes = 512 << 10;  // of the stack
    units_ = tile_.vectors * lanes;
    unitTiles_ = ceilDivide(r_.hidden, units_);
    const int64_t rowBytes = 4 * 4 * unitTiles_ * units_;
    tile_.tiles = std::clamp<int64_t>(kStateBytes / (rowBytes * tile_.rows), 1, tile_.tiles);
    if (rowBytes * tile_.rows > kStateBytes) tile_.rows = 1;
  }

  /// packed[d][outer][column] for the gates from `first` on: column = (tile, gate, unit) where `tiled`, else the tile comes before
  /// `outer`. Padding is zero.
  Tensor packGates(const Tensor& source, int64_t first, int64_t count, bool tiled) const {
    const int64_t depth = source.dims()[2], width = count * units_;
    Tensor out(DType::F32,
               tiled ? Ints{depth, r_.directions * unitTiles_ * width} : Ints{r_.directions, unitTiles_, depth, width});
    const float* from = source.data<float>();
    float* to = out.data<float>();
    for (int64_t d = 0; d < r_.directions; ++d)
      for (int64_t g = 0; g < count; ++g)
        for (int64_t unit = 0; unit < r_.hidden; ++unit) {
          const float* row = from + ((d * r_.gates + first + g) * r_.hidden + unit) * depth;
          const int64_t tile = d * unitTiles_ + unit / units_, lane = g * units_ + unit % units_;
          float* column = tiled ? to + tile * width + lane : to + tile * depth * width + lane;
          const int64_t stride = tiled ? r_.directions * unitTiles_ * width : width;
          for (int64_t k = 0; k < depth; ++k) column[k * stride] = row[k];
        }
    return out;
  }

  /// What the projection adds: biases of inputs and state, as far as the cell takes their sum.
  Tensor packBias() const {
    Tensor out(DType::F32, {r_.directions * unitTiles_ * r_.gates * units_});
    const float* from = bias_->data<float>();
    for (int64_t d = 0; d < r_.directions; ++d)
      for (int64_t g = 0; g < r_.gates; ++g)
        for (int64_t unit = 0; unit < r_.hidden; ++unit) {
          const float* own = from + d * 2 * r_.gates * r_.hidden + g * r_.hidden + unit;
          const bool apart = resetAfter_ && g == 2;
          out.data<float>()[((d * unitTiles_ + unit / units_) * r_.gates + g) * units_ + unit % units_] =
              apart ? own[0] : own[0] + own[r_.gates * r_.hidden];
        }
    return out;
  }

  /// [D, blocks * hidden] from block `first` on as [D, count, padded].
  Tensor packUnits(const Tensor& source, int64_t blocks, int64_t first, int64_t count) const {
    Tensor out(DType::F32, {r_.directions, count, unitTiles_ * units_});
    for (int64_t d = 0; d < r_.directions; ++d)
      for (int64_t b = 0; b < count; ++b)
        std::copy_n(source.data<float>() + (d * blocks + first + b) * r_.hidden, r_.hidden,
                    out.data<float>() + (d * count + b) * unitTiles_ * units_);
    return out;
  }

  void rewrite(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string stem = graph_.value(node.input(1)).name;
    auto constant = [&](const std::string& name, Tensor t) { return patch_.addConstant(name, std::move(t)); };
    const int64_t rows = r_.steps * r_.batch, columns = r_.directions * unitTiles_ * r_.gates * units_;
    std::vector<ValueId> product{emitReshape(patch_, id, id, node.input(0), {rows, r_.inputs}),
                                 constant(stem + ".packed", packGates(*w_, 0, r_.gates, true))};
    if (bias_) product.push_back(constant(stem + ".bias", packBias()));
    ValueType type = graph_.type(node.input(0));
    type.shape = Shape::of({rows, columns});
    ValueId projected = emitBefore(patch_, id, id, "Gemm", product, {}, type);
    const Ints x = *staticExtents(graph_, node.input(0));
    projected = emitReshape(patch_, id, id, projected, {x[0], x[1], columns});

    std::vector<ValueId> inputs(8);
    inputs[0] = projected;
    const bool isSplit = cell_ == "GRU" && !resetAfter_;
    inputs[1] = constant(stem + ".recurrent", packGates(*recurrent_, 0, isSplit ? 2 : r_.gates, false));
    if (isSplit) inputs[2] = constant(stem + ".candidate", packGates(*recurrent_, 2, 1, false));
    if (resetAfter_ && bias_) {
      Tensor bias = packUnits(*bias_, 2 * r_.gates, 5, 1);
      inputs[2] = constant(stem + ".candidate", bias.reshaped({r_.directions, unitTiles_ * units_}));
    }
    for (size_t i = 4; i < 7; ++i) inputs[i] = node.input(i);
    if (peepholes_) inputs[7] = constant(stem + ".peepholes", packUnits(*peepholes_, 3, 0, 3));
    while (!inputs.back().isValid()) inputs.pop_back();
    patch_.setInputs(id, std::move(inputs));
    patch_.setAttr(id, "cell", cell_);
    patch_.setAttr(id, "hidden_size", r_.hidden);
    patch_.setAttr(id, "lanes", tile_.lanes);
    patch_.setAttr(id, "vectors", tile_.vectors);
    patch_.setAttr(id, "rows", tile_.rows);
    patch_.setAttr(id, "tiles", tile_.tiles);
    patch_.setOp(id, "Recurrence");
  }

  Patch& patch_;
  const Graph& graph_;
  const TargetSpec& target_;
  std::string cell_;
  ops::Recurrent r_;
  ops::RecurrenceTile tile_;
  const Tensor *w_ = nullptr, *recurrent_ = nullptr, *bias_ = nullptr, *peepholes_ = nullptr;
  int64_t units_ = 0, unitTiles_ = 0;
  bool resetAfter_ = false;
};

}  // namespace

Status splitRecurrent(Patch& patch, PassContext& context) {
  TargetSpec fallback;
  RecurrentSplitter splitter(patch, context.target ? *context.target : fallback);
  patch.graph().forEachNode([&](NodeId id) { splitter.visit(id); });
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes
