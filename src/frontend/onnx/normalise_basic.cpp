// Nodes that are taken as they are, constants, and operators whose change is a renaming.
#include "frontend/onnx/messages.h"
#include "frontend/onnx/normalise.h"

namespace locution::frontend::normalise {

Status keep(NodeContext& c) {
  c.finish(c.opType(), c.inputs(), c.attrs());
  return Status::ok();
}

/// Opset 9 and 10 call ScatterElements so.
Status scatter(NodeContext& c) {
  c.finish("ScatterElements", c.inputs(), c.attrs());
  return Status::ok();
}

Status constant(NodeContext& c) {
  graph::Attrs& attrs = c.attrs();
  if (attrs.size() != 1) return Status::error("it must have exactly one attribute with a value");
  graph::Attr& value = attrs.begin()->second;
  const std::string& name = attrs.begin()->first;
  if (auto* tensor = std::get_if<Tensor>(&value)) {
    c.bindConstant(0, std::move(*tensor));
  } else if (name == "value_int") {
    c.bindConstant(0, Tensor::scalarI64(std::get<int64_t>(value)));
  } else if (name == "value_ints") {
    c.bindConstant(0, Tensor::vectorI64(std::get<std::vector<int64_t>>(value)));
  } else if (name == "value_float") {
    c.bindConstant(0, Tensor::scalarF32(static_cast<float>(std::get<double>(value))));
  } else if (name == "value_floats") {
    const auto& from = std::get<std::vector<double>>(value);
    std::vector<float> floats(from.begin(), from.end());
    c.bindConstant(0, Tensor::of<float>(DType::F32, {static_cast<int64_t>(floats.size())}, floats));
  } else if (name == "value_string") {
    c.bindConstant(0, Tensor::ofStrings({}, {std::get<std::string>(value)}));
  } else {
    auto& strings = std::get<std::vector<std::string>>(value);
    auto count = static_cast<int64_t>(strings.size());
    c.bindConstant(0, Tensor::ofStrings({count}, std::move(strings)));
  }
  return Status::ok();
}

Status constantOfShape(NodeContext& c) {
  auto at = c.attrs().find("value");
  if (at != c.attrs().end() && std::get<Tensor>(at->second).elements() != 1)
    return Status::error("attribute 'value' must be a tensor of one element, it is " +
                         std::get<Tensor>(at->second).shape().str());
  return keep(c);
}

/// Opset 20 renamed two modes.
Status gridSample16(NodeContext& c) {
  std::string mode = c.textAttr("mode", "bilinear");
  c.attrs()["mode"] = std::string(mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
  return keep(c);
}

/// Before opset 16 there was no half-pixel correction.
Status roiAlign10(NodeContext& c) {
  c.attrs()["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return keep(c);
}

}  // namespace locution::frontend::normalise
