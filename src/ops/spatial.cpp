// Window attributes, padding and dtype checks that the spatial operators share (spatial.h).
#include "ops/spatial.h"

#include <algorithm>

#include "core/saturate.h"
#include "ops/helpers.h"
#include "support/strings.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// More elements than any machine holds; extents up to it leave room for index arithmetic in 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 44;
constexpr int64_t kMaxAttribute = int64_t{1} << 40;

std::string listText(const std::vector<int64_t>& values) {
  std::vector<std::string> parts;
  for (int64_t v : values) parts.push_back(std::to_string(v));
  return "[" + join(parts, ", ") + "]";
}

/// The attribute, or `count` times `fallback`; its length and smallest value are checked.
Result<std::vector<int64_t>> listAttr(const graph::Node& node, const char* key, int64_t count, int64_t fallback,
                                      int64_t lowest) {
  std::vector<int64_t> values = node.intsAttr(key);
  if (values.empty()) return std::vector<int64_t>(static_cast<size_t>(count), fallback);
  if (static_cast<int64_t>(values.size()) != count) {
    return Status::error("attribute " + std::string(key) + " has " + std::to_string(values.size()) +
                         " entries, expected " + std::to_string(count));
  }
  for (int64_t v : values) {
    if (v < lowest || v > kMaxAttribute) {
      return Status::error("attribute " + std::string(key) + " is " + listText(values) + ", entries must be " +
                           (v < lowest ? "at least " + std::to_string(lowest) : "below 2^40"));
    }
  }
  return values;
}

Result<AutoPad> parseAutoPad(const graph::Node& node) {
  std::string text = node.stringAttr("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::NotSet;
  if (text == "SAME_UPPER") return AutoPad::SameUpper;
  if (text == "SAME_LOWER") return AutoPad::SameLower;
  if (text == "VALID") return AutoPad::Valid;
  return Status::error("attribute auto_pad is " + quoted(text) + ", expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
}

}  // namespace

Expr castTo(DType type, Expr value) { return value->type.dtype == type ? value : loop::cast(type, std::move(value)); }

DType accumulatorType(DType type) {
  if (isFloat(type)) return dtypeBits(type) < 32 ? DType::F32 : type;
  if (isInteger(type)) return dtypeBits(type) < 32 ? DType::I32 : type;
  return type;
}

Status checkElements(const std::vector<int64_t>& extents, const std::string& what) {
  if (Shape::of(extents).elements() <= kMaxElements) return Status::ok();
  return Status::error(what + " would have the shape " + listText(extents) + ", which is too large");
}

int64_t Window::span(size_t i) const { return saturatingAdd(saturatingMul(kernel[i] - 1, dilations[i]), 1); }

Result<Window> parseWindow(const graph::Node& node, int64_t spatialRank,
                           const std::optional<std::vector<int64_t>>& weights) {
  if (spatialRank < 1) return Status::error("the input has no spatial dims (its rank must be at least 3)");
  Window w;
  w.kernel = node.intsAttr("kernel_shape");
  if (!w.kernel.empty()) {
    LOCUTION_ASSIGN_OR_RETURN(w.kernel, listAttr(node, "kernel_shape", spatialRank, 1, 1));
    if (weights && w.kernel != *weights) {
      return Status::error("attribute kernel_shape is " + listText(w.kernel) + ", but the weights' kernel is " +
                           listText(*weights));
    }
  } else if (weights) {
    w.kernel = *weights;
    for (int64_t k : w.kernel) {
      if (k < 1) return Status::error("the weights' kernel is empty: " + listText(w.kernel));
    }
  }
  LOCUTION_ASSIGN_OR_RETURN(w.strides, listAttr(node, "strides", spatialRank, 1, 1));
  LOCUTION_ASSIGN_OR_RETURN(w.dilations, listAttr(node, "dilations", spatialRank, 1, 1));
  LOCUTION_ASSIGN_OR_RETURN(w.autoPad, parseAutoPad(node));
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    if (w.span(i) > kMaxAttribute)
      return Status::error("kernel " + listText(w.kernel) + " with dilations " + listText(w.dilations) +
                           " is too large");
  }
  w.ceilMode = node.intAttr("ceil_mode", 0) != 0;
  w.padBegin.assign(w.strides.size(), 0);
  w.padEnd = w.padBegin;
  if (w.autoPad == AutoPad::NotSet) {
    LOCUTION_ASSIGN_OR_RETURN(auto pads, listAttr(node, "pads", 2 * spatialRank, 0, 0));
    w.padBegin.assign(pads.begin(), pads.begin() + spatialRank);
    w.padEnd.assign(pads.begin() + spatialRank, pads.end());
  }
  return w;
}

Result<Dim> windowOutput(const Window& w, size_t i, const Dim& in) {
  if (w.autoPad == AutoPad::SameUpper || w.autoPad == AutoPad::SameLower) return ceilDiv(in, w.strides[i]);
  Dim room = in + Dim(w.padBegin[i]) + Dim(w.padEnd[i]) - Dim(w.span(i));
  if (room.isKnown() && room.value() < 0) {
    if (in == Dim(0)) return Dim(0);
    return Status::error("the window of spatial dim " + std::to_string(i) + " spans " + std::to_string(w.span(i)) +
                         " elements, the padded input has only " + (in + Dim(w.padBegin[i]) + Dim(w.padEnd[i])).str());
  }
  if (!w.ceilMode) return floorDiv(room, w.strides[i]) + Dim(1);
  // As many windows as start before the end padding, at most.
  return minDim(ceilDiv(room, w.strides[i]) + Dim(1), ceilDiv(in + Dim(w.padBegin[i]), w.strides[i]));
}

void resolvePads(Window& w, const std::vector<int64_t>& in) {
  if (w.autoPad != AutoPad::SameUpper && w.autoPad != AutoPad::SameLower) return;
  for (size_t i = 0; i < w.rank(); ++i) {
    int64_t out = ceilDivide(in[i], w.strides[i]);
    int64_t total =
        std::max<int64_t>(0, saturatingSub(saturatingAdd(saturatingMul(out - 1, w.strides[i]), w.span(i)), in[i]));
    int64_t less = total / 2;
    w.padBegin[i] = w.autoPad == AutoPad::SameUpper ? less : total - less;
    w.padEnd[i] = total - w.padBegin[i];
  }
}

Result<loop::BufferRef> padded(ComputeContext& c, size_t i, const Margins& margins, const Expr& value,
                               const std::vector<int64_t>& dilation) {
  std::vector<int64_t> in = c.inputExtents(i), out = in;
  bool changed = false;
  auto step = [&](size_t d) { return dilation.empty() ? int64_t{1} : dilation[d]; };
  for (size_t d = 0; d < in.size(); ++d) {
    int64_t spread = in[d] == 0 ? 0 : saturatingAdd(saturatingMul(in[d] - 1, step(d)), 1);
    out[d] = std::max<int64_t>(0, saturatingAdd(saturatingAdd(spread, margins.begin[d]), margins.end[d]));
    changed = changed || margins.begin[d] != 0 || margins.end[d] != 0 || step(d) != 1;
  }
  if (!changed) return c.inputBuffer(i);
  LOCUTION_RETURN_IF_ERROR(checkElements(out, "the padded input"));
  loop::Stage stage;
  stage.axes = makeAxes(out);
  stage.out = c.temporary("padded", c.input(i).dtype, out);
  std::vector<Expr> indices;
  Expr inside;
  for (size_t d = 0; d < in.size(); ++d) {
    Expr p = Expr(stage.axes[d].var) - margins.begin[d];
    int64_t spread = in[d] == 0 ? 0 : (in[d] - 1) * step(d) + 1;
    if (margins.begin[d] > 0) inside = both(inside, le(loop::index(margins.begin[d]), stage.axes[d].var));
    if (margins.end[d] > 0) inside = both(inside, lt(stage.axes[d].var, loop::index(spread + margins.begin[d])));
    if (step(d) != 1) {
      inside = both(inside, eq(floorMod(p, loop::index(step(d))), loop::index(0)));
      p = floorDiv(p, loop::index(step(d)));
    }
    indices.push_back(p);
  }
  Expr element = c.at(i, indices);
  stage.body = inside ? select(inside, element, value) : element;
  loop::BufferRef buffer = stage.out;
  c.addStage(std::move(stage));
  return buffer;
}

std::vector<loop::Axis> windowAxes(const Window& w) {
  std::vector<loop::Axis> axes;
  for (size_t i = 0; i < w.rank(); ++i) axes.push_back({loop::makeVar("k" + std::to_string(i)), w.kernel[i]});
  return axes;
}

WindowPosition windowPosition(const Window& w, const std::vector<Expr>& out, const std::vector<Expr>& kernel,
                              const std::vector<int64_t>& inExtents, const std::vector<int64_t>& outExtents) {
  WindowPosition result;
  for (size_t i = 0; i < w.rank(); ++i) {
    Expr p = out[i] * w.strides[i] + kernel[i] * w.dilations[i] - w.padBegin[i];
    int64_t last = (outExtents[i] - 1) * w.strides[i] + w.span(i) - 1 - w.padBegin[i];
    if (w.padBegin[i] > 0) result.inside = both(result.inside, le(loop::index(0), p));
    if (last >= inExtents[i]) result.inside = both(result.inside, lt(p, loop::index(inExtents[i])));
    result.position.push_back(std::move(p));
  }
  return result;
}

Expr both(Expr a, Expr b) {
  if (!a) return b;
  if (!b) return a;
  return logicalAnd(std::move(a), std::move(b));
}

}  // namespace locution::ops
