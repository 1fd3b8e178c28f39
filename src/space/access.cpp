#include "space/access.h"

#include <algorithm>

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

Access accessOf(const Stage& s, const Buffer& buffer, const std::vector<Expr>& indices, const Ranges& ranges) {
  Access out;
  out.buffer = &buffer;
  std::vector<int64_t> dims = extents(buffer);
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
