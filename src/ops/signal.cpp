// Signal processing: window functions, DFT, STFT, MelWeightMatrix. Fourier transforms are sums over a table of cosines and sines of the
// multiples of 2 pi / N, made in float64; angles are reduced modulo N as integers, so that long transforms stay exact.
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

constexpr int64_t kMaxLength = int64_t{1} << 40;

Expr f64(double v) { return loop::constant(DType::F64, v); }
Expr asF64(const Expr& e) { return loop::cast(DType::F64, e); }

/// The known single integer of an input.
std::optional<Dim> knownScalar(const InferContext& c, size_t i) {
  std::optional<std::vector<Dim>> dims = c.hasInput(i) ? c.inputDims(i) : std::nullopt;
  return dims && dims->size() == 1 ? std::optional(dims->front()) : std::nullopt;
}

Result<int64_t> constantScalarInt(const ComputeContext& c, size_t i, const char* what) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> values, constantInts(c, i, what));
  if (values.size() != 1)
    return Status::error("input " + std::to_string(i) + " (" + what + ") has " + std::to_string(values.size()) +
                         " elements, expected one");
  return values[0];
}

Status inferWindow(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isInteger, "int32 or int64"));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "output_datatype"));
  std::optional<Dim> size = knownScalar(c, 0);
  if (size && size->isKnown() && (size->value() < 0 || size->value() > kMaxLength))
    return Status::error("size is " + size->str());
  c.setOutput(0, type.value_or(DType::F32), Shape{size ? *size : c.freshDim()});
  return Status::ok();
}

/// a + b cos(2 pi n / N) + c cos(4 pi n / N), N the size or one less.
Status computeCosineWindow(ComputeContext& c, double a, double b, double c2) {
  int64_t size = c.outputExtents()[0];
  auto period = static_cast<double>(c.node().intAttr("periodic", 1) != 0 ? size : size - 1);
  return injective(c, 0, [&](const std::vector<Expr>& at) {
    Expr angle = asF64(at[0]) * f64(2 * std::numbers::pi) / f64(period);
    Expr value = f64(a) + f64(b) * loop::call("cos", {angle});
    if (c2 != 0) value = value + f64(c2) * loop::call("cos", {angle * f64(2)});
    return loop::cast(c.output(0).dtype, value);
  });
}

}  // namespace

Status inferHannWindow(InferContext& c) { return inferWindow(c); }
Status inferHammingWindow(InferContext& c) { return inferWindow(c); }
Status inferBlackmanWindow(InferContext& c) { return inferWindow(c); }
Status computeHannWindow(ComputeContext& c) { return computeCosineWindow(c, 0.5, -0.5, 0); }
Status computeHammingWindow(ComputeContext& c) { return computeCosineWindow(c, 25.0 / 46, -21.0 / 46, 0); }
Status computeBlackmanWindow(ComputeContext& c) { return computeCosineWindow(c, 0.42, -0.5, 0.08); }

namespace {

/// table[m] = cos(2 pi m / N), -+ sin(2 pi m / N): real and imaginary part of the forward (inverse) transform's factor.
loop::BufferRef addTwiddles(ComputeContext& c, DType type, int64_t length, bool inverse) {
  loop::Stage stage;
  stage.out = c.temporary("twiddles", type, {length, 2});
  stage.axes = makeAxes({length, 2});
  Expr angle = asF64(stage.axes[0].var) * f64(2 * std::numbers::pi / static_cast<double>(length));
  Expr sine = loop::call("sin", {angle});
  stage.body = castTo(
      type, select(eq(stage.axes[1].var, loop::index(0)), loop::call("cos", {angle}), inverse ? sine : f64(0) - sine));
  loop::BufferRef buffer = stage.out;
  c.addStage(std::move(stage));
  return buffer;
}

/// Part `part` (0: real, 1: imaginary) of (re + i im) * table[m]; `im` null for a real factor.
Expr rotated(const loop::BufferRef& table, const Expr& m, const Expr& part, const Expr& re, const Expr& im) {
  if (!im) return re * load(table, {m, part});
  Expr cosine = load(table, {m, loop::index(0)}), sine = load(table, {m, loop::index(1)});
  return select(eq(part, loop::index(0)), re * cosine - im * sine, re * sine + im * cosine);
}

Result<int64_t> signalAxis(int64_t axis, int64_t rank) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t a, normaliseAxis(axis, rank));
  if (a == rank - 1) return Status::error("axis " + std::to_string(axis) + " is the one of real and imaginary parts");
  return a;
}

}  // namespace

Status inferDFT(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  const Shape& x = c.input(0).shape;
  std::optional<std::vector<int64_t>> axisInput = knownInts(c, 2);
  if (!x.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  if (x.rank() < 2) return Status::error("the input has the shape " + x.str() + ", expected at least two dims");
  bool inverse = c.node().intAttr("inverse", 0) != 0, oneSided = c.node().intAttr("onesided", 0) != 0;
  const Dim& parts = x[x.rank() - 1];
  if (parts.isKnown() && parts.value() != 1 && parts.value() != 2)
    return Status::error("the last dim of the input is " + parts.str() + ", expected 1 (real) or 2 (complex)");
  if (oneSided && !inverse && parts == Dim(2)) return Status::error("a one-sided transform takes a real input");
  std::vector<Dim> dims = x.dims();
  dims.back() = inverse && oneSided ? Dim(1) : Dim(2);
  if (c.hasInput(2) && (!axisInput || axisInput->size() != 1)) {
    for (size_t i = 0; i + 1 < dims.size(); ++i) dims[i] = c.freshDim();
    c.setOutput(0, c.input(0).dtype, Shape(dims));
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, signalAxis(axisInput ? axisInput->front() : -2, x.rank()));
  Dim length = inverse && oneSided ? (x[axis] - Dim(1)) * Dim(2) : x[axis];
  if (c.hasInput(1)) length = knownScalar(c, 1).value_or(c.freshDim());
  if (length.isKnown() && (length.value() < 1 || length.value() > kMaxLength))
    return Status::error("the transform's length is " + length.str() + ", expected at least 1");
  dims[static_cast<size_t>(axis)] = oneSided && !inverse ? floorDiv(length, Dim(2)) + Dim(1) : length;
  c.setOutput(0, c.input(0).dtype, Shape(dims));
  return Status::ok();
}

Status computeDFT(ComputeContext& c) {
  std::vector<int64_t> x = c.inputExtents(0), out = c.outputExtents();
  auto rank = static_cast<int64_t>(x.size());
  bool inverse = c.node().intAttr("inverse", 0) != 0, oneSided = c.node().intAttr("onesided", 0) != 0,
       complexIn = x.back() == 2;
  int64_t axisValue = -2;
  if (c.hasInput(2)) {
    LOCUTION_ASSIGN_OR_RETURN(axisValue, constantScalarInt(c, 2, "axis"));
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, signalAxis(axisValue, rank));
  auto a = static_cast<size_t>(axis);
  int64_t length = inverse && oneSided ? 2 * (x[a] - 1) : x[a];
  if (c.hasInput(1)) {
    LOCUTION_ASSIGN_OR_RETURN(length, constantScalarInt(c, 1, "dft_length"));
  }
  if (length < 1 || length > kMaxLength) return Status::error("the transform's length is " + std::to_string(length));
  DType dtype = c.output(0).dtype, type = accumulatorType(dtype);
  loop::BufferRef table = addTwiddles(c, type, length, inverse);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(out);
  stage.combiner = loop::Combiner::Sum;
  // The signal beyond the input is zero; a half spectrum stands for its mirror image, too.
  bool half = inverse && oneSided;
  stage.reduce = {{loop::makeVar("n"), std::min(x[a], half ? length / 2 + 1 : length)}};
  std::vector<Expr> o = varsOf(stage.axes), at = o;
  Expr n = stage.reduce[0].var, part = half ? loop::index(0) : o.back(), m = floorMod(o[a] * n, loop::index(length));
  at[a] = n;
  at.back() = loop::index(0);
  Expr re = castTo(type, c.at(0, at)), im;
  if (complexIn) {
    at.back() = loop::index(1);
    im = castTo(type, c.at(0, at));
  }
  stage.body = rotated(table, m, part, re, im);
  if (half) {
    Expr mirrored = logicalAnd(lt(loop::index(0), n), lt(n * 2, loop::index(length))),
         alone = re * load(table, {m, loop::index(0)});
    stage.body = select(mirrored, stage.body * loop::constant(type, 2), alone);
  }
  stage.acc = loop::makeVar("acc", {type, 1});
  stage.epilogue =
      castTo(dtype, inverse ? Expr(stage.acc) / loop::constant(type, static_cast<double>(length)) : Expr(stage.acc));
  c.addStage(std::move(stage));
  return Status::ok();
}

// Inputs: signal [N, L, 1 or 2], frame_step, window, frame_length.
Status inferSTFT(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 2}));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 0, 3));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 2, 1));
  const Shape& x = c.input(0).shape;
  bool oneSided = c.node().intAttr("onesided", 1) != 0;
  if (!c.hasInput(2) && !c.hasInput(3)) return Status::error("neither window nor frame_length is given");
  std::optional<Dim> step = knownScalar(c, 1), length;
  if (c.hasInput(3)) {
    length = knownScalar(c, 3);
  } else if (c.input(2).shape.isRanked()) {
    length = c.input(2).shape[0];
  }
  if (length && length->isKnown() && (length->value() < 1 || length->value() > kMaxLength))
    return Status::error("the frame length is " + length->str() + ", expected at least 1");
  if (step && step->isKnown() && step->value() < 1)
    return Status::error("frame_step is " + step->str() + ", expected at least 1");
  if (length && c.hasInput(2) && c.input(2).shape.isRanked())
    LOCUTION_RETURN_IF_ERROR(needSameDim(c.input(2).shape[0], *length, "length of the window and the frame"));
  if (x.isRanked() && x[2].isKnown() && x[2].value() != 1 && x[2].value() != 2) {
    return Status::error("the last dim of the signal is " + x[2].str() + ", expected 1 (real) or 2 (complex)");
  }
  if (x.isRanked() && oneSided && x[2] == Dim(2)) return Status::error("a one-sided transform takes a real signal");
  Dim frames = c.freshDim(), bins = c.freshDim();
  if (x.isRanked() && step && length) {
    if (x[1].isKnown() && length->isKnown() && length->value() > x[1].value())
      return Status::error("the frame of " + length->str() + " is longer than the signal of " + x[1].str());
    frames = floorDiv(x[1] - *length, *step) + Dim(1);
  }
  if (length) bins = oneSided ? floorDiv(*length, Dim(2)) + Dim(1) : *length;
  c.setOutput(0, c.input(0).dtype, Shape{x.isRanked() ? x[0] : c.freshDim(), frames, bins, Dim(2)});
  return Status::ok();
}

Status computeSTFT(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t step, constantScalarInt(c, 1, "frame_step"));
  int64_t length = c.hasInput(2) ? c.inputExtents(2)[0] : 0;
  if (c.hasInput(3)) {
    LOCUTION_ASSIGN_OR_RETURN(length, constantScalarInt(c, 3, "frame_length"));
  }
  DType dtype = c.output(0).dtype, type = accumulatorType(dtype);
  loop::BufferRef table = addTwiddles(c, type, length, false);
  loop::Stage stage;
  stage.out = c.outputBuffer(0);
  stage.axes = makeAxes(c.outputExtents());
  stage.reduce = {{loop::makeVar("n"), length}};
  stage.combiner = loop::Combiner::Sum;
  std::vector<Expr> o = varsOf(stage.axes);
  Expr n = stage.reduce[0].var, position = o[1] * step + n;
  auto signal = [&](int64_t part) {
    Expr value = castTo(type, c.at(0, {o[0], position, loop::index(part)}));
    return c.hasInput(2) ? value * castTo(type, c.at(2, {n})) : value;
  };
  Expr m = floorMod(o[2] * n, loop::index(length));
  stage.body = rotated(table, m, o[3], signal(0), c.inputExtents(0)[2] == 2 ? signal(1) : nullptr);
  if (type != dtype) {
    stage.acc = loop::makeVar("acc", {type, 1});
    stage.epilogue = castTo(dtype, stage.acc);
  }
  c.addStage(std::move(stage));
  return Status::ok();
}

// Inputs, all scalars: num_mel_bins, dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz.
Status inferMelWeightMatrix(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 5));
  for (size_t i : {0, 1, 2}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isInteger, "an integer type"));
  for (size_t i : {3, 4}) LOCUTION_RETURN_IF_ERROR(needDtype(c, i, isFloat, "a float type"));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<DType> type, dtypeAttr(c.node(), "output_datatype"));
  std::optional<Dim> bins = knownScalar(c, 0), length = knownScalar(c, 1);
  for (const auto& d : {bins, length}) {
    if (d && d->isKnown() && (d->value() < 0 || d->value() > kMaxLength))
      return Status::error("num_mel_bins or dft_length is " + d->str());
  }
  c.setOutput(0, type.value_or(DType::F32),
              Shape{length ? floorDiv(*length, Dim(2)) + Dim(1) : c.freshDim(), bins ? *bins : c.freshDim()});
  return Status::ok();
}

Status computeMelWeightMatrix(ComputeContext& c) {
  int64_t bins = c.outputExtents()[1];
  auto scalar = [&](size_t i) {
    if (std::optional<double> v = constantScalar(c, i)) return f64(*v);
    return asF64(c.at(i, std::vector<Expr>(c.inputExtents(i).size(), loop::index(0))));
  };
  // The spectrogram bins at which the triangles have their corners, evenly spaced in mel.
  auto mel = [&](const Expr& hertz) {
    return f64(2595 / std::numbers::ln10) * loop::call("log1p", {hertz / f64(700)});
  };
  Expr low = mel(scalar(3)), high = mel(scalar(4));
  loop::Stage corners;
  corners.out = c.temporary("corners", DType::I64, {bins + 2});
  corners.axes = makeAxes({bins + 2});
  Expr at = low + asF64(corners.axes[0].var) * ((high - low) / f64(static_cast<double>(bins + 2)));
  Expr hertz = f64(700) * loop::call("expm1", {at * f64(std::numbers::ln10 / 2595)});
  corners.body = loop::cast(DType::I64, loop::call("floor", {(scalar(1) + f64(1)) * hertz / scalar(2)}));
  loop::BufferRef table = corners.out;
  c.addStage(std::move(corners));
  DType dtype = c.output(0).dtype;
  return injective(c, 0, [&](const std::vector<Expr>& o) {
    Expr left = load(table, {o[1]}), centre = load(table, {o[1] + 1}), right = load(table, {o[1] + 2});
    const Expr& j = o[0];
    Expr rising = asF64(j - left) / asF64(centre - left), falling = asF64(right - j) / asF64(right - centre);
    Expr onTheLeft = logicalAnd(le(left, j), le(j, centre)), onTheRight = logicalAnd(le(centre, j), lt(j, right));
    // A triangle without a left side still has its top; where the two sides meet, the right one counts.
    Expr value = select(onTheRight, falling, select(onTheLeft, select(eq(left, centre), f64(1), rising), f64(0)));
    return loop::cast(dtype, value);
  });
}

}  // namespace locution::ops
