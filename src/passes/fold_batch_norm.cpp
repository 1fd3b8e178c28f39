// fold-batch-norm: scales and offsets by channel go into the weights and bias of the convolution (or matrix product) before them.
// Needs: constants folded, channels in dim 1. Gives: no BatchNormalization with constant parameters is left; one that follows no
// foldable product is a Mul and an Add. Products that others read as well, and non-finite factors, are left alone.
//     %c = Conv(%x, %w); %b = BatchNormalization(%c, ...); %y = Mul(%b, const[1xCx1x1])   ->   %y = Conv(%x, %w2, %bias)
#include <cmath>
#include <vector>

#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

/// y = x * scale[c] + offset[c]
struct ChannelAffine {
  std::vector<double> scale, offset;
  bool isFinite() const {
    for (size_t c = 0; c < scale.size(); ++c)
      if (!std::isfinite(scale[c]) || !std::isfinite(offset[c])) return false;
    return true;
  }
};

/// The numbers as a tensor of `dtype`.
Tensor tensorOf(DType dtype, const Ints& dims, const std::vector<double>& values) {
  Tensor t(dtype, dims);
  for (size_t i = 0; i < values.size(); ++i) t.setElement(static_cast<int64_t>(i), values[i]);
  return t;
}

/// w[o][c][i] * scale[channel(o, c)] for w seen as outer x mid x inner.
template <typename Channel>
Tensor scaled(const Tensor& w, int64_t outer, int64_t mid, const std::vector<double>& scale, Channel channel) {
  Tensor out(w.dtype(), w.dims());
  if (out.elements() == 0) return out;
  const int64_t inner = w.elements() / (outer * mid);
  for (int64_t o = 0, at = 0; o < outer; ++o)
    for (int64_t m = 0; m < mid; ++m) {
      const double s = scale[static_cast<size_t>(channel(o, m))];
      if (w.dtype() == DType::F32) {
        const float* from = w.data<float>() + at;
        float* to = out.data<float>() + at;
        const auto factor = static_cast<float>(s);
        for (int64_t i = 0; i < inner; ++i) to[i] = from[i] * factor;
        at += inner;
      } else {
        for (int64_t i = 0; i < inner; ++i, ++at) out.setElement(at, w.elementAsDouble(at) * s);
      }
    }
  return out;
}

class BatchNormFolder {
 public:
  explicit BatchNormFolder(Patch& patch)
      : patch_(patch), graph_(patch.graph()), hasQuantised_(hasQuantisedTypes(graph_)) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == "BatchNormalization") return batchNorm(id);
    const bool isScale = node.op == "Mul" || node.op == "Div", isOffset = node.op == "Add" || node.op == "Sub";
    if (isScale || isOffset) channelwise(id, isScale);
  }

 private:
  void batchNorm(NodeId id) {
    const Node& node = graph_.node(id);
    const ValueId x = node.input(0), out = node.outputs[0];
    const int64_t rank = rankOf(graph_, x);
    if (rank < 2 || !out.isValid() || !isFloat(graph_.type(x).dtype) || node.intAttr("training_mode", 0) != 0 ||
        node.intAttr("channels_last", 0) != 0)
      return;
    for (size_t i = 1; i < node.outputs.size(); ++i)
      if (node.outputs[i].isValid() && graph_.isUsed(node.outputs[i])) return;
    const Tensor* params[4];
    for (size_t i = 0; i < 4; ++i) {
      params[i] = graph_.constant(node.input(i + 1));
      if (!params[i] || params[i]->rank() != 1 || params[i]->elements() != params[0]->elements()) return;
    }
    const double epsilon = static_cast<float>(node.floatAttr("epsilon", 1e-5));
    ChannelAffine affine;
    for (int64_t c = 0; c < params[0]->elements(); ++c) {
      const double s = params[0]->elementAsDouble(c) / std::sqrt(params[3]->elementAsDouble(c) + epsilon);
      affine.scale.push_back(s);
      affine.offset.push_back(params[1]->elementAsDouble(c) - params[2]->elementAsDouble(c) * s);
    }
    if (!affine.isFinite() || fold(id, x, affine, true)) return;
    // x * scale + offset, both broadcast along the dims after the channel.
    Ints dims(static_cast<size_t>(rank) - 1, 1);
    dims[0] = params[0]->elements();
    const DType dtype = graph_.type(x).dtype;
    ValueId scale = patch_.addConstant("scale", tensorOf(dtype, dims, affine.scale));
    ValueId offset = patch_.addConstant("offset", tensorOf(dtype, dims, affine.offset));
    ValueId product = emitBefore(patch_, id, id, "Mul", {x, scale}, {}, graph_.type(out));
    replaceOutput(patch_, id, emitBefore(patch_, id, id, "Add", {product, offset}, {}, graph_.type(out)));
  }

  /// Mul, Div, Add or Sub with a constant that has one element, or one for each channel.
  void channelwise(NodeId id, bool isScale) {
    const Node& node = graph_.node(id);
    const bool commutes = node.op == "Mul" || node.op == "Add";
    const size_t other = graph_.constant(node.input(1)) ? 1 : 0;
    if (other == 0 && !commutes) return;
    const ValueId x = node.input(1 - other), c = node.input(other);
    const Tensor* t = graph_.constant(c);
    std::optional<Ints> dims = staticExtents(graph_, node.outputs[0]);
    if (!t || !dims || dims->size() < 3 || !isFloat(t->dtype()) || !sameType(graph_, x, node.outputs[0])) return;
    const auto channels = static_cast<size_t>((*dims)[1]);
    const int64_t skip = static_cast<int64_t>(dims->size()) - t->rank();
    for (int64_t i = 0; i < t->rank(); ++i)
      if (t->dims()[static_cast<size_t>(i)] != 1 && i + skip != 1) return;
    ChannelAffine affine{std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
    for (size_t i = 0; i < channels; ++i) {
      double v = t->elementAsDouble(t->elements() == 1 ? 0 : static_cast<int64_t>(i));
      if (node.op == "Div") v = 1 / v;
      if (node.op == "Sub") v = -v;
      (isScale ? affine.scale : affine.offset)[i] = v;
    }
    if (affine.isFinite()) fold(id, x, affine, false);
  }

  /// Puts `affine` into the product that makes `x` and lets it make the output of `id`; false when it can't.
  bool fold(NodeId id, ValueId x, const ChannelAffine& affine, bool isNorm) {
    const NodeId product = graph_.value(x).producer;
    if (!product.isValid() || soleUser(graph_, x) != id || graph_.node(product).parent != graph_.node(id).parent)
      return false;
    const Node& node = graph_.node(product);
    bool done = false;
    if (node.op == "Conv" || node.op == "ConvTranspose")
      done = foldConvolution(product, affine);
    else if (isNorm && node.op == "Gemm")
      done = foldGemm(product, affine);
    else if (isNorm && node.op == "MatMul")
      return foldMatMul(product, id, affine);
    if (done) replaceOutput(patch_, id, x);
    return done;
  }

  bool foldConvolution(NodeId id, const ChannelAffine& affine) {
    const Node& node = graph_.node(id);
    const Tensor *w = graph_.constant(node.input(1)), *bias = graph_.constant(node.input(2));
    if (!w || w->rank() < 3 || !isFloat(w->dtype()) || (node.hasInput(2) && !bias) ||
        node.intAttr("channels_last", 0) != 0)
      return false;
    const auto channels = static_cast<int64_t>(affine.scale.size());
    const int64_t d0 = w->dims()[0], d1 = w->dims()[1], group = node.intAttr("group", 1);
    const bool isTransposed = node.op == "ConvTranspose";
    if (group < 1 || (isTransposed ? d1 * group != channels || d0 % group != 0 : d0 != channels)) return false;
    if (bias && bias->elements() != channels) return false;
    std::vector<double> newBias = affine.offset;
    bool isZero = !bias;
    for (size_t c = 0; c < newBias.size(); ++c) {
      if (bias) newBias[c] += bias->elementAsDouble(static_cast<int64_t>(c)) * affine.scale[c];
      isZero = isZero && newBias[c] == 0;
    }
    bool scales = false;
    for (double s : affine.scale) scales = scales || s != 1;
    const DType dtype = w->dtype();
    if (scales) {
      Tensor scaledWeights = isTransposed ? scaled(*w, d0, d1, affine.scale,
                                                   [&](int64_t i, int64_t o) { return i / (d0 / group) * d1 + o; })
                                          : scaled(*w, d0, 1, affine.scale, [](int64_t o, int64_t) { return o; });
      setConstant(id, 1, "weights", std::move(scaledWeights));
    }
    if (!isZero) setConstant(id, 2, "bias", tensorOf(dtype, {channels}, newBias));
    return true;
  }

  bool foldGemm(NodeId id, const ChannelAffine& affine) {
    const Node& node = graph_.node(id);
    const Tensor *b = graph_.constant(node.input(1)), *c = graph_.constant(node.input(2));
    const auto n = static_cast<int64_t>(affine.scale.size());
    if (!b || b->rank() != 2 || !isFloat(b->dtype()) || (node.hasInput(2) && !c)) return false;
    const bool transposed = node.intAttr("transB", 0) != 0;
    if (b->dims()[transposed ? 0 : 1] != n) return false;
    if (c && c->elements() != 1 && (c->elements() != n || c->dims().back() != n)) return false;
    const double beta = node.floatAttr("beta", 1);
    std::vector<double> bias = affine.offset;
    for (int64_t i = 0; c && i < n; ++i)
      bias[static_cast<size_t>(i)] +=
          beta * c->elementAsDouble(c->elements() == 1 ? 0 : i) * affine.scale[static_cast<size_t>(i)];
    const DType dtype = b->dtype();
    setConstant(id, 1, "weights", scaledColumns(*b, transposed, affine.scale));
    setConstant(id, 2, "bias", tensorOf(dtype, {n}, bias));
    patch_.setAttr(id, "beta", 1.0);
    return true;
  }

  bool foldMatMul(NodeId id, NodeId norm, const ChannelAffine& affine) {
    const Node& node = graph_.node(id);
    const Tensor* b = graph_.constant(node.input(1));
    const auto n = static_cast<int64_t>(affine.scale.size());
    if (!b || b->rank() != 2 || !isFloat(b->dtype()) || b->dims()[1] != n || rankOf(graph_, node.outputs[0]) != 2)
      return false;
    const DType dtype = b->dtype();
    setConstant(id, 1, "weights", scaledColumns(*b, false, affine.scale));
    ValueId offset = patch_.addConstant("bias", tensorOf(dtype, {n}, affine.offset));
    const ValueId out = graph_.node(norm).outputs[0];
    replaceOutput(patch_, norm, emitBefore(patch_, norm, norm, "Add", {node.outputs[0], offset}, {}, graph_.type(out)));
    return true;
  }

  static Tensor scaledColumns(const Tensor& b, bool transposed, const std::vector<double>& scale) {
    if (transposed) return scaled(b, b.dims()[0], 1, scale, [](int64_t o, int64_t) { return o; });
    return scaled(b, b.dims()[0], b.dims()[1], scale, [](int64_t, int64_t m) { return m; });
  }

  void setConstant(NodeId id, size_t input, const std::string& stem, Tensor tensor) {
    const ValueId old = graph_.node(id).input(input);
    std::string name =
        old.isValid() ? graph_.value(old).name : graph_.value(graph_.node(id).outputs[0]).name + "." + stem;
    const ValueId made = patch_.addConstant(name, std::move(tensor));
    patch_.setInput(id, input, made);
    if (!old.isValid() || hasQuantised_ || graph_.isUsed(old)) return;
    // Large weights must not lie twice in memory until the end of the pass.
    patch_.releaseConstant(old);
    patch_.rename(made, name);
  }

  Patch& patch_;
  const Graph& graph_;
  const bool hasQuantised_;
};

}  // namespace

Status foldBatchNorm(Patch& patch, PassContext&) {
  BatchNormFolder folder(patch);
  patch.graph().forEachNode([&](NodeId id) { folder.visit(id); });
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes
