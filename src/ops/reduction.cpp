// The Reduce operators. Floats of 16 bits and less accumulate in float32; an empty set gives the combiner's identity.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/families.h"
#include "ops/reducer.h"

namespace locution::ops {

using loop::Combiner;
using loop::Expr;

namespace {

bool keepsDims(const graph::Node& node) { return node.intAttr("keepdims", 1) != 0; }
bool isNoop(const graph::Node& node) { return node.intAttr("noop_with_empty_axes", 0) != 0; }

std::vector<int64_t> allAxes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

Result<std::vector<int64_t>> axesFrom(const graph::Node& node, const std::vector<int64_t>& given, int64_t rank) {
  if (given.empty()) return isNoop(node) ? std::vector<int64_t>() : allAxes(rank);
  return normaliseAxes(given, rank);
}

/// Axes that aren't known but follow from the shapes: where dims are kept, those that became 1; otherwise the one set of dims whose
/// removal gives the output, if it is the only one.
std::optional<std::vector<int64_t>> axesFromShapes(const std::vector<int64_t>& in, const std::vector<int64_t>& out,
                                                   bool keepDims) {
  auto rank = static_cast<int64_t>(in.size());
  std::vector<int64_t> axes;
  if (keepDims) {
    for (int64_t i = 0; i < rank; ++i)
      if (out[static_cast<size_t>(i)] == 1) axes.push_back(i);
    return axes;
  }
  if (rank > 16) return std::nullopt;
  int found = 0;
  for (uint32_t mask = 0; mask < (1u << rank); ++mask) {
    std::vector<int64_t> left, gone;
    for (int64_t i = 0; i < rank; ++i) {
      if (mask >> i & 1)
        gone.push_back(i);
      else
        left.push_back(in[static_cast<size_t>(i)]);
    }
    if (left != out) continue;
    ++found;
    axes = gone;
  }
  return found == 1 ? std::optional(axes) : std::nullopt;
}

Result<std::vector<int64_t>> computeAxes(const ComputeContext& c) {
  int64_t rank = c.input(0).shape.rank();
  if (!c.hasInput(1)) return axesFrom(c.node(), c.node().intsAttr("axes"), rank);
  if (c.input(1).shape.elements() == 0) return axesFrom(c.node(), {}, rank);
  if (!c.constant(1)) {
    std::optional<std::vector<int64_t>> axes =
        axesFromShapes(c.inputExtents(0), c.outputExtents(), keepsDims(c.node()));
    if (axes) return *axes;
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> given, constantInts(c, 1, "axes"));
  return axesFrom(c.node(), given, rank);
}

Expr intOrDouble(const Expr& x) { return isFloat(x->type.dtype) ? x : loop::cast(DType::F64, x); }
Expr square(const Expr& x) {
  return shared(x, [](const Expr& v) { return v * v; });
}

/// One stage: combine f(x), then g.
Status reduce(ComputeContext& c, Combiner combiner, const std::function<Expr(const Expr&)>& f = nullptr,
              const std::function<Expr(const Expr& acc, int64_t count)>& g = nullptr) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, computeAxes(c));
  Reducer r(c, c.inputExtents(0), axes);
  auto body = [&](const std::vector<Expr>& full) {
    Expr x = widened(c, 0, full);
    return f ? f(x) : x;
  };
  Reducer::Epilogue epilogue;
  if (g) epilogue = [&](const Expr& acc, const std::vector<Expr>&) { return g(acc, r.count()); };
  r.output(0, keepsDims(c.node()), combiner, body, epilogue);
  return Status::ok();
}

}  // namespace

namespace {

Status inferReduction(InferContext& c, bool (*accepts)(DType), std::string_view expected) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 0, accepts, expected));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape& in = c.input(0).shape;
  DType type = c.input(0).dtype;
  bool keep = keepsDims(c.node());
  std::optional<std::vector<int64_t>> given = c.node().intsAttr("axes");
  if (c.hasInput(1)) given = knownInts(c, 1);
  if (c.hasInput(1) && c.input(1).shape.isStatic() && c.input(1).shape.elements() == 0) given = std::vector<int64_t>();
  if (!in.isRanked() || !given) {
    Shape out = Shape::unranked();
    std::optional<int64_t> rank;
    if (in.isRanked() && keep)
      rank = in.rank();
    else if (in.isRanked() && c.input(1).shape.isStatic() && c.input(1).shape.elements() <= in.rank())
      rank = in.rank() - c.input(1).shape.elements();
    if (rank) {
      std::vector<Dim> dims;
      for (int64_t i = 0; i < *rank; ++i) dims.push_back(c.freshDim());
      out = Shape(std::move(dims));
    }
    c.setOutput(0, type, std::move(out));
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, axesFrom(c.node(), *given, in.rank()));
  std::vector<Dim> out;
  for (int64_t i = 0; i < in.rank(); ++i) {
    bool gone = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!gone)
      out.push_back(in[i]);
    else if (keep)
      out.emplace_back(1);
  }
  c.setOutput(0, type, Shape(std::move(out)));
  return Status::ok();
}

/// Contents of a vector reduced to one number.
void reduceDims(InferContext& c, Dim start, const std::function<Dim(const Dim&, const Dim&)>& f) {
  const Shape& in = c.input(0).shape;
  std::optional<std::vector<Dim>> dims = c.inputDims(0);
  bool whole = !isNoop(c.node()) || (c.hasInput(1) && c.constant(1) && c.constant(1)->elements() == 1);
  if (!isInteger(c.input(0).dtype) || !in.isRanked() || in.rank() != 1 || !dims || !whole) return;
  for (const Dim& d : *dims) start = f(start, d);
  c.setOutputDims(0, {start});
}

bool isNumericOrBool(DType t) { return isNumeric(t) || t == DType::Bool; }

}  // namespace

Status inferReduce(InferContext& c) { return inferReduction(c, isNumeric, "a numeric type"); }

Status inferReduceSum(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferReduce(c));
  reduceDims(c, Dim(0), [](const Dim& a, const Dim& b) { return a + b; });
  return Status::ok();
}

Status inferReduceProd(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferReduce(c));
  reduceDims(c, Dim(1), [](const Dim& a, const Dim& b) { return a * b; });
  return Status::ok();
}

Status inferReduceExtremum(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(inferReduction(c, isNumericOrBool, "a numeric type or bool"));
  bool isMax = c.node().op == "ReduceMax";
  if (std::optional<std::vector<Dim>> dims = c.inputDims(0); dims && !dims->empty())
    reduceDims(c, dims->front(), [&](const Dim& a, const Dim& b) { return isMax ? maxDim(a, b) : minDim(a, b); });
  return Status::ok();
}

Status computeReduceSum(ComputeContext& c) { return reduce(c, Combiner::Sum); }
Status computeReduceProd(ComputeContext& c) { return reduce(c, Combiner::Product); }
Status computeReduceMax(ComputeContext& c) {
  return reduce(c, c.input(0).dtype == DType::Bool ? Combiner::Or : Combiner::Max);
}
Status computeReduceMin(ComputeContext& c) {
  return reduce(c, c.input(0).dtype == DType::Bool ? Combiner::And : Combiner::Min);
}

Status computeReduceMean(ComputeContext& c) {
  return reduce(c, Combiner::Sum, nullptr, [](const Expr& acc, int64_t n) {
    return acc / loop::constant(acc->type.dtype, static_cast<double>(n));
  });
}

Status computeReduceL1(ComputeContext& c) {
  return reduce(c, Combiner::Sum,
                [](const Expr& x) { return isUnsignedInt(x->type.dtype) ? x : loop::call("abs", {x}); });
}

Status computeReduceL2(ComputeContext& c) {
  return reduce(
      c, Combiner::Sum, [](const Expr& x) { return square(intOrDouble(x)); },
      [](const Expr& acc, int64_t) { return loop::call("sqrt", {acc}); });
}

Status computeReduceSumSquare(ComputeContext& c) { return reduce(c, Combiner::Sum, square); }

Status computeReduceLogSum(ComputeContext& c) {
  return reduce(
      c, Combiner::Sum, [](const Expr& x) { return intOrDouble(x); },
      [](const Expr& acc, int64_t) { return loop::call("log", {acc}); });
}

Status computeReduceLogSumExp(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> axes, computeAxes(c));
  Reducer r(c, c.inputExtents(0), axes);
  auto value = [&](const std::vector<Expr>& full) { return intOrDouble(widened(c, 0, full)); };
  // An infinite largest element can't be taken out: inf - inf is NaN.
  auto finite = [](const Expr& m, const std::vector<Expr>&) {
    return loop::select(loop::call("isinf", {m}), loop::constant(m->type.dtype, 0), m);
  };
  loop::BufferRef largest = r.temporary("max", Combiner::Max, value, finite);
  r.output(
      0, keepsDims(c.node()), Combiner::Sum,
      [&](const std::vector<Expr>& full) { return loop::call("exp", {value(full) - r.at(largest, full)}); },
      [&](const Expr& sum, const std::vector<Expr>& kept) {
        return loop::call("log", {sum}) + loop::load(largest, kept);
      });
  return Status::ok();
}

}  // namespace locution::ops
