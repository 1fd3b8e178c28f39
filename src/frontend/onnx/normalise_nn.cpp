// Activations and normalisations whose meaning or form changed.
#include "frontend/onnx/messages.h"
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {
namespace {

using graph::ValueId;

/// The mask of a Dropout that drops nothing: true everywhere.
void bindFullMask(NodeContext& c, bool asNumbers) {
  if (!c.wants(1)) return;
  ValueId shape = c.add("Shape", {c.input(0)});
  graph::Attrs attrs;
  attrs["value"] = Tensor::of<uint8_t>(DType::Bool, {1}, {1});
  ValueId mask = c.add("ConstantOfShape", {shape}, std::move(attrs));
  c.bind(1, asNumbers ? c.add("CastLike", {mask, c.input(0)}) : mask);
}

}  // namespace

/// Softmax, LogSoftmax and Hardmax before 13: the axes from `axis` on are one.
Status flattenedSoftmax(NodeContext& c) {
  int64_t axis = c.intAttr("axis", 1);
  graph::Attrs last;
  last["axis"] = int64_t{-1};
  if (axis == -1) {
    c.finish(c.opType(), {c.input(0)}, std::move(last));
    return Status::ok();
  }
  graph::Attrs flatten, reshape;
  flatten["axis"] = axis;
  reshape["allowzero"] = int64_t{1};
  ValueId shape = c.add("Shape", {c.input(0)});
  ValueId flat = c.add("Flatten", {c.input(0)}, std::move(flatten));
  ValueId result = c.add(c.opType(), {flat}, std::move(last));
  c.finish("Reshape", {result, shape}, std::move(reshape));
  return Status::ok();
}

/// Before 11. The bounds that are not given are the largest floats: an infinity is clipped, too.
Status clipAttributes(NodeContext& c) {
  constexpr double kLargest = 3.4028234663852886e+38;
  ValueId low = c.addScalarLike(c.floatAttr("min", -kLargest), c.input(0), "min");
  ValueId high = c.addScalarLike(c.floatAttr("max", kLargest), c.input(0), "max");
  c.finish("Clip", {c.input(0), low, high}, {});
  return Status::ok();
}

/// Before 12 Dropout does nothing outside of training; its mask is of the data's type before 10.
Status dropoutRatioAttribute(NodeContext& c) {
  c.bind(0, c.input(0));
  bindFullMask(c, c.opset() < 10);
  return Status::ok();
}

/// From 12 on it drops when training_mode says so.
Status dropout(NodeContext& c) {
  const Tensor* training = c.has(2) ? c.constant(c.input(2)) : nullptr;
  const Tensor* ratio = c.has(1) ? c.constant(c.input(1)) : nullptr;
  bool isOff = !c.has(2) || (training != nullptr && training->elements() == 1 && training->dtype() == DType::Bool &&
                             training->elementAsInt(0) == 0);
  bool dropsNothing =
      ratio != nullptr && ratio->elements() == 1 && isFloat(ratio->dtype()) && ratio->elementAsDouble(0) == 0;
  if (isOff || dropsNothing) {
    c.bind(0, c.input(0));
    bindFullMask(c, false);
    return Status::ok();
  }
  c.finish("Dropout", c.inputs(), c.attrs());
  return Status::ok();
}

/// Before 14 the number of outputs told training, and `spatial` = 0 (before 9) one mean and variance for every element of an item.
Status batchNormalization7(NodeContext& c) {
  bool isTraining = c.wants(1) || c.wants(2);
  if (c.wants(3) || c.wants(4)) return c.unsupported("the outputs saved_mean and saved_var");
  bool isSpatial = c.intAttr("spatial", 1) != 0;
  c.attrs().erase("spatial");
  if (isSpatial) {
    if (isTraining) c.attrs()["training_mode"] = int64_t{1};
    c.finish("BatchNormalization", c.inputs(), c.attrs());
    return Status::ok();
  }
  if (isTraining) return c.unsupported("training with spatial = 0");
  ValueId epsilon = c.addScalarLike(c.floatAttr("epsilon", 1e-5), c.input(4), "epsilon");
  ValueId deviation = c.add("Sqrt", {c.add("Add", {c.input(4), epsilon})});
  ValueId centred = c.add("Sub", {c.input(0), c.input(3)});
  ValueId scaled = c.add("Mul", {c.add("Div", {centred, deviation}), c.input(1)});
  c.finish("Add", {scaled, c.input(2)}, {});
  return Status::ok();
}

/// Scale and bias were one a group before 21, and are one a channel since.
Status groupNormalization18(NodeContext& c) {
  int64_t groups = c.intAttr("num_groups", 1);
  if (groups <= 0) return Status::error("num_groups is " + std::to_string(groups));
  graph::Attrs channelOnly;
  channelOnly["start"] = int64_t{1};
  channelOnly["end"] = int64_t{2};
  ValueId channels = c.add("Shape", {c.input(0)}, std::move(channelOnly));
  ValueId groupCount = c.addInts({groups}, "num_groups");
  ValueId perGroup = c.add("Div", {channels, groupCount});
  graph::Attrs rows;
  rows["axis"] = int64_t{0};
  ValueId target = c.add("Concat", {groupCount, perGroup}, std::move(rows));
  ValueId column = c.addInts({groups, 1}, "column");
  auto spread = [&](ValueId id) {
    return c.add("Reshape", {c.add("Expand", {c.add("Reshape", {id, column}), target}), channels});
  };
  ValueId scale = spread(c.input(1));
  ValueId bias = spread(c.input(2));
  c.finish("GroupNormalization", {c.input(0), scale, bias}, c.attrs());
  return Status::ok();
}

}  // namespace locution::frontend::normalise
