// Elements moved by a fixed map: Transpose, Concat, Split, Expand, Tile, DepthToSpace, SpaceToDepth, Trilu, ReverseSequence.
#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/helpers.h"
#include "ops/spatial.h"

namespace locution::ops {

using loop::Expr;

namespace {

Result<std::vector<int64_t>> permutation(const graph::Node& node, int64_t rank) {
  std::vector<int64_t> perm = node.intsAttr("perm");
  if (perm.empty() && !(node.hasAttr("perm") && rank == 0)) {
    perm.resize(static_cast<size_t>(rank));
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  std::vector<int64_t> identity(static_cast<size_t>(rank));
  std::iota(identity.begin(), identity.end(), 0);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != identity)
    return Status::error("attribute 'perm' isn't a permutation of " + std::to_string(rank) + " dimensions");
  return perm;
}

}  // namespace

Status inferTranspose(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) {
    c.setOutput(0, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> perm, permutation(c.node(), in.rank()));
  std::vector<Dim> out;
  for (int64_t p : perm) out.push_back(in[p]);
  if (in.rank() <= 1)
    if (std::optional<std::vector<Dim>> dims = c.inputDims(0)) c.setOutputDims(0, *dims);
  c.setOutput(0, c.input(0).dtype, Shape(std::move(out)));
  return Status::ok();
}

Status computeTranspose(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(std::vector<int64_t> perm, permutation(c.node(), c.input(0).shape.rank()));
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> in(out.size());
    for (size_t i = 0; i < out.size(); ++i) in[static_cast<size_t>(perm[i])] = out[i];
    return c.at(0, std::move(in));
  });
}

Status inferConcat(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  if (!c.node().hasAttr("axis")) return Status::error("attribute 'axis' is missing");
  std::optional<Shape> shape;
  bool ranked = true, contents = true;
  std::vector<Dim> joined;
  for (size_t i = 0; i < c.inputCount(); ++i) {
    if (!c.hasInput(i)) return Status::error("input " + std::to_string(i) + " is missing");
    LOCUTION_RETURN_IF_ERROR(needSameDtype(c, {0, i}));
    if (std::optional<std::vector<Dim>> dims = c.inputDims(i))
      joined.insert(joined.end(), dims->begin(), dims->end());
    else
      contents = false;
    const Shape& in = c.input(i).shape;
    if (!in.isRanked()) {
      ranked = false;
      continue;
    }
    if (in.rank() == 0)
      return Status::error("input " + std::to_string(i) + " is a scalar: at least one dimension is needed");
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), in.rank()));
    if (!shape) {
      shape = in;
      continue;
    }
    if (in.rank() != shape->rank())
      return Status::error("inputs have different numbers of dimensions: " + shape->str() + " and " + in.str());
    for (int64_t d = 0; d < in.rank(); ++d) {
      if (d == axis) {
        (*shape)[d] = (*shape)[d] + in[d];
        continue;
      }
      LOCUTION_RETURN_IF_ERROR(
          needSameDim((*shape)[d], in[d], "dimension " + std::to_string(d) + " of inputs 0 and " + std::to_string(i)));
      if (in[d].isKnown()) (*shape)[d] = in[d];
    }
  }
  if (!ranked && shape) {
    // Some inputs are unranked: the rank and the other dims are known all the same.
    LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), shape->rank()));
    (*shape)[axis] = c.freshDim();
  }
  if (ranked && contents && shape && shape->rank() == 1) c.setOutputDims(0, std::move(joined));
  c.setOutput(0, c.input(0).dtype, shape ? *shape : Shape::unranked());
  return Status::ok();
}

Status computeConcat(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), c.output(0).shape.rank()));
  auto a = static_cast<size_t>(axis);
  return injective(c, 0, [&](const std::vector<Expr>& indices) {
    // From the last input to the first: select(i < end of input 0, input 0, select(i < end of input 1, ...)).
    int64_t end = c.outputExtents()[a];
    Expr out;
    for (size_t i = c.inputCount(); i-- > 0;) {
      int64_t extent = c.inputExtents(i)[a], begin = end - extent;
      if (extent == 0) continue;
      std::vector<Expr> at = indices;
      at[a] = at[a] - begin;
      Expr value = c.at(i, std::move(at));
      out = out ? loop::select(lt(indices[a], loop::index(end)), value, out) : value;
      end = begin;
    }
    return out ? out : loop::constant(c.output(0).dtype, 0);
  });
}

namespace {

/// Sizes of all the outputs as far as they are told: by input 1, or as equal parts.
Result<std::optional<std::vector<Dim>>> splitSizes(InferContext& c, const Dim& whole) {
  auto count = static_cast<int64_t>(c.outputCount());
  if (c.hasInput(1)) {
    std::optional<std::vector<Dim>> sizes = c.inputDims(1);
    if (!sizes) return std::optional<std::vector<Dim>>();
    if (static_cast<int64_t>(sizes->size()) != count)
      return Status::error("the split has " + std::to_string(sizes->size()) + " sizes for " + std::to_string(count) +
                           " outputs");
    Dim total(0);
    for (const Dim& d : *sizes) {
      if (d.isKnown() && d.value() < 0) return Status::error("the split has the size " + d.str());
      total = total + d;
    }
    LOCUTION_RETURN_IF_ERROR(needSameDim(total, whole, "the sum of the split's sizes and the extent that is split"));
    return sizes;
  }
  int64_t parts = c.node().intAttr("num_outputs", count);
  if (parts != count)
    return Status::error("attribute 'num_outputs': expected " + std::to_string(count) +
                         " (the number of outputs), got " + std::to_string(parts));
  Dim chunk = ceilDiv(whole, Dim(parts)), last = whole - chunk * Dim(parts - 1);
  if (last.isKnown() && last.value() < 0)
    return Status::error("an extent of " + whole.str() + " can't be split into " + std::to_string(parts) +
                         " parts of " + chunk.str());
  std::vector<Dim> sizes(static_cast<size_t>(parts), chunk);
  sizes.back() = last;
  return std::optional(sizes);
}

}  // namespace

Status inferSplit(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 1));
  const Shape& in = c.input(0).shape;
  if (!in.isRanked()) {
    for (size_t o = 0; o < c.outputCount(); ++o) c.setOutput(o, c.input(0).dtype, Shape::unranked());
    return Status::ok();
  }
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), in.rank()));
  LOCUTION_ASSIGN_OR_RETURN(std::optional<std::vector<Dim>> sizes, splitSizes(c, in[axis]));
  std::optional<std::vector<Dim>> contents = in.rank() == 1 ? c.inputDims(0) : std::nullopt;
  size_t begin = 0;
  for (size_t o = 0; o < c.outputCount(); ++o) {
    Shape out = in;
    out[axis] = sizes ? (*sizes)[o] : c.freshDim();
    if (contents && sizes && out.isStatic() && begin + static_cast<size_t>(out[0].value()) <= contents->size()) {
      auto first = contents->begin() + static_cast<std::ptrdiff_t>(begin);
      begin += static_cast<size_t>(out[0].value());
      c.setOutputDims(o, {first, contents->begin() + static_cast<std::ptrdiff_t>(begin)});
    } else {
      contents.reset();
    }
    c.setOutput(o, c.input(0).dtype, std::move(out));
  }
  return Status::ok();
}

Status computeSplit(ComputeContext& c) {
  LOCUTION_ASSIGN_OR_RETURN(int64_t axis, normaliseAxis(c.node().intAttr("axis", 0), c.input(0).shape.rank()));
  auto a = static_cast<size_t>(axis);
  std::vector<int64_t> told;
  if (c.hasInput(1) && c.constant(1)) told = c.constant(1)->toInts();
  int64_t whole = c.inputExtents(0)[a], begin = 0, parts = static_cast<int64_t>(c.outputCount());
  for (size_t o = 0; o < c.outputCount(); ++o) {
    int64_t size = (whole + parts - 1) / parts;
    if (o < told.size())
      size = told[o];
    else if (c.wantsOutput(o))
      size = c.outputExtents(o)[a];
    else if (c.hasInput(1))
      return Status::error("input 1 (the sizes) must be known at compile time where an output is left out");
    if (size < 0 || begin + size > whole)
      return Status::error("the split's sizes exceed the extent " + std::to_string(whole));
    if (c.wantsOutput(o))
      LOCUTION_RETURN_IF_ERROR(injective(c, o, [&](const std::vector<Expr>& out) {
        std::vector<Expr> in = out;
        in[a] = in[a] + begin;
        return c.at(0, std::move(in));
      }));
    begin += size;
  }
  return Status::ok();
}

Status inferExpand(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  LOCUTION_RETURN_IF_ERROR(needRank(c, 1, 1));
  const Shape& in = c.input(0).shape;
  Shape out = Shape::unranked();
  if (std::optional<std::vector<Dim>> target = c.inputDims(1)) {
    for (const Dim& d : *target)
      if (d.isKnown() && d.value() < 0) return Status::error("the shape to expand to has the extent " + d.str());
    LOCUTION_ASSIGN_OR_RETURN(out, broadcastShapes({in, Shape(*target)}));
  } else if (in.isRanked() && c.input(1).shape.isStatic() && c.input(1).shape.rank() == 1 &&
             c.input(1).shape[0].value() <= 64) {
    std::vector<Dim> dims;
    for (int64_t i = std::max(in.rank(), c.input(1).shape[0].value()); i > 0; --i) dims.push_back(c.freshDim());
    out = Shape(std::move(dims));
  }
  if (out.isStatic() && out.rank() == 1 && out[0].value() <= 64)
    if (std::optional<std::vector<Dim>> dims = c.inputDims(0); dims && dims->size() == 1)
      c.setOutputDims(0, std::vector<Dim>(static_cast<size_t>(out[0].value()), dims->front()));
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computeExpand(ComputeContext& c) {
  return injective(c, 0,
                   [&](const std::vector<Expr>& out) { return c.at(0, broadcastIndices(c.inputExtents(0), out)); });
}

Status inferTile(InferContext& c) {
  LOCUTION_RETURN_IF_ERROR(needInputs(c, 2));
  LOCUTION_RETURN_IF_ERROR(needDtype(c, 1, isInteger, "integers"));
  const Shape& in = c.input(0).shape;
  Shape out = in;
  if (in.isRanked()) {
    std::optional<std::vector<Dim>> repeats = c.inputDims(1);
    if (repeats && static_cast<int64_t>(repeats->size()) != in.rank())
      return Status::error("expected " + std::to_string(in.rank()) + " repeats for " + in.str() + ", got " +
                           std::to_string(repeats->size()));
    for (int64_t i = 0; i < in.rank(); ++i) {
      if (repeats && (*repeats)[static_cast<size_t>(i)].isKnown() && (*repeats)[static_cast<size_t>(i)].value() < 0)
        return Status::error("the repeat " + (*repeats)[static_cast<size_t>(i)].str() + " is negative");
      out[i] = repeats ? in[i] * (*repeats)[static_cast<size_t>(i)] : c.freshDim();
    }
  }
  c.setOutput(0, c.input(0).dtype, std::move(out));
  return Status::ok();
}

Status computeTile(ComputeContext& c) {
  std::vector<int64_t> in = c.inputExtents(0), to = c.outputExtents();
  return injective(c, 0, [&](const std::vector<Expr>& out) {
    std::vector<Expr> at = out;
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i] != to[i]) at[i] = in[i] <= 1 ? loop::index(0) : floorMod(out[i], loop::index(in[i]));
    return c.at(0, std::move(at));
  });
}

}  // namespace locution::ops
