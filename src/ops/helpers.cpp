// Index algebra and stage makers that every family uses.
#include "ops/helpers.h"

#include <algorithm>

namespace locution::ops {

using loop::Expr;

Result<int64_t> normaliseAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return Status::error("axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) +
                         " dimensions");
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> normaliseAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> out;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) {
    LOCUTION_ASSIGN_OR_RETURN(int64_t a, normaliseAxis(axis, rank));
    if (seen[static_cast<size_t>(a)]) return Status::error("axis " + std::to_string(axis) + " is given twice");
    seen[static_cast<size_t>(a)] = true;
    out.push_back(a);
  }
  return out;
}

Result<Shape> broadcastShapes(const std::vector<Shape>& shapes) {
  int64_t rank = 0;
  for (const Shape& s : shapes) {
    if (!s.isRanked()) return Shape::unranked();
    rank = std::max(rank, s.rank());
  }
  std::vector<Dim> out(static_cast<size_t>(rank), Dim(1));
  for (const Shape& s : shapes) {
    for (int64_t i = 0; i < s.rank(); ++i) {
      Dim& o = out[static_cast<size_t>(rank - s.rank() + i)];
      const Dim& d = s[i];
      if (o == d || (d.isKnown() && d.value() == 1)) continue;
      if (o.isKnown() && o.value() == 1) {
        o = d;
      } else if (o.isKnown() && d.isKnown()) {
        std::string all;
        for (const Shape& t : shapes) all += (all.empty() ? "" : ", ") + t.str();
        return Status::error("shapes " + all + " don't broadcast: " + o.str() + " against " + d.str());
      } else if (d.isKnown()) {
        o = d;
      } else if (!o.isKnown()) {
        o = maxDim(o, d);
      }
    }
  }
  return Shape(std::move(out));
}

std::vector<loop::Axis> makeAxes(const std::vector<int64_t>& extents, const std::string& stem) {
  std::vector<loop::Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i) axes.push_back({loop::makeVar(stem + std::to_string(i)), extents[i]});
  return axes;
}

std::vector<Expr> varsOf(const std::vector<loop::Axis>& axes) {
  std::vector<Expr> out;
  for (const loop::Axis& axis : axes) out.push_back(axis.var);
  return out;
}

std::vector<Expr> broadcastIndices(const std::vector<int64_t>& extents, const std::vector<Expr>& full) {
  LOCUTION_CHECK(extents.size() <= full.size()) << extents.size() << " dims broadcast to " << full.size();
  std::vector<Expr> out(full.end() - static_cast<std::ptrdiff_t>(extents.size()), full.end());
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] == 1) out[i] = loop::index(0);
  return out;
}

Expr flattenIndex(const std::vector<int64_t>& extents, const std::vector<Expr>& indices) {
  LOCUTION_CHECK(extents.size() == indices.size()) << extents.size() << " dims, " << indices.size() << " indices";
  Expr flat = loop::index(0);
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1) flat = flat * extents[i] + indices[i];
  return flat;
}

std::vector<Expr> unflattenIndex(const std::vector<int64_t>& extents, const Expr& flat) {
  std::vector<Expr> out(extents.size(), loop::index(0));
  int64_t stride = 1;
  bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  if (empty) return out;
  // The outermost dim needs no remainder.
  size_t outermost = 0;
  while (outermost < extents.size() && extents[outermost] == 1) ++outermost;
  for (size_t i = extents.size(); i-- > outermost;) {
    if (extents[i] == 1) continue;
    Expr q = stride == 1 ? flat : floorDiv(flat, loop::index(stride));
    out[i] = i == outermost ? q : floorMod(q, loop::index(extents[i]));
    stride *= extents[i];
  }
  return out;
}

std::vector<Expr> reshapeIndices(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                 const std::vector<Expr>& indices) {
  LOCUTION_CHECK(to.size() == indices.size()) << to.size() << " dims, " << indices.size() << " indices";
  std::vector<Expr> out(from.size(), loop::index(0));
  if (std::find(from.begin(), from.end(), 0) != from.end()) return out;
  size_t f = 0, t = 0;
  // Groups of dims with equal products, outermost first; within one, through the flat offset.
  while (f < from.size() || t < to.size()) {
    std::vector<int64_t> groupFrom, groupTo;
    std::vector<size_t> fromAt;
    std::vector<Expr> groupIndices;
    int64_t productFrom = 1, productTo = 1;
    do {
      bool takeFrom = f < from.size() && (productFrom <= productTo || t >= to.size());
      if (takeFrom) {
        productFrom *= from[f];
        groupFrom.push_back(from[f]);
        fromAt.push_back(f++);
      } else {
        LOCUTION_CHECK(t < to.size()) << "a reshape between different numbers of elements";
        productTo *= to[t];
        groupTo.push_back(to[t]);
        groupIndices.push_back(indices[t++]);
      }
    } while (productFrom != productTo);
    std::vector<Expr> mapped = unflattenIndex(groupFrom, flattenIndex(groupTo, groupIndices));
    for (size_t i = 0; i < fromAt.size(); ++i) out[fromAt[i]] = mapped[i];
  }
  return out;
}

Expr shared(const Expr& value, const std::function<Expr(const Expr&)>& f) {
  if (value->kind == loop::ExprKind::Var || value->kind == loop::ExprKind::IntImm ||
      value->kind == loop::ExprKind::FloatImm)
    return f(value);
  loop::VarRef var = loop::makeVar("t", value->type);
  return loop::let(var, value, f(var));
}

DType computeType(DType type) { return isFloat(type) && dtypeBits(type) <= 16 ? DType::F32 : type; }

Expr widened(ComputeContext& c, size_t i, const std::vector<Expr>& indices) {
  Expr value = c.at(i, indices);
  return loop::cast(computeType(value->type.dtype), value);
}

namespace {

/// The value of a constant with one element as an immediate of computeType; null otherwise.
Expr immediate(const ComputeContext& c, size_t i) {
  const Tensor* t = c.constant(i);
  if (!t || t->elements() != 1) return nullptr;
  DType type = t->dtype();
  if (isFloat(type)) return loop::floatImm(computeType(type), t->elementAsDouble(0));
  if (isIntOrBool(type)) return loop::intImm(type, t->elementAsInt(0));
  return nullptr;
}

}  // namespace

Status elementwise(ComputeContext& c, const std::function<Expr(const std::vector<Expr>&)>& f) {
  return injective(c, 0, [&](const std::vector<Expr>& full) {
    std::vector<Expr> args;
    for (size_t i = 0; i < c.inputCount(); ++i) {
      if (!c.hasInput(i)) continue;
      Expr value = immediate(c, i);
      if (!value) value = widened(c, i, broadcastIndices(c.inputExtents(i), full));
      args.push_back(value);
    }
    return f(args);
  });
}

Status injective(ComputeContext& c, size_t o, const std::function<Expr(const std::vector<Expr>&)>& make) {
  loop::Stage stage;
  stage.out = c.outputBuffer(o);
  stage.axes = makeAxes(c.outputExtents(o));
  stage.body = loop::cast(c.output(o).dtype, make(varsOf(stage.axes)));
  c.addStage(std::move(stage));
  return Status::ok();
}

std::optional<double> constantScalar(const ComputeContext& c, size_t i) {
  if (!c.hasInput(i)) return std::nullopt;
  const Tensor* t = c.constant(i);
  if (!t || t->elements() != 1 || !(isFloat(t->dtype()) || isIntOrBool(t->dtype()))) return std::nullopt;
  return t->elementAsDouble(0);
}

Expr intElement(ComputeContext& c, size_t i, int64_t k) {
  if (const Tensor* t = c.constant(i)) return loop::index(t->elementAsInt(k));
  std::vector<Expr> indices(c.inputExtents(i).size(), loop::index(0));
  if (!indices.empty()) indices.back() = loop::index(k);
  return loop::cast(DType::I64, c.at(i, std::move(indices)));
}

Expr wrapNegative(const Expr& index, int64_t extent) {
  return shared(loop::cast(DType::I64, index),
                [&](const Expr& i) { return loop::select(lt(i, loop::index(0)), i + extent, i); });
}

Expr clampTo(const Expr& x, double low, double high) {
  DType t = x->type.dtype;
  Expr lowest = loop::constant(t, low), highest = loop::constant(t, high);
  Expr raised = shared(x, [&](const Expr& v) { return loop::select(lt(v, lowest), lowest, v); });
  return shared(raised, [&](const Expr& v) { return loop::select(lt(highest, v), highest, v); });
}

}  // namespace locution::ops
