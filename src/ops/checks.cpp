// Checks and attribute readers that infer functions share; every message says what was expected and what came.
#include <algorithm>

#include "ops/helpers.h"
#include "support/strings.h"

namespace locution::ops {

Result<std::vector<int64_t>> constantInts(const ComputeContext& c, size_t i, std::string_view what) {
  const Tensor* t = c.hasInput(i) ? c.constant(i) : nullptr;
  if (!t)
    return Status::error("input " + std::to_string(i) + " (" + std::string(what) + ") must be known at compile time");
  if (!isIntOrBool(t->dtype()))
    return Status::error("input " + std::to_string(i) + " (" + std::string(what) + "): expected integers, got " +
                         std::string(dtypeName(t->dtype())));
  return t->toInts();
}

std::optional<std::vector<int64_t>> knownInts(const InferContext& c, size_t i) {
  if (!c.hasInput(i)) return std::nullopt;
  if (const Tensor* t = c.constant(i)) {
    if (!isIntOrBool(t->dtype())) return std::nullopt;
    return t->toInts();
  }
  std::optional<std::vector<Dim>> dims = c.inputDims(i);
  if (!dims) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& d : *dims) {
    if (!d.isKnown()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

std::optional<DType> dtypeOfOnnx(int64_t number) {
  // TensorProto.DataType, whose numbers are fixed.
  switch (number) {
    case 1:
      return DType::F32;
    case 2:
      return DType::U8;
    case 3:
      return DType::I8;
    case 4:
      return DType::U16;
    case 5:
      return DType::I16;
    case 6:
      return DType::I32;
    case 7:
      return DType::I64;
    case 8:
      return DType::String;
    case 9:
      return DType::Bool;
    case 10:
      return DType::F16;
    case 11:
      return DType::F64;
    case 12:
      return DType::U32;
    case 13:
      return DType::U64;
    case 14:
      return DType::C64;
    case 15:
      return DType::C128;
    case 16:
      return DType::BF16;
    case 17:
      return DType::F8E4M3FN;
    case 18:
      return DType::F8E4M3FNUZ;
    case 19:
      return DType::F8E5M2;
    case 20:
      return DType::F8E5M2FNUZ;
    case 21:
      return DType::U4;
    case 22:
      return DType::I4;
    case 23:
      return DType::F4E2M1;
    case 24:
      return DType::F8E8M0;
    case 25:
      return DType::U2;
    case 26:
      return DType::I2;
    default:
      return std::nullopt;
  }
}

Result<std::optional<DType>> dtypeAttr(const graph::Node& node, std::string_view key) {
  auto it = node.attrs.find(key);
  if (it == node.attrs.end()) return std::optional<DType>();
  if (const auto* name = std::get_if<std::string>(&it->second)) {
    std::optional<DType> type = parseDType(*name);
    if (!type) return Status::error("attribute '" + std::string(key) + "': no element type is called " + quoted(*name));
    return type;
  }
  const auto* number = std::get_if<int64_t>(&it->second);
  if (!number) return Status::error("attribute '" + std::string(key) + "': expected an element type");
  if (*number == 0) return std::optional<DType>();
  std::optional<DType> type = dtypeOfOnnx(*number);
  if (!type)
    return Status::error("attribute '" + std::string(key) + "': no element type has the number " +
                         std::to_string(*number));
  return type;
}

Status needInputs(const InferContext& c, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!c.hasInput(i))
      return Status::error("input " + std::to_string(i) + " is missing (at least " + std::to_string(n) + " expected)");
  return Status::ok();
}

Status needSameDtype(const InferContext& c, const std::vector<size_t>& which) {
  std::optional<size_t> first;
  for (size_t i : which) {
    if (!c.hasInput(i)) continue;
    if (!first) first = i;
    if (c.input(i).dtype != c.input(*first).dtype)
      return Status::error("inputs " + std::to_string(*first) + " and " + std::to_string(i) +
                           " differ in type: " + std::string(dtypeName(c.input(*first).dtype)) + " and " +
                           std::string(dtypeName(c.input(i).dtype)));
  }
  return Status::ok();
}

Status needDtype(const InferContext& c, size_t i, bool (*accepts)(DType), std::string_view expected) {
  if (!c.hasInput(i) || accepts(c.input(i).dtype)) return Status::ok();
  return Status::error("input " + std::to_string(i) + ": expected " + std::string(expected) + ", got " +
                       std::string(dtypeName(c.input(i).dtype)));
}

Status needRank(const InferContext& c, size_t i, int64_t rank) {
  if (!c.hasInput(i) || !c.input(i).shape.isRanked() || c.input(i).shape.rank() == rank) return Status::ok();
  return Status::error("input " + std::to_string(i) + ": expected " + std::to_string(rank) + " dimensions, got shape " +
                       c.input(i).shape.str());
}

Status needSameDim(const Dim& a, const Dim& b, const std::string& what) {
  if (!a.isKnown() || !b.isKnown() || a.value() == b.value()) return Status::ok();
  return Status::error(what + ": " + a.str() + " and " + b.str() + " differ");
}

Status needBroadcastTo(const Shape& from, const Shape& to, const std::string& what) {
  if (!from.isRanked() || !to.isRanked()) return Status::ok();
  bool fits = from.rank() <= to.rank();
  for (int64_t i = 1; fits && i <= from.rank(); ++i) {
    const Dim &have = from[from.rank() - i], &want = to[to.rank() - i];
    fits = !have.isKnown() || !want.isKnown() || have == Dim(1) || have == want;
  }
  return fits ? Status::ok() : Status::error(what + " of shape " + from.str() + " can't be broadcast to " + to.str());
}

Status needOneOf(std::string_view attribute, std::string_view got, const std::vector<std::string_view>& names) {
  if (std::find(names.begin(), names.end(), got) != names.end()) return Status::ok();
  return Status::error("attribute '" + std::string(attribute) + "': expected one of " + join(names, ", ") + ", got " +
                       quoted(got));
}

}  // namespace locution::ops
