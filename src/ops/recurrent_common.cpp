// The shared half of RNN, GRU and LSTM (recurrent.h).
#include <algorithm>
#include <cctype>

#include "ops/helpers.h"
#include "ops/recurrent.h"
#include "ops/spatial.h"
#include "support/strings.h"

namespace locution::ops {

using loop::Expr;
using loop::Stmt;

namespace {

std::string lowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
  return text;
}

/// The functions that activations may name, with which of alpha and beta they take and the values without an attribute.
struct ActivationInfo {
  const char* name;
  bool hasAlpha, hasBeta;
  double alpha, beta;
};
constexpr ActivationInfo kActivations[] = {
    {"relu", false, false, 0, 0},     {"tanh", false, false, 0, 0},          {"sigmoid", false, false, 0, 0},
    {"affine", true, true, 1, 0},     {"leakyrelu", true, false, 0.01, 0},   {"thresholdedrelu", true, false, 1, 0},
    {"scaledtanh", true, true, 1, 1}, {"hardsigmoid", true, true, 0.2, 0.5}, {"elu", true, false, 1, 0},
    {"softsign", false, false, 0, 0}, {"softplus", false, false, 0, 0},
};

Result<int64_t> directionCount(const graph::Node& node) {
  std::string direction = node.stringAttr("direction", "forward");
  LOCUTION_RETURN_IF_ERROR(needOneOf("direction", direction, {"forward", "reverse", "bidirectional"}));
  return direction == "bidirectional" ? 2 : 1;
}

Result<std::vector<Recurrent::Activation>> parseActivations(const graph::Node& node, int64_t directions,
                                                            const std::vector<std::string>& defaults) {
  std::vector<std::string> names;
  if (auto it = node.attrs.find("activations"); it != node.attrs.end()) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&it->second)) names = *list;
  }
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  size_t expected = defaults.size() * static_cast<size_t>(directions);
  if (names.size() != expected) {
    return Status::error("attribute activations has " + std::to_string(names.size()) + " entries, expected " +
                         std::to_string(expected));
  }
  // The lists of parameters hold entries for those functions only that take one.
  std::vector<double> alphas = node.floatsAttr("activation_alpha"), betas = node.floatsAttr("activation_beta");
  size_t nextAlpha = 0, nextBeta = 0;
  std::vector<Recurrent::Activation> out;
  for (const std::string& name : names) {
    std::string lower = lowerCase(name);
    const auto* info = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationInfo& a) { return lower == a.name; });
    if (info == std::end(kActivations))
      return Status::error("attribute activations names " + quoted(name) + ", which is none of ONNX's functions");
    Recurrent::Activation a{lower, info->alpha, info->beta};
    if (info->hasAlpha && nextAlpha < alphas.size()) a.alpha = alphas[nextAlpha++];
    if (info->hasBeta && nextBeta < betas.size()) a.beta = betas[nextBeta++];
    out.push_back(std::move(a));
  }
  return out;
}

/// Input i, if there, has this shape as far as both are known.
Status needShape(const InferContext& c, size_t i, const std::string& name, const std::vector<Dim>& dims) {
  if (!c.hasInput(i) || !c.input(i).shape.isRanked()) return Status::ok();
  const Shape& s = c.input(i).shape;
  bool fits = s.rank() == static_cast<int64_t>(dims.size());
  for (int64_t d = 0; fits && d < s.rank(); ++d) {
    const Dim& want = dims[static_cast<size_t>(d)];
    fits = !s[d].isKnown() || !want.isKnown() || s[d] == want;
  }
  if (fits) return Status::ok();
  return Status::error("input " + std::to_string(i) + " (" + name + ") has the shape " + s.str() + ", expected " +
                       Shape(dims).str());
}

}  // namespace

Status inferRecurrent(InferContext& c, int64_t gates, const std::vector<std::string>& defaults) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 3));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, isFloat, "a float type"));
  LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, 1, 2, 3, 5, 6, 7}));
  LOCUTION_RETURN_IF_ERROR(needDtype(
      c, 4, [](DType t) { return t == DType::I32 || t == DType::I64; }, "int32"));
  for (size_t i = 0; i < 3; ++i) LOCUTION_RETURN_IF_ERROR(needRank(c, i, 3));
  const graph::Node& node = c.node();
  LOCUTION_ASSIGN_OR_RETURN(int64_t directions, directionCount(node));
  LOCUTION_RETURN_IF_ERROR(parseActivations(node, directions, defaults).status());
  if (node.floatAttr("clip", 1) < 0) return Status::error("attribute clip is negative");
  bool batchFirst = node.intAttr("layout", 0) != 0;
  const Shape &x = c.input(0).shape, &w = c.input(1).shape, &r = c.input(2).shape;
  Dim steps = x.isRanked() ? x[batchFirst ? 1 : 0] : c.freshDim(),
      batch = x.isRanked() ? x[batchFirst ? 0 : 1] : c.freshDim();
  Dim hidden = r.isRanked() ? r[2] : node.hasAttr("hidden_size") ? Dim(node.intAttr("hidden_size", 0)) : c.freshDim();
  Dim inputs = x.isRanked() ? x[2] : w.isRanked() ? w[2] : c.freshDim();
  if (node.hasAttr("hidden_size"))
    LOCUTION_RETURN_IF_ERROR(
        needSameDim(hidden, Dim(node.intAttr("hidden_size", 0)), "hidden units of R and attribute hidden_size"));
  Dim rows = hidden * Dim(gates), d(directions);
  LOCUTION_RETURN_IF_ERROR(needShape(c, 1, "W", {d, rows, inputs}));
  LOCUTION_RETURN_IF_ERROR(needShape(c, 2, "R", {d, rows, hidden}));
  LOCUTION_RETURN_IF_ERROR(needShape(c, 3, "B", {d, rows * Dim(2)}));
  LOCUTION_RETURN_IF_ERROR(needShape(c, 4, "sequence_lens", {batch}));
  std::vector<Dim> state = batchFirst ? std::vector<Dim>{batch, d, hidden} : std::vector<Dim>{d, batch, hidden};
  LOCUTION_RETURN_IF_ERROR(needShape(c, 5, "initial_h", state));
  LOCUTION_RETURN_IF_ERROR(needShape(c, 6, "initial_c", state));
  LOCUTION_RETURN_IF_ERROR(needShape(c, 7, "P", {d, hidden * Dim(3)}));
  DType type = c.input(0).dtype;
  c.setOutput(0, type, batchFirst ? Shape{batch, steps, d, hidden} : Shape{steps, d, batch, hidden});
  for (size_t i = 1; i < c.outputCount(); ++i) c.setOutput(i, type, Shape(state));
  return Status::ok();
}

Result<Recurrent> parseRecurrentAttributes(const graph::Node& node, int64_t gates,
                                           const std::vector<std::string>& defaults) {
  Recurrent r;
  r.batchFirst = node.intAttr("layout", 0) != 0;
  r.gates = gates;
  LOCUTION_ASSIGN_OR_RETURN(r.directions, directionCount(node));
  r.reverseOnly = node.stringAttr("direction", "forward") == "reverse";
  r.clip = node.floatAttr("clip", 0);
  LOCUTION_ASSIGN_OR_RETURN(r.activations, parseActivations(node, r.directions, defaults));
  return r;
}

Result<Recurrent> parseRecurrent(ComputeContext& c, int64_t gates, const std::vector<std::string>& defaults) {
  LOCUTION_ASSIGN_OR_RETURN(Recurrent r, parseRecurrentAttributes(c.node(), gates, defaults));
  std::vector<int64_t> x = c.inputExtents(0);
  r.steps = x[r.batchFirst ? 1 : 0];
  r.batch = x[r.batchFirst ? 0 : 1];
  r.inputs = x[2];
  r.hidden = c.inputExtents(2)[2];
  r.type = c.input(0).dtype;
  r.accumulator = accumulatorType(r.type);
  return r;
}

Expr applyActivation(const Recurrent::Activation& a, const Expr& value) {
  DType type = value->type.dtype;
  auto k = [&](double v) { return loop::constant(type, v); };
  return shared(value, [&](const Expr& x) -> Expr {
    if (a.name == "relu") return maxOf(x, k(0));
    if (a.name == "tanh") return loop::call("tanh", {x});
    if (a.name == "sigmoid") return loop::call("sigmoid", {x});
    if (a.name == "affine") return x * k(a.alpha) + k(a.beta);
    if (a.name == "leakyrelu") return select(lt(x, k(0)), x * k(a.alpha), x);
    if (a.name == "thresholdedrelu") return select(lt(k(a.alpha), x), x, k(0));
    if (a.name == "scaledtanh") return loop::call("tanh", {x * k(a.beta)}) * k(a.alpha);
    if (a.name == "hardsigmoid") return clampTo(x * k(a.alpha) + k(a.beta), 0, 1);
    if (a.name == "elu") return select(lt(x, k(0)), loop::call("expm1", {x}) * k(a.alpha), x);
    if (a.name == "softsign") return x / (loop::call("abs", {x}) + k(1));
    // softplus, without overflow for large x
    return maxOf(x, k(0)) + loop::call("log1p", {loop::call("exp", {k(0) - loop::call("abs", {x})})});
  });
}

Expr clipped(const Recurrent& r, const Expr& x) { return r.clip > 0 ? clampTo(x, -r.clip, r.clip) : x; }

Dots::Dots(const Recurrent& r, size_t rows)
    : type_(r.accumulator), lanes_(r.accumulator == DType::F64 ? 4 : 8), rows_(rows) {
  std::vector<int64_t> dims{static_cast<int64_t>(rows)};
  buffers_ = {loop::makeBuffer("lanes", {type_, lanes_}, dims, loop::Scope::Register),
              loop::makeBuffer("sums", {type_, 1}, dims, loop::Scope::Register)};
}

Stmt Dots::clear() const {
  std::vector<Stmt> stmts;
  Expr zero = loop::constant(type_, 0);
  for (size_t g = 0; g < rows_; ++g) {
    Expr row = loop::index(static_cast<int64_t>(g));
    stmts.push_back(store(buffers_[0], {row}, loop::broadcast(zero, lanes_)));
    stmts.push_back(store(buffers_[1], {row}, zero));
  }
  return loop::block(stmts);
}

Stmt Dots::add(const loop::BufferRef& weights, int64_t direction, const std::vector<Expr>& rows, int64_t count,
               const std::function<Expr(const Expr&)>& x) const {
  int64_t whole = count / lanes_ * lanes_;
  auto part = [&](const loop::BufferRef& sums, const Expr& i) {
    std::vector<Stmt> stmts;
    Expr xi = loop::cast(type_, x(i));
    for (size_t g = 0; g < rows_; ++g) {
      std::vector<Expr> row{loop::index(static_cast<int64_t>(g))};
      Expr w = loop::cast(type_, load(weights, {loop::index(direction), rows[g], i}));
      stmts.push_back(store(sums, row, load(sums, row) + xi * w));
    }
    return loop::block(stmts);
  };
  std::vector<Stmt> stmts;
  if (whole > 0) {
    loop::VarRef v = loop::makeVar("v");
    Expr lanes = loop::ramp(Expr(v) * lanes_, loop::index(1), lanes_);
    stmts.push_back(loop::forLoop(v, loop::index(0), loop::index(whole / lanes_), loop::LoopKind::Serial,
                                  part(buffers_[0], lanes)));
  }
  if (whole < count) {
    loop::VarRef i = loop::makeVar("i");
    stmts.push_back(
        loop::forLoop(i, loop::index(whole), loop::index(count - whole), loop::LoopKind::Serial, part(buffers_[1], i)));
  }
  return loop::block(stmts);
}

Expr Dots::sum(size_t row) const {
  std::vector<Expr> at{loop::index(static_cast<int64_t>(row))};
  return load(buffers_[1], at) + loop::vectorReduce(loop::BinaryOp::Add, load(buffers_[0], at));
}

Stmt recurrentLoops(ComputeContext& c, const Recurrent& r, const std::vector<State>& states,
                    const std::function<Stmt(const Step&)>& cell) {
  std::vector<Stmt> all;
  std::vector<loop::BufferRef> buffers;
  for (const State& s : states) buffers.push_back(s.buffer);
  bool ragged = c.hasInput(4);
  if (ragged) c.checkIndices(4, 0, r.steps);
  for (int64_t d = 0; d < r.directions; ++d) {
    auto stateIndices = [&](const Expr& b, const Expr& u) {
      return r.batchFirst ? std::vector<Expr>{b, loop::index(d), u} : std::vector<Expr>{loop::index(d), b, u};
    };
    for (const State& s : states) {
      std::vector<loop::Axis> axes = makeAxes({r.batch, r.hidden}, "s");
      std::vector<Expr> v = varsOf(axes);
      Expr start = c.hasInput(s.initial) ? loop::cast(r.accumulator, c.at(s.initial, stateIndices(v[0], v[1])))
                                         : loop::constant(r.accumulator, 0);
      all.push_back(nest(axes, store(s.buffer, v, start)));
    }
    loop::Axis step{loop::makeVar("t"), r.steps}, batch{loop::makeVar("b"), r.batch},
        unit{loop::makeVar("u"), r.hidden};
    Expr length = loop::index(r.steps), time = step.var;
    if (ragged) length = loop::cast(DType::I64, c.at(4, {batch.var}));
    if (r.isReverse(d)) time = length - 1 - step.var;
    auto writeY = [&](const Expr& at, const Expr& value) -> Stmt {
      if (!c.wantsOutput(0)) return loop::block({});
      std::vector<Expr> indices = r.batchFirst ? std::vector<Expr>{batch.var, at, loop::index(d), unit.var}
                                               : std::vector<Expr>{at, loop::index(d), batch.var, unit.var};
      return nest({unit}, store(c.outputBuffer(0), indices, loop::cast(r.type, value)));
    };
    Expr h = load(states[0].buffer, {batch.var, unit.var});
    Lets lets;
    Expr at = lets("at", time);
    Stmt active = lets.around(loop::block({cell({d, at, batch.var}), writeY(at, h)}));
    if (ragged)
      active = loop::ifThen(lt(step.var, length), active,
                            c.wantsOutput(0) ? writeY(step.var, loop::constant(r.accumulator, 0)) : nullptr);
    all.push_back(nest({step, batch}, active));
    for (const State& s : states) {
      if (!c.wantsOutput(s.last)) continue;
      std::vector<loop::Axis> axes = makeAxes({r.batch, r.hidden}, "s");
      std::vector<Expr> v = varsOf(axes);
      all.push_back(
          nest(axes, store(c.outputBuffer(s.last), stateIndices(v[0], v[1]), loop::cast(r.type, load(s.buffer, v)))));
    }
  }
  return withBuffers(buffers, loop::block(all));
}

Expr inputFeature(ComputeContext& c, const Recurrent& r, const Step& step, const Expr& i) {
  return r.batchFirst ? c.at(0, {step.batch, step.time, i}) : c.at(0, {step.time, step.batch, i});
}

Expr biasOf(ComputeContext& c, const Recurrent& r, int64_t direction, int64_t block, const Expr& unit) {
  if (!c.hasInput(3)) return loop::constant(r.accumulator, 0);
  return loop::cast(r.accumulator, c.at(3, {loop::index(direction), unit + block * r.hidden}));
}

}  // namespace locution::ops
