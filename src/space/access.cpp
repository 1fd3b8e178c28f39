#include "space/access.h"

#include <algorithm>
#include <unordered_map>

#include "loop/passes.h"

namespace locution::space {

using namespace loop;  // NOLINT: this file is about loop IR

namespace {

Ranges rangesOf(const Stage& s) {
  Ranges ranges;
  for (const Axis& a : s.axes) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  for (const Axis& a : s.reduce) ranges[a.var.get()] = {0, std::max<int64_t>(0, a.extent - 1)};
  return ranges;
}

/// Adds `factor` times each variable's coefficient; false where `e` is more than sums and multiples of variables.
bool addTerms(const Expr& e, int64_t factor, std::unordered_map<const Var*, int64_t>* coefficients) {
  if (const auto* v = as<Var>(e)) {
    (*coefficients)[v] += factor;
    return true;
  }
  if (as<IntImm>(e)) return true;
  const auto* b = as<Binary>(e);
  if (!b) return false;
  int64_t by = 0;
  switch (b->op) {
    case BinaryOp::Add:
      return addTerms(b->a, factor, coefficients) && addTerms(b->b, factor, coefficients);
    case BinaryOp::Sub:
      return addTerms(b->a, factor, coefficients) && addTerms(b->b, -factor, coefficients);
    case BinaryOp::Mul:
      if (isConstInt(b->b, &by)) return addTerms(b->a, factor * by, coefficients);
      return isConstInt(b->a, &by) && addTerms(b->b, factor * by, coefficients);
    default:
      return false;
  }
}

/// Most accesses are plain sums, for which nothing has to be simplified.
std::optional<Access> plainAccess(const Stage& s, const Buffer& buffer, const std::vector<Expr>& indices,
                                  const std::vector<int64_t>& dims) {
  std::unordered_map<const Var*, int64_t> coefficients;
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0; stride *= dims[i])
    if (!addTerms(indices[i], stride, &coefficients)) return std::nullopt;
  Access out;
  out.buffer = &buffer;
  auto step = [&](const Axis& a) {
    auto found = coefficients.find(a.var.get());
    return found == coefficients.end() ? 0 : found->second;
  };
  for (const Axis& a : s.axes) out.spatial.emplace_back(step(a));
  for (const Axis& a : s.reduce) out.reduce.emplace_back(step(a));
  return out;
}

Access accessOf(const Stage& s, const Buffer& buffer, const std::vector<Expr>& indices, const Ranges& ranges) {
  std::vector<int64_t> dims = extents(buffer);
  if (auto plain = plainAccess(s, buffer, indices, dims)) return *plain;
  Access out;
  out.buffer = &buffer;
  Expr flat = index(0);
  for (size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i] + indices[i];
  flat = simplify(flat, ranges);
  auto step = [&](const Axis& a) -> std::optional<int64_t> {
    if (!usesVar(flat, a.var.get())) return 0;
    Expr base;
    int64_t coefficient = 0;
    if (!splitAffine(flat, a.var.get(), &base, &coefficient, ranges)) return std::nullopt;
    return coefficient;
  };
  for (const Axis& a : s.axes) out.spatial.push_back(step(a));
  for (const Axis& a : s.reduce) out.reduce.push_back(step(a));
  return out;
}

const Load* loadOf(const Expr& side) {
  const auto* c = as<Cast>(side);
  const Expr& value = c ? c->value : side;
  const auto* guarded = as<Select>(value);
  return as<Load>(guarded ? guarded->yes : value);
}

}  // namespace

std::vector<Access> accesses(const Stage& stage) {
  Ranges ranges = rangesOf(stage);
  std::vector<Access> out;
  for (const Expr& e : {stage.body, stage.epilogue}) {
    if (!e) continue;
    visit(e, [&](const Expr& x) {
      if (const auto* l = as<Load>(x)) out.push_back(accessOf(stage, *l->buffer, l->indices, ranges));
      return true;
    });
  }
  std::vector<Expr> own;
  for (const Axis& a : stage.axes) own.push_back(a.var);
  out.push_back(accessOf(stage, *stage.out, own, ranges));
  return out;
}

std::vector<Access> productOperands(const Stage& stage) {
  const auto* product = as<Binary>(stage.body);
  if (stage.combiner != Combiner::Sum || !product || product->op != BinaryOp::Mul) return {};
  const Load *a = loadOf(product->a), *b = loadOf(product->b);
  if (!a || !b) return {};
  Ranges ranges = rangesOf(stage);
  return {accessOf(stage, *a->buffer, a->indices, ranges), accessOf(stage, *b->buffer, b->indices, ranges)};
}

bool mergeable(const std::vector<Access>& all, size_t k, int64_t nextExtent, bool reduce) {
  for (const Access& a : all) {
    const auto& steps = reduce ? a.reduce : a.spatial;
    if (!steps[k] || !steps[k + 1] || *steps[k] != *steps[k + 1] * nextExtent) return false;
  }
  return true;
}

bool isUnitStride(const std::vector<Access>& all, size_t axis, bool reduce) {
  bool any = false;
  for (const Access& a : all) {
    auto step = reduce ? a.reduce[axis] : a.spatial[axis];
    if (!step || *step < 0 || *step > 1) return false;
    any |= *step == 1;
  }
  return any;
}

int64_t lanesFor(const Stage& stage, const TargetSpec& target, int64_t extent) {
  int bits = std::max(32, dtypeBits(stage.body->type.dtype));
  int64_t lanes = target.vectorBytes * 8 / bits;
  while (lanes > 1 && lanes / 2 >= extent) lanes /= 2;
  return lanes;
}

int64_t groupSize(const Stage& stage, size_t axis) {
  int64_t size = 0;
  const Var* var = stage.axes[axis].var.get();
  bool clean = true;
  visit(stage.body, [&](const Expr& e) {
    const auto* b = as<Binary>(e);
    int64_t n = 0;
    if (b && (b->op == BinaryOp::FloorDiv || b->op == BinaryOp::FloorMod) && b->a.get() == var &&
        isConstInt(b->b, &n)) {
      clean = clean && (size == 0 || size == n);
      size = n;
    }
    return true;
  });
  return clean && size > 1 && stage.axes[axis].extent % size == 0 ? size : 1;
}

}  // namespace locution::space
