// Attributes that became inputs: axes, pads, starts and ends, split, k, scales.
#include <algorithm>
#include <cmath>

#include "frontend/onnx/messages.h"
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {
namespace {

using graph::ValueId;

/// Takes a list of ints from the attributes; an invalid id when it isn't there, or empty and `emptyIsAbsent`.
ValueId takeInts(NodeContext& c, const char* name, bool emptyIsAbsent) {
  if (!c.hasAttr(name)) return {};
  std::vector<int64_t> values = c.intsAttr(name);
  c.attrs().erase(name);
  return values.empty() && emptyIsAbsent ? ValueId{} : c.addInts(values, name);
}

bool isEmptyConstant(NodeContext& c, ValueId id) {
  const Tensor* tensor = id.isValid() ? c.constant(id) : nullptr;
  return tensor != nullptr && tensor->elements() == 0;
}

}  // namespace

/// Squeeze and Unsqueeze before 13, reductions before 18 (ReduceSum: 13). No axes, or an empty list, mean all.
Status axesAttribute(NodeContext& c) {
  ValueId axes = takeInts(c, "axes", c.opType() != "Unsqueeze");
  c.finish(c.opType(), {c.input(0), axes}, c.attrs());
  return Status::ok();
}

/// Before 11; the value is a float whatever the data is.
Status padAttributes(NodeContext& c) {
  ValueId pads = takeInts(c, "pads", false);
  double value = c.floatAttr("value", 0);
  c.attrs().erase("value");
  ValueId fill = value == 0 ? ValueId{} : c.addScalarLike(value, c.input(0), "value");
  c.finish("Pad", {c.input(0), pads, fill}, c.attrs());
  return Status::ok();
}

/// Before 10.
Status sliceAttributes(NodeContext& c) {
  size_t starts = c.intsAttr("starts").size();
  size_t ends = c.intsAttr("ends").size();
  size_t axes = c.hasAttr("axes") ? c.intsAttr("axes").size() : starts;
  if (starts != ends || starts != axes)
    return Status::error("starts, ends and axes have " + std::to_string(starts) + ", " + std::to_string(ends) +
                         " and " + std::to_string(axes) + " entries");
  ValueId startsId = takeInts(c, "starts", false);
  ValueId endsId = takeInts(c, "ends", false);
  ValueId axesId = takeInts(c, "axes", true);
  c.finish("Slice", {c.input(0), startsId, endsId, axesId}, c.attrs());
  return Status::ok();
}

/// Sizes are an input from 13 on; without sizes, the number of parts is an attribute from 18 on, and before that how many outputs
/// there are.
Status split(NodeContext& c) {
  auto outputs = static_cast<int64_t>(c.outputCount());
  ValueId sizes = c.opset() < 13 ? takeInts(c, "split", true) : c.input(1);
  if (sizes.isValid()) {
    if (c.hasAttr("num_outputs")) return Status::error("both num_outputs and the sizes are given");
    const Tensor* constant = c.constant(sizes);
    if (constant != nullptr && constant->elements() != outputs)
      return Status::error(std::to_string(constant->elements()) + " sizes are given for " + std::to_string(outputs) +
                           " outputs");
  } else if (int64_t parts = c.intAttr("num_outputs", outputs); parts != outputs) {
    return Status::error("num_outputs is " + std::to_string(parts) + ", it has " + std::to_string(outputs) +
                         " outputs");
  } else {
    c.attrs()["num_outputs"] = outputs;
  }
  c.finish("Split", {c.input(0), sizes}, c.attrs());
  return Status::ok();
}

/// Before 10.
Status topKAttribute(NodeContext& c) {
  ValueId k = c.addInts({c.intAttr("k", 0)}, "k");
  c.attrs().erase("k");
  c.finish("TopK", {c.input(0), k}, c.attrs());
  return Status::ok();
}

/// Before 20 the axis was an attribute, the first after the batch by default.
Status dftAxisAttribute(NodeContext& c) {
  ValueId axis = c.addInt(c.intAttr("axis", 1), "axis");
  c.attrs().erase("axis");
  c.finish("DFT", {c.input(0), c.input(1), axis}, c.attrs());
  return Status::ok();
}

/// Upsample is what Resize does without shifting pixels, and rounding down.
Status upsample(NodeContext& c) {
  ValueId scales = c.input(1);
  if (c.hasAttr("scales")) {
    const auto& values = std::get<std::vector<double>>(c.attrs().at("scales"));
    std::vector<float> floats(values.begin(), values.end());
    scales = c.addConstant(Tensor::of<float>(DType::F32, {static_cast<int64_t>(floats.size())}, floats), "scales");
  }
  graph::Attrs attrs;
  attrs["mode"] = c.textAttr("mode", "nearest");
  attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  attrs["nearest_mode"] = std::string("floor");
  c.finish("Resize", {c.input(0), {}, scales}, std::move(attrs));
  return Status::ok();
}

/// As Upsample, but it may shrink. The specification of 10 doesn't say which pixel is nearest: as in ONNX Runtime, the one before
/// where an axis grows, the one after where it shrinks.
Status resize10(NodeContext& c) {
  graph::Attrs attrs;
  attrs["mode"] = c.textAttr("mode", "nearest");
  attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  attrs["nearest_mode"] = std::string("floor");
  const Tensor* scales = c.constant(c.input(1));
  bool isNearest = c.textAttr("mode", "nearest") == "nearest";
  if (!isNearest || scales == nullptr || scales->dtype() != DType::F32) {
    c.finish("Resize", {c.input(0), {}, c.input(1)}, std::move(attrs));
    return Status::ok();
  }
  std::vector<float> grow, shrink;
  for (int64_t i = 0; i < scales->elements(); ++i) {
    float s = scales->data<float>()[i];
    grow.push_back(std::max(s, 1.0f));
    shrink.push_back(std::min(s, 1.0f));
  }
  auto rank = static_cast<int64_t>(grow.size());
  auto differs = [](float s) { return s != 1; };
  ValueId data = c.input(0);
  bool shrinks = std::any_of(shrink.begin(), shrink.end(), differs);
  if (shrinks) {
    graph::Attrs up = attrs;
    attrs["nearest_mode"] = std::string("ceil");
    if (std::any_of(grow.begin(), grow.end(), differs))
      data = c.add("Resize", {data, {}, c.addConstant(Tensor::of<float>(DType::F32, {rank}, grow), "scales")},
                   std::move(up));
  }
  ValueId last = c.addConstant(Tensor::of<float>(DType::F32, {rank}, shrinks ? shrink : grow), "scales");
  c.finish("Resize", {data, {}, last}, std::move(attrs));
  return Status::ok();
}

/// Empty tensors stood for inputs left out before 13, and still do in files.
Status resize(NodeContext& c) {
  std::string mode = c.textAttr("coordinate_transformation_mode", "half_pixel");
  NodeContext::Inputs inputs = {c.input(0), c.input(1), c.input(2), c.input(3)};
  for (size_t i = 1; i < inputs.size(); ++i)
    if (isEmptyConstant(c, inputs[i])) inputs[i] = {};
  if (mode != "tf_crop_and_resize") inputs[1] = {};
  if (inputs[2].isValid() == inputs[3].isValid())
    return Status::error(inputs[2].isValid() ? "both scales and sizes are given"
                                             : "neither scales nor sizes are given");
  if (mode == "tf_half_pixel_for_nn") {
    // (x + 0.5) / s, rounded down, is the pixel nearest to (x + 0.5) / s - 0.5.
    if (c.textAttr("mode", "nearest") != "nearest" || c.textAttr("nearest_mode", "round_prefer_floor") != "floor")
      return c.unsupported("tf_half_pixel_for_nn with another mode than nearest and floor");
    c.attrs()["coordinate_transformation_mode"] = std::string("half_pixel");
    c.attrs()["nearest_mode"] = std::string("round_prefer_ceil");
  }
  c.finish("Resize", std::move(inputs), c.attrs());
  return Status::ok();
}

}  // namespace locution::frontend::normalise
