// split-conv-transpose: a ConvTranspose whose windows don't overlap (kernel = stride) is a pointwise convolution with an output channel for
// each element of the window, followed by a move of those to where they belong. What follows pixel by pixel (activations, pointwise
// convolutions, further ConvTransposes of this kind) runs before that move, which happens once.
// Needs: constant weights, channels last. Gives: no such ConvTranspose is left. Windows that overlap, groups and pads stay.
//     %y = ConvTranspose(%x[N,H,W,C], const %w[C,O,2,2]) {strides = [2, 2], channels_last = 1}; %z = Relu(%y)
// ->  %p = Conv(%x, const %w.points[4*O,C,1,1]) {channels_last = 1}; %r = Relu(%p);
//     %t = Transpose(Reshape(%r)[N,H,W,2,2,O]) {perm = [0, 1, 3, 2, 4, 5]}; %z = Reshape(%t)
#include <algorithm>

#include "passes/all_passes.h"
#include "passes/rewrite.h"

namespace locution::passes {
namespace {

bool all(const Ints& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

class Splitter {
 public:
  explicit Splitter(Patch& patch) : patch_(patch), graph_(patch.graph()) {}

  void visit(NodeId id) {
    if (!isApart(id) || !graph_.isUsed(graph_.node(id).outputs[0])) return;
    dims_ = *staticExtents(graph_, graph_.node(id).input(0));
    factors_.assign(dims_.size() - 2, {});
    value_ = graph_.node(id).input(0);
    NodeId last = id;
    becomePoints(id);
    for (NodeId next = soleUser(graph_, graph_.node(last).outputs[0]);
         next.isValid() && graph_.node(next).parent == graph_.node(last).parent;
         next = soleUser(graph_, graph_.node(last).outputs[0])) {
      const ValueId reads = graph_.node(last).outputs[0];
      if (isApart(next))
        becomePoints(next);
      else if (isPointwiseConv(next))
        keepPoints(next);
      else if (isUnary(next, reads))
        follow(next, reads);
      else
        break;
      last = next;
    }
    move(last);
  }

 private:
  bool isWindow(const Node& node, std::string_view op) const {
    if (node.op != op || node.intAttr("channels_last", 0) == 0 || node.intAttr("group", 1) != 1) return false;
    const Tensor* w = graph_.constant(node.input(1));
    const std::optional<Ints> x = staticExtents(graph_, node.input(0)), y = staticExtents(graph_, node.outputs[0]);
    return w && x && y && w->rank() >= 3 && w->rank() == static_cast<int64_t>(x->size()) && elementsOf(*x) > 0 &&
           elementsOf(*y) > 0 && w->dtype() == graph_.type(node.input(0)).dtype &&
           (!node.hasInput(2) || graph_.constant(node.input(2)));
  }

  /// Its windows tile the output.
  bool isApart(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!isWindow(node, "ConvTranspose")) return false;
    const Ints &w = graph_.constant(node.input(1))->dims(), x = *staticExtents(graph_, node.input(0)),
               y = *staticExtents(graph_, node.outputs[0]);
    Ints kernel(w.begin() + 2, w.end()), strides = node.intsAttr("strides");
    if (strides.empty()) strides.assign(kernel.size(), 1);
    if (strides != kernel || all(kernel, 1) || !all(node.intsAttr("dilations"), 1) || !all(node.intsAttr("pads"), 0))
      return false;
    for (size_t i = 0; i < kernel.size(); ++i)
      if (y[1 + i] != x[1 + i] * kernel[i]) return false;
    return true;
  }

  bool isPointwiseConv(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!isWindow(node, "Conv")) return false;
    const Ints& w = graph_.constant(node.input(1))->dims();
    return all(Ints(w.begin() + 2, w.end()), 1) && all(node.intsAttr("strides"), 1) && all(node.intsAttr("pads"), 0);
  }

  /// Elementwise of `reads` and of single numbers.
  bool isUnary(NodeId id, ValueId reads) const {
    const Node& node = graph_.node(id);
    if (patternOf(node) != ops::Pattern::Elementwise || node.outputs.size() != 1 ||
        !sameShape(node.outputs[0], reads) || !node.regions.empty())
      return false;
    int64_t count = 0;
    for (ValueId v : node.inputs) {
      if (!v.isValid()) continue;
      if (v == reads) {
        ++count;
      } else if (const Tensor* t = graph_.constant(v); !t || t->elements() != 1 || t->rank() > rankOf(graph_, reads)) {
        return false;
      }
    }
    return count == 1;
  }
  bool sameShape(ValueId a, ValueId b) const { return staticExtents(graph_, a) == staticExtents(graph_, b); }

  /// All pixels in one dim, so that no loop over them has to take an index apart; as many dims as a convolution has.
  Ints flat(int64_t channels) const {
    Ints out(dims_.size(), 1);
    int64_t& pixels = out[out.size() - 2];
    pixels = elementsOf(Ints(dims_.begin(), dims_.end() - 1));
    for (const Ints& f : factors_) pixels *= elementsOf(f);
    out.back() = channels;
    return out;
  }

  void points(NodeId origin, Tensor weights, const Tensor* bias) {
    const Node& node = graph_.node(origin);
    const std::string stem = graph_.value(node.input(1)).name;
    const int64_t channels = weights.dims()[0], inner = weights.dims()[1];
    ValueType type = graph_.type(node.outputs[0]);
    type.shape = Shape::of(flat(channels));
    std::vector<ValueId> inputs{emitReshape(patch_, origin, origin, value_, flat(inner)),
                                patch_.addConstant(stem + ".points", std::move(weights))};
    if (bias) inputs.push_back(patch_.addConstant(stem + ".bias", *bias));
    const Ints ones(dims_.size() - 2, 1), none(2 * (dims_.size() - 2), 0);
    value_ =
        emitBefore(patch_, origin, origin, "Conv", inputs,
                   {{"channels_last", int64_t{1}}, {"kernel_shape", ones}, {"strides", ones}, {"pads", none}}, type);
  }

  void becomePoints(NodeId id) {
    const Node& node = graph_.node(id);
    const Tensor *w = graph_.constant(node.input(1)), *bias = graph_.constant(node.input(2));
    const Ints kernel(w->dims().begin() + 2, w->dims().end());
    const int64_t in = w->dims()[0], out = w->dims()[1], window = elementsOf(kernel);
    Ints shape(w->dims().size(), 1);
    shape[0] = window * out;
    shape[1] = in;
    Tensor weights(w->dtype(), shape), biases(w->dtype(), {window * out});
    for (int64_t k = 0; k < window; ++k)
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t c = 0; c < in; ++c)
          weights.setElementBits((k * out + o) * in + c, w->elementBits((c * out + o) * window + k));
        if (bias) biases.setElementBits(k * out + o, bias->elementBits(o));
      }
    points(id, std::move(weights), bias ? &biases : nullptr);
    // The elements of the window come to stand between the pixels and the channels.
    for (size_t i = 0; i < kernel.size(); ++i) {
      factors_[i].push_back(kernel[i]);
      order_.push_back(i);
    }
    channels_ = out;
  }

  void keepPoints(NodeId id) {
    const Node& node = graph_.node(id);
    points(id, *graph_.constant(node.input(1)), graph_.constant(node.input(2)));
    channels_ = graph_.constant(node.input(1))->dims()[0];
  }

  void follow(NodeId id, ValueId reads) {
    const Node& node = graph_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& v : inputs)
      if (v == reads) v = value_;
    ValueType type = graph_.type(node.outputs[0]);
    type.shape = graph_.type(value_).shape;
    value_ = emitBefore(patch_, id, id, node.op, std::move(inputs), node.attrs, type);
  }

  /// [N, spatial..., factors in the order they came, channels] -> [N, each dim with its factors, channels]
  void move(NodeId last) {
    Ints dims(dims_.begin(), dims_.end() - 1), perm{0};
    std::vector<size_t> seen(factors_.size(), 0);
    for (size_t i : order_) dims.push_back(factors_[i][seen[i]++]);
    dims.push_back(channels_);
    for (size_t i = 0; i < factors_.size(); ++i) {
      perm.push_back(static_cast<int64_t>(1 + i));
      for (size_t k = 0; k < order_.size(); ++k)
        if (order_[k] == i) perm.push_back(static_cast<int64_t>(1 + factors_.size() + k));
    }
    perm.push_back(static_cast<int64_t>(dims.size()) - 1);
    const ValueId result = graph_.node(last).outputs[0];
    ValueType type = graph_.type(result);
    ValueId wide = emitReshape(patch_, last, last, value_, dims);
    type.shape = Shape::of(permuteList(dims, perm));
    ValueId moved = emitBefore(patch_, last, last, "Transpose", {wide}, {{"perm", perm}}, type);
    ValueId narrow = emitReshape(patch_, last, last, moved, *staticExtents(graph_, result));
    replaceOutput(patch_, last, narrow);
    order_.clear();
  }

  Patch& patch_;
  const Graph& graph_;
  Ints dims_;                  ///< of the first input
  std::vector<Ints> factors_;  ///< of each spatial dim, outermost first
  std::vector<size_t> order_;  ///< the spatial dims of all factors, in the order in which they lie in memory
  ValueId value_;
  int64_t channels_ = 0;
};

}  // namespace

Status splitConvTranspose(Patch& patch, PassContext&) {
  Splitter splitter(patch);
  patch.graph().forEachNode([&](NodeId id) { splitter.visit(id); });
  patch.removeDead();
  patch.releaseDeadConstants();
  return Status::ok();
}

}  // namespace locution::passes
