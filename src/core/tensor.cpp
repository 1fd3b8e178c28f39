#include "core/tensor.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/saturate.h"
#include "support/hash.h"

namespace locution {
namespace {

int64_t productOf(const std::vector<int64_t>& dims) {
  int64_t out = 1;
  for (int64_t d : dims) {
    LOCUTION_CHECK(d >= 0) << "a tensor with an extent of " << d;
    if (d == 0) return 0;
  }
  for (int64_t d : dims) out = saturatingMul(out, d);
  return out;
}

int64_t clampToInt(double value, double low, double high, int64_t lowest, int64_t highest) {
  if (std::isnan(value)) return 0;
  // `high` may round up to the first value out of range, hence >=.
  return value <= low ? lowest : value >= high ? highest : static_cast<int64_t>(value);
}

int64_t signExtended(uint64_t bits, int width) {
  return width == 64 ? static_cast<int64_t>(bits) : static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

}  // namespace

Tensor::Tensor(DType dtype, std::vector<int64_t> dims) : valid_(true), dtype_(dtype), dims_(std::move(dims)) {
  int64_t count = productOf(dims_);
  if (dtype == DType::String)
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count));
  else
    storage_ = allocateStorage(static_cast<size_t>(dtypeBytes(dtype, count)));
}

Tensor::Tensor(DType dtype, std::vector<int64_t> dims, std::shared_ptr<Storage> storage, size_t offset)
    : valid_(true), dtype_(dtype), dims_(std::move(dims)), storage_(std::move(storage)), offset_(offset) {
  LOCUTION_CHECK(dtype != DType::String && storage_ != nullptr);
  LOCUTION_CHECK(offset_ <= storage_->size() && bytes() <= storage_->size() - offset_)
      << "a view of " << bytes() << " bytes at " << offset_ << " in a storage of " << storage_->size();
}

Tensor Tensor::ofStrings(std::vector<int64_t> dims, std::vector<std::string> values) {
  Tensor out;
  out.valid_ = true;
  out.dtype_ = DType::String;
  out.dims_ = std::move(dims);
  LOCUTION_CHECK(out.elements() == static_cast<int64_t>(values.size()));
  out.strings_ = std::make_shared<std::vector<std::string>>(std::move(values));
  return out;
}

int64_t Tensor::elements() const { return productOf(dims_); }

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  Tensor out = *this;
  out.dims_ = std::move(dims);
  LOCUTION_CHECK(out.elements() == elements()) << "reshape of " << shape().str() << " to " << out.shape().str();
  return out;
}

uint64_t Tensor::elementBits(int64_t i) const {
  int width = dtypeBits(dtype_);
  LOCUTION_CHECK(width > 0 && width <= 64 && i >= 0 && i < elements()) << "element " << i << " of " << shape().str();
  if (width < 8) {
    int64_t perByte = 8 / width;
    auto byte = static_cast<uint64_t>(raw()[i / perByte]);
    return byte >> (i % perByte * width) & ((1u << width) - 1);
  }
  uint64_t out = 0;
  std::memcpy(&out, raw() + i * (width / 8), static_cast<size_t>(width / 8));
  return out;
}

void Tensor::setElementBits(int64_t i, uint64_t bits) {
  int width = dtypeBits(dtype_);
  LOCUTION_CHECK(width > 0 && width <= 64 && i >= 0 && i < elements()) << "element " << i << " of " << shape().str();
  if (width < 8) {
    int64_t perByte = 8 / width;
    auto shift = static_cast<unsigned>(i % perByte * width);
    unsigned mask = ((1u << width) - 1) << shift;
    auto byte = static_cast<unsigned>(raw()[i / perByte]);
    raw()[i / perByte] = static_cast<std::byte>((byte & ~mask) | (static_cast<unsigned>(bits) << shift & mask));
    return;
  }
  std::memcpy(raw() + i * (width / 8), &bits, static_cast<size_t>(width / 8));
}

double Tensor::elementAsDouble(int64_t i) const {
  if (dtypeClass(dtype_) == DTypeClass::Complex) {
    LOCUTION_CHECK(i >= 0 && i < elements());
    return dtype_ == DType::C64 ? static_cast<double>(data<float>()[2 * i]) : data<double>()[2 * i];
  }
  uint64_t bits = elementBits(i);
  switch (dtypeClass(dtype_)) {
    case DTypeClass::Float:
      if (dtype_ == DType::F32) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      if (dtype_ == DType::F64) return std::bit_cast<double>(bits);
      return static_cast<double>(smallFloatToFloat(dtype_, static_cast<uint16_t>(bits)));
    case DTypeClass::Int:
      return static_cast<double>(signExtended(bits, dtypeBits(dtype_)));
    case DTypeClass::Bool:
      return bits != 0 ? 1 : 0;
    default:
      return static_cast<double>(bits);
  }
}

int64_t Tensor::elementAsInt(int64_t i) const {
  switch (dtypeClass(dtype_)) {
    case DTypeClass::Int:
      return signExtended(elementBits(i), dtypeBits(dtype_));
    case DTypeClass::UInt:
      return static_cast<int64_t>(elementBits(i));
    case DTypeClass::Bool:
      return elementBits(i) != 0 ? 1 : 0;
    default:
      return clampToInt(elementAsDouble(i), -0x1p63, 0x1p63, std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max());
  }
}

void Tensor::setElement(int64_t i, double value) {
  int width = dtypeBits(dtype_);
  switch (dtypeClass(dtype_)) {
    case DTypeClass::Float:
      if (dtype_ == DType::F64) return setElementBits(i, std::bit_cast<uint64_t>(value));
      if (dtype_ == DType::F32) return setElementBits(i, std::bit_cast<uint32_t>(static_cast<float>(value)));
      return setElementBits(i, floatToSmallFloat(dtype_, static_cast<float>(value), false));
    case DTypeClass::Int: {
      int64_t highest = static_cast<int64_t>((uint64_t{1} << (width - 1)) - 1);
      return setElementBits(i, static_cast<uint64_t>(clampToInt(value, -std::ldexp(1.0, width - 1),
                                                                std::ldexp(1.0, width - 1), -highest - 1, highest)));
    }
    case DTypeClass::UInt: {
      if (std::isnan(value) || value <= 0) return setElementBits(i, 0);
      return setElementBits(i, value >= std::ldexp(1.0, width) ? ~uint64_t{0} : static_cast<uint64_t>(value));
    }
    case DTypeClass::Bool:
      return setElementBits(i, value != 0 ? 1 : 0);
    case DTypeClass::Complex:
      LOCUTION_CHECK(i >= 0 && i < elements());
      if (dtype_ == DType::C64) {
        data<float>()[2 * i] = static_cast<float>(value);
        data<float>()[2 * i + 1] = 0;
      } else {
        data<double>()[2 * i] = value;
        data<double>()[2 * i + 1] = 0;
      }
      return;
    case DTypeClass::String:
      LOCUTION_CHECK(false) << "a number set in a tensor of strings";
  }
}

void Tensor::setElementInt(int64_t i, int64_t value) {
  if (isInteger(dtype_))
    setElementBits(i, static_cast<uint64_t>(value));
  else if (dtype_ == DType::Bool)
    setElementBits(i, value != 0 ? 1 : 0);
  else
    setElement(i, static_cast<double>(value));
}

std::vector<int64_t> Tensor::toInts() const {
  if (dtype_ == DType::I64) return std::vector<int64_t>(data<int64_t>(), data<int64_t>() + elements());
  LOCUTION_CHECK(isInteger(dtype_) || dtype_ == DType::Bool) << "integers from a tensor of " << dtypeName(dtype_);
  std::vector<int64_t> out(static_cast<size_t>(elements()));
  for (size_t i = 0; i < out.size(); ++i) out[i] = elementAsInt(static_cast<int64_t>(i));
  return out;
}

bool Tensor::identical(const Tensor& other) const {
  if (valid_ != other.valid_ || dtype_ != other.dtype_ || dims_ != other.dims_) return false;
  if (!valid_) return true;
  if (dtype_ == DType::String) return strings_ == other.strings_ || *strings_ == *other.strings_;
  return raw() == other.raw() || std::memcmp(raw(), other.raw(), bytes()) == 0;
}

uint64_t Tensor::hash() const {
  if (!valid_) return 0;
  uint64_t out = hashBytes(dims_.data(), dims_.size() * sizeof(int64_t), static_cast<uint64_t>(dtype_) + 1);
  if (dtype_ != DType::String) return hashBytes(raw(), bytes(), out);
  for (const std::string& text : *strings_) out = hashText(text, out);
  return out;
}

}  // namespace locution
