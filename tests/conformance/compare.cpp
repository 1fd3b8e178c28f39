#include "compare.h"

#include <cmath>
#include <string>

namespace locution::conformance {
namespace {

// Complex numbers as two reals an element.
struct Reals {
  const Tensor& tensor;
  int64_t parts() const { return dtypeClass(tensor.dtype()) == DTypeClass::Complex ? 2 : 1; }
  double at(int64_t i) const {
    if (tensor.dtype() == DType::C64) return static_cast<double>(tensor.data<float>()[i]);
    if (tensor.dtype() == DType::C128) return tensor.data<double>()[i];
    return tensor.elementAsDouble(i);
  }
};

Status compareTensors(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype())
    return Status::error("dtype " + std::string(dtypeName(got.dtype())) + " instead of " +
                         std::string(dtypeName(want.dtype())));
  if (got.dims() != want.dims())
    return Status::error("shape " + got.shape().str() + " instead of " + want.shape().str());
  if (got.dtype() == DType::String) {
    if (got.strings() != want.strings()) return Status::error("strings are off");
    return Status::ok();
  }
  Reals a{got}, b{want};
  int64_t off = 0, first = -1;
  for (int64_t i = 0; i < got.elements() * a.parts(); ++i) {
    if (isInteger(got.dtype()) && got.elementAsInt(i) == want.elementAsInt(i)) continue;
    double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (std::isfinite(x) && std::isfinite(y) && std::abs(x - y) <= atol + rtol * std::abs(y)) continue;
    if (off++ == 0) first = i;
  }
  if (off == 0) return Status::ok();
  return Status::error(std::to_string(off) + " of " + std::to_string(got.elements()) +
                       " elements are off, the first at " + std::to_string(first) + ": " + std::to_string(a.at(first)) +
                       " instead of " + std::to_string(b.at(first)));
}

}  // namespace

Status compareValues(const hostops::HostValue& got, const hostops::HostValue& want, double rtol, double atol) {
  if (got.form != want.form) return Status::error("another kind of value (tensor, sequence, empty optional)");
  if (got.isTensor()) return compareTensors(got.tensor, want.tensor, rtol, atol);
  if (got.sequence.size() != want.sequence.size())
    return Status::error("a sequence of " + std::to_string(got.sequence.size()) + " instead of " +
                         std::to_string(want.sequence.size()));
  for (size_t i = 0; i < got.sequence.size(); ++i)
    LOCUTION_RETURN_IF_ERROR(compareTensors(got.sequence[i], want.sequence[i], rtol, atol));
  return Status::ok();
}

}  // namespace locution::conformance
