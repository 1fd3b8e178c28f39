#include "ops/index_checks.h"

#include "ops/helpers.h"

namespace locution::ops {

using loop::Expr;

namespace {

/// Constants beyond this are not scanned for negative numbers again by every kernel that reads them.
constexpr int64_t kScan = 1 << 16;

bool hasNegative(const ComputeContext& c, size_t i) {
  const Tensor* t = c.constant(i);
  if (!t || t->elements() > kScan) return !isUnsignedInt(c.input(i).dtype);
  for (int64_t k = 0; k < t->elements(); ++k)
    if (t->elementAsInt(k) < 0) return true;
  return false;
}

}  // namespace

void checkIndexInput(ComputeContext& c, size_t i, int64_t extent) { c.checkIndices(i, -extent, extent - 1); }

Expr dataIndex(ComputeContext& c, size_t i, std::vector<Expr> at, int64_t extent) {
  Expr value = c.at(i, std::move(at));
  return hasNegative(c, i) ? wrapNegative(value, extent) : loop::cast(DType::I64, value);
}

Status checkIndexTuples(ComputeContext& c, size_t i, const std::vector<int64_t>& extents) {
  const Tensor* t = c.constant(i);
  for (int64_t k = 0; t && k < t->elements(); ++k) {
    size_t component = static_cast<size_t>(k) % extents.size();
    int64_t v = t->elementAsInt(k), n = extents[component];
    if (v < -n || v >= n)
      return Status::error("input " + std::to_string(i) + ": index " + std::to_string(v) + " (component " +
                           std::to_string(component) + ") is outside [" + std::to_string(-n) + ", " +
                           std::to_string(n - 1) + "]");
  }
  for (size_t k = 0; !t && k < extents.size(); ++k) checkIndexInput(c, i, extents[k]);
  return Status::ok();
}

std::vector<Expr> tupleIndices(ComputeContext& c, size_t i, const std::vector<Expr>& tuple,
                               const std::vector<int64_t>& extents) {
  std::vector<Expr> out;
  for (size_t k = 0; k < extents.size(); ++k) {
    std::vector<Expr> at = tuple;
    at.push_back(loop::index(static_cast<int64_t>(k)));
    out.push_back(dataIndex(c, i, std::move(at), extents[k]));
  }
  return out;
}

}  // namespace locution::ops
