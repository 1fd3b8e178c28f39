// integer-products: products of dequantised tensors are summed in integers.
// Needs: types, and weights' DequantizeLinear not folded yet (before fold-constants). Gives: ConvInteger and MatMulInteger without zero points
// in their sums; what the zero points add is a constant of each output channel (or, where they are only known at run time, a product of
// one).
//     %a = DequantizeLinear(%xq, sx, zx); %b = DequantizeLinear(wq, sw[c], zw); %y = Conv(%a, %b, bias); %q = QuantizeLinear(%y, sy, zy)
// ->  %i = ConvInteger(%xq, wq - zw, zx) {centred = 0}; %j = Add(%i, -zx * sum of wq - zw); %f = Mul(Cast(%j), sx * sw / sy);
//     %q = QuantizeLinear(Add(%f, bias / sy), 1, zy)
// What quantises a sum of two dequantised tensors gets a scale of 1, too.
// The integers are exact. The float results differ from those of the float form in the last places (one rounded product for many, a
// quotient of scales for a division), so that a quantised result may be one step away where the other lies beside a tie.
#include <cmath>
#include <numeric>

#include "ops/conv.h"
#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

/// Fewer input channels fill no group of an instruction: such layers (pictures) stay in float.
constexpr int64_t kLeastChannels = 4;

bool isByte(DType type) { return type == DType::I8 || type == DType::U8; }

/// Weights without their zero points.
struct Weights {
  Tensor values;
  std::vector<int64_t> sums;  ///< of each output channel
  /// Where they don't fit bytes: bytes that do, and what each output channel's are less than the weights.
  Tensor bytes;
  std::vector<int64_t> missing, byteSums;
};

class IntegerProducts {
 public:
  explicit IntegerProducts(Patch& patch) : patch_(patch), graph_(patch.graph()) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == "ConvInteger" || node.op == "MatMulInteger") return integer(id);
    if (node.op == "QLinearConv" || node.op == "QLinearMatMul") return quantised(id);
    if (node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm") return dequantised(id);
    if (node.op == "Add") return sum(id);
  }

 private:
  /// A DequantizeLinear of bytes: its parameters.
  struct Source {
    ValueId value, scale, zero;
    int64_t axis = 1;
  };
  std::optional<Source> sourceOf(ValueId value) const {
    const NodeId id = producerIs(graph_, value, "DequantizeLinear");
    if (!id.isValid()) return std::nullopt;
    const Node& node = graph_.node(id);
    if (node.intAttr("block_size", 0) != 0 || !isByte(graph_.type(node.input(0)).dtype) ||
        graph_.type(value).dtype != DType::F32 || graph_.type(node.input(1)).dtype != DType::F32)
      return std::nullopt;
    return Source{node.input(0), node.input(1), node.input(2), node.intAttr("axis", 1)};
  }

  /// The value's numbers: one, or one for each of `count`; empty when it is something else.
  std::vector<double> perChannel(ValueId value, int64_t count) const {
    if (!value.isValid()) return std::vector<double>(static_cast<size_t>(count), 0);
    const Tensor* t = graph_.constant(value);
    if (!t || (t->elements() != 1 && (t->elements() != count || t->rank() != 1))) return {};
    std::vector<double> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(t->elementAsDouble(t->elements() == 1 ? 0 : i));
    return out;
  }

  /// Channel `axis` of the constant, less its zero points; int16 where a difference is no byte.
  std::optional<Weights> centred(const Tensor& w, int64_t axis, ValueId zero) const {
    const int64_t channels = w.dims()[static_cast<size_t>(axis)];
    const std::vector<double> zeros = perChannel(zero, channels);
    if (zeros.empty() && channels > 0) return std::nullopt;
    int64_t inner = 1, low = 0, high = 0;
    for (size_t d = static_cast<size_t>(axis) + 1; d < w.dims().size(); ++d) inner *= w.dims()[d];
    std::vector<int64_t> values(static_cast<size_t>(w.elements()));
    Weights out;
    out.sums.assign(static_cast<size_t>(channels), 0);
    for (int64_t i = 0; i < w.elements(); ++i) {
      const auto c = static_cast<size_t>(i / inner % channels);
      const int64_t v = w.elementAsInt(i) - static_cast<int64_t>(zeros[c]);
      low = std::min(low, v);
      high = std::max(high, v);
      out.sums[c] += v;
      values[static_cast<size_t>(i)] = v;
    }
    const DType type = low >= -128 && high <= 127 ? DType::I8 : low >= 0 ? DType::U8 : DType::I16;
    out.values = Tensor(type, w.dims());
    for (int64_t i = 0; i < w.elements(); ++i) out.values.setElementInt(i, values[static_cast<size_t>(i)]);
    if (type == DType::I16 && isByte(w.dtype())) {
      const int64_t middle = w.dtype() == DType::U8 ? 128 : 0;
      out.bytes = Tensor(DType::I8, w.dims());
      for (int64_t i = 0; i < w.elements(); ++i) out.bytes.setElementInt(i, w.elementAsInt(i) - middle);
      const int64_t each = channels > 0 ? w.elements() / channels : 0;
      for (size_t c = 0; c < zeros.size(); ++c) {
        out.missing.push_back(middle - static_cast<int64_t>(zeros[c]));
        out.byteSums.push_back(out.sums[c] - each * out.missing[c]);
      }
    }
    return out;
  }

  /// One number for each output channel, shaped to be broadcast over an output with `after` dims behind its channels.
  ValueId channelConstant(const std::string& stem, DType type, const std::vector<double>& values, int64_t after) {
    Ints dims(static_cast<size_t>(after) + 1, 1);
    dims[0] = static_cast<int64_t>(values.size());
    Tensor t(type, dims);
    for (size_t i = 0; i < values.size(); ++i) t.setElement(static_cast<int64_t>(i), values[i]);
    return patch_.addConstant(stem, std::move(t));
  }

  // The sums of x - zero over all channels of each window, as int32 with one channel: weights that don't fit bytes are bytes and a
  // constant of the output channel, so that a convolution that minimal filtering may take stays one of bytes. Invalid: of no use.
  ValueId windowSums(NodeId id, ValueId x, ValueId zero, const Weights& weights, const ValueType& out) {
    const Node node = graph_.node(id);
    const Ints& dims = weights.values.dims();
    const int64_t rank = rankOf(graph_, x), taps = dims.size() < 3 ? 0 : weights.values.elements() / dims[0];
    // Every sum is a float32.
    constexpr int64_t kMostTerms = (1 << 24) / 255;
    if (weights.missing.empty() || rank < 3 || rank != static_cast<int64_t>(dims.size()) || taps > kMostTerms ||
        !ops::movesWindowOfThree(node, dims) || out.shape.rank() != rank)
      return {};
    ValueType data = graph_.type(x);
    data.dtype = DType::F32;
    const Attrs toFloat{{"to", std::string("float32")}}, toInt{{"to", std::string("int32")}};
    ValueId v = emitBefore(patch_, id, id, "Cast", {x}, toFloat, data);
    if (zero.isValid()) {
      ValueType scalar = graph_.type(zero);
      scalar.dtype = DType::F32;
      v = emitBefore(patch_, id, id, "Sub", {v, emitBefore(patch_, id, id, "Cast", {zero}, toFloat, scalar)}, {}, data);
    }
    data.shape[1] = 1;
    v = emitBefore(patch_, id, id, "ReduceSum", {v, addInts(patch_, "axes", {1})}, {{"keepdims", int64_t{1}}}, data);
    Ints window = dims;
    window[0] = window[1] = 1;
    Tensor ones(DType::F32, window);
    for (int64_t i = 0; i < ones.elements(); ++i) ones.setElement(i, 1);
    ValueType sums = out;
    sums.dtype = DType::F32;
    sums.shape[1] = 1;
    Attrs attrs = node.attrs;
    attrs.erase("centred");
    v = emitBefore(patch_, id, id, "Conv", {v, patch_.addConstant("ones", std::move(ones))}, attrs, sums);
    sums.dtype = DType::I32;
    return emitBefore(patch_, id, id, "Cast", {v}, toInt, sums);
  }

  /// sum of x * w less what x's zero point adds to it, as int32, before `id`. `after`: dims of the output behind its channels.
  ValueId product(NodeId id, ValueId x, ValueId zero, Weights weights, Attrs attrs, int64_t after, ValueType type) {
    const bool isConv = graph_.node(id).op.find("Conv") != std::string::npos;
    const std::string stem = graph_.value(graph_.node(id).outputs[0]).name + ".weights";
    std::optional<double> known = zero.isValid() ? splatOf(graph_, zero) : std::optional<double>(0);
    type.dtype = DType::I32;
    const ValueId windows = isConv ? windowSums(id, x, zero, weights, type) : ValueId{};
    if (windows.isValid()) {
      weights.values = std::move(weights.bytes);
      weights.sums = std::move(weights.byteSums);
    }
    std::vector<ValueId> inputs{x, patch_.addConstant(stem, std::move(weights.values))};
    if (isConv && known != 0) {
      inputs.push_back(zero);
      attrs.insert_or_assign("centred", int64_t{0});
    }
    ValueId sum = emitBefore(patch_, id, id, isConv ? "ConvInteger" : "MatMulInteger", inputs, attrs, type);
    if (windows.isValid()) {
      const std::vector<double> missing(weights.missing.begin(), weights.missing.end());
      const ValueId factor = channelConstant(stem + ".missing", DType::I32, missing, after);
      const ValueId more = emitBefore(patch_, id, id, "Mul", {windows, factor}, {}, type);
      sum = emitBefore(patch_, id, id, "Add", {sum, more}, {}, type);
    }
    if (known == 0) return sum;
    std::vector<double> negative;
    for (int64_t s : weights.sums) negative.push_back(static_cast<double>(-s));
    if (known) {
      for (double& s : negative) s = static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(s * *known)));
      ValueId correction = channelConstant(stem + ".correction", DType::I32, negative, after);
      return emitBefore(patch_, id, id, "Add", {sum, correction}, {}, type);
    }
    ValueId sums = channelConstant(stem + ".sums", DType::I32, negative, after);
    ValueType scalar = graph_.type(zero);
    scalar.dtype = DType::I32;
    ValueId wide = emitBefore(patch_, id, id, "Cast", {zero}, {{"to", std::string("int32")}}, scalar);
    ValueId correction = emitBefore(patch_, id, id, "Mul", {wide, sums}, {}, graph_.type(sums));
    return emitBefore(patch_, id, id, "Add", {sum, correction}, {}, type);
  }

  bool isScalar(ValueId value) const {
    if (!value.isValid()) return true;
    std::optional<Ints> dims = staticExtents(graph_, value);
    return dims && elementsOf(*dims) == 1;
  }

  void integer(NodeId id) {
    const Node& node = graph_.node(id);
    const bool isConv = node.op == "ConvInteger";
    if (node.intAttr("centred", 1) == 0 || node.intAttr("channels_last", 0) != 0) return;
    if (!node.hasInput(2) && !node.hasInput(3)) return;
    const Tensor* w = graph_.constant(node.input(1));
    const int64_t rank = rankOf(graph_, node.outputs[0]);
    if (!w || w->rank() < 2 || (!isConv && w->rank() != 2) || rank < 2 || !isScalar(node.input(2))) return;
    std::optional<Weights> weights = centred(*w, isConv ? 0 : 1, node.input(3));
    if (!weights) return;
    const ValueId out = node.outputs[0];
    replaceOutput(patch_, id,
                  product(id, node.input(0), node.input(2), std::move(*weights), node.attrs, isConv ? rank - 2 : 0,
                          graph_.type(out)));
  }

  void quantised(NodeId id) {
    const Node& node = graph_.node(id);
    const bool isConv = node.op == "QLinearConv";
    const ValueId out = node.outputs[0];
    const Tensor *w = graph_.constant(node.input(3)), *xScale = graph_.constant(node.input(1)),
                 *yScale = graph_.constant(node.input(6));
    const int64_t rank = rankOf(graph_, out);
    if (!w || !xScale || !yScale || rank < 2 || !isByte(w->dtype()) || !isByte(graph_.type(node.input(0)).dtype) ||
        !isByte(graph_.type(out).dtype) || node.intAttr("channels_last", 0) != 0)
      return;
    if (isConv ? w->rank() != rank : w->rank() != 2 || rankOf(graph_, node.input(0)) < 2) return;
    if (xScale->elements() != 1 || yScale->elements() != 1 || !isScalar(node.input(2)) || !isScalar(node.input(7)))
      return;
    const int64_t channelAxis = isConv ? 0 : 1, channels = w->dims()[static_cast<size_t>(channelAxis)];
    const std::vector<double> scales = perChannel(node.input(4), channels);
    std::optional<Weights> weights = centred(*w, channelAxis, node.input(5));
    if (scales.empty() || !weights) return;
    for (size_t i : {1, 4, 6})
      if (graph_.type(node.input(i)).dtype != DType::F32) return;
    // As the operator rounds it.
    std::vector<double> factors;
    for (double s : scales)
      factors.push_back(static_cast<float>(xScale->elementAsDouble(0)) * static_cast<float>(s) /
                        static_cast<float>(yScale->elementAsDouble(0)));
    const int64_t after = isConv ? rank - 2 : 0;
    ValueType type = graph_.type(out);
    ValueId sum = product(id, node.input(0), node.input(2), std::move(*weights), node.attrs, after, type);
    type.dtype = DType::I32;
    if (isConv && node.hasInput(8)) {
      Ints shape(static_cast<size_t>(after) + 1, 1);
      shape[0] = channels;
      sum = emitBefore(patch_, id, id, "Add", {sum, emitReshape(patch_, id, id, node.input(8), shape)}, {}, type);
    }
    type.dtype = DType::F32;
    ValueId real = emitBefore(patch_, id, id, "Cast", {sum}, {{"to", std::string("float32")}}, type);
    const std::string stem = graph_.value(out).name;
    real = emitBefore(patch_, id, id, "Mul", {real, channelConstant(stem + ".scale", DType::F32, factors, after)}, {},
                      type);
    const ValueId one = patch_.addConstant("one", Tensor::scalarF32(1)), zero = node.input(7);
    Tensor flat(graph_.type(zero).dtype, Ints{});
    if (const Tensor* z = graph_.constant(zero)) flat.setElementBits(0, z->elementBits(0));
    const ValueId scalarZero =
        graph_.constant(zero) ? patch_.addConstant(stem + ".zero", flat) : emitReshape(patch_, id, id, zero, {});
    replaceOutput(patch_, id,
                  emitBefore(patch_, id, id, "QuantizeLinear", {real, one, scalarZero}, {}, graph_.type(out)));
  }

  void dequantised(NodeId id) {
    const Node& node = graph_.node(id);
    const bool isConv = node.op == "Conv", isGemm = node.op == "Gemm";
    const ValueId out = node.outputs[0];
    std::optional<Source> x = sourceOf(node.input(0)), w = sourceOf(node.input(1));
    const int64_t rank = rankOf(graph_, out);
    if (!x || !w || rank < 2 || graph_.type(out).dtype != DType::F32 || node.intAttr("channels_last", 0) != 0) return;
    const Tensor* values = graph_.constant(w->value);
    const Tensor* scale = graph_.constant(x->scale);
    if (!values || !scale || scale->elements() != 1 || !isScalar(x->zero)) return;
    Attrs attrs = isConv ? node.attrs : Attrs{};
    int64_t channelAxis = isConv ? 0 : 1;
    if (isConv) {
      if (values->rank() < 3 || values->rank() != rank) return;
      const int64_t group = node.intAttr("group", 1), each = values->dims()[1];
      const bool isDepthwise = group > 1 && each == 1;
      if (!isDepthwise && each < kLeastChannels) return;
    } else {
      if (values->rank() != 2 || rankOf(graph_, node.input(0)) < 2) return;
      if (isGemm) {
        if (node.intAttr("transA", 0) != 0 || node.floatAttr("alpha", 1) != 1 || node.floatAttr("beta", 1) != 1) return;
        if (node.hasInput(2) && rankOf(graph_, node.input(2)) > 1 && !isScalar(node.input(2))) return;
        if (node.intAttr("transB", 0) != 0) channelAxis = 0;
      }
    }
    const int64_t channels = values->dims()[static_cast<size_t>(channelAxis)];
    const std::vector<double> scales = perChannel(w->scale, channels);
    const Tensor* wScale = graph_.constant(w->scale);
    const int64_t axis = w->axis < 0 ? w->axis + values->rank() : w->axis;
    if (scales.empty() || (wScale->elements() != 1 && axis != channelAxis)) return;
    std::optional<Weights> weights = centred(*values, channelAxis, w->zero);
    if (!weights) return;
    if (isGemm && channelAxis == 0) weights->values = transposed(weights->values);

    // A quantisation that follows takes a scale of 1.
    const ValueType type = graph_.type(out);
    const double inverse = takeScale(out);
    const int64_t after = isConv ? rank - 2 : 0;
    const std::string stem = graph_.value(out).name;
    const double xScale = scale->elementAsDouble(0);
    std::vector<double> factors;
    for (double s : scales) factors.push_back(s * xScale * inverse);
    ValueId sum = product(id, x->value, x->zero, std::move(*weights), std::move(attrs), after, type);
    ValueId result = emitBefore(patch_, id, id, "Cast", {sum}, {{"to", std::string("float32")}}, type);
    result = emitBefore(patch_, id, id, "Mul", {result, channelConstant(stem + ".scale", DType::F32, factors, after)},
                        {}, type);
    if (node.hasInput(2)) {
      ValueId bias = node.input(2);
      if (inverse != 1) {
        Tensor factor(DType::F32, Ints{});
        factor.setElement(0, inverse);
        bias = emitBefore(patch_, id, id, "Mul", {bias, patch_.addConstant(stem + ".inverse", std::move(factor))}, {},
                          graph_.type(bias));
      }
      if (isConv) {
        Ints shape(static_cast<size_t>(after) + 1, 1);
        shape[0] = channels;
        bias = emitReshape(patch_, id, id, bias, shape);
      }
      result = emitBefore(patch_, id, id, "Add", {result, bias}, {}, type);
    }
    replaceOutput(patch_, id, result);
  }

  // The only user of the value, if it quantises, gets a scale of 1: 1 / its scale, which the value is to be multiplied by. Else 1.
  double takeScale(ValueId value) {
    const NodeId quantiser = soleUser(graph_, value);
    if (!quantiser.isValid() || graph_.node(quantiser).op != "QuantizeLinear") return 1;
    const Node& q = graph_.node(quantiser);
    const Tensor* s = graph_.constant(q.input(1));
    if (q.input(0) != value || !s || s->elements() != 1 || s->dtype() != DType::F32 || s->elementAsDouble(0) <= 0 ||
        q.attrs.find("precision") != q.attrs.end() || q.intAttr("block_size", 0) != 0)
      return 1;
    const double inverse = 1 / s->elementAsDouble(0);
    Tensor one(DType::F32, s->dims());
    one.setElement(0, 1);
    patch_.setInput(quantiser, 1, patch_.addConstant("one", std::move(one)));
    return inverse;
  }

  // A sum of dequantised tensors that is quantised: its division goes into their scales.
  void sum(NodeId id) {
    const Node node = graph_.node(id);
    const std::optional<Source> sides[2] = {sourceOf(node.input(0)), sourceOf(node.input(1))};
    for (const std::optional<Source>& side : sides) {
      const Tensor* scale = side ? graph_.constant(side->scale) : nullptr;
      if (!scale || scale->elements() != 1) return;
    }
    const double inverse = takeScale(node.outputs[0]);
    if (inverse == 1) return;
    for (size_t k : {size_t{0}, size_t{1}}) {
      const Tensor& old = *graph_.constant(sides[k]->scale);
      Tensor scale(DType::F32, old.dims());
      scale.setElement(0, old.elementAsDouble(0) * inverse);
      const NodeId dequantiser = producerIs(graph_, node.input(k), "DequantizeLinear");
      std::vector<ValueId> inputs = graph_.node(dequantiser).inputs;
      inputs[1] = patch_.addConstant(graph_.value(inputs[1]).name + ".scaled", std::move(scale));
      const Attrs attrs = graph_.node(dequantiser).attrs;
      patch_.setInput(
          id, k, emitBefore(patch_, id, dequantiser, "DequantizeLinear", inputs, attrs, graph_.type(node.input(k))));
    }
  }

  static Tensor transposed(const Tensor& t) {
    const int64_t rows = t.dims()[0], columns = t.dims()[1];
    Tensor out(t.dtype(), {columns, rows});
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) out.setElementBits(c * rows + r, t.elementBits(r * columns + c));
    return out;
  }

  Patch& patch_;
  const Graph& graph_;
};

}  // namespace

Status integerProducts(Patch& patch, PassContext&) {
  IntegerProducts rewriter(patch);
  patch.graph().forEachNode([&](NodeId id) { rewriter.visit(id); });
  patch.removeDead();
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes
