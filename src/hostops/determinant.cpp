// Det: by LU decomposition with partial pivoting, in double.
#include <cmath>

#include "hostops/helpers.h"
#include "hostops/ops.h"

namespace locution::hostops {
namespace {

double determinantOf(std::vector<double>& a, size_t n) {
  double out = 1;
  for (size_t col = 0; col < n; ++col) {
    size_t pivot = col;
    for (size_t row = col + 1; row < n; ++row)
      if (std::abs(a[row * n + col]) > std::abs(a[pivot * n + col])) pivot = row;
    if (a[pivot * n + col] == 0) return 0;
    if (pivot != col) {
      for (size_t k = 0; k < n; ++k) std::swap(a[pivot * n + k], a[col * n + k]);
      out = -out;
    }
    out *= a[col * n + col];
    for (size_t row = col + 1; row < n; ++row) {
      double factor = a[row * n + col] / a[col * n + col];
      for (size_t k = col + 1; k < n; ++k) a[row * n + k] -= factor * a[col * n + k];
    }
  }
  return out;
}

}  // namespace

Status determinant(const HostCall& call, std::vector<HostValue>& outputs) {
  const Tensor& x = call.tensor(0);
  size_t rank = x.dims().size();
  if (!isFloat(x.dtype()))
    return Status::error("the input must be of a float type, but is " + std::string(dtypeName(x.dtype())));
  if (rank < 2 || x.dims()[rank - 1] != x.dims()[rank - 2])
    return Status::error("the input must be square matrices, but is " + dimsText(x.dims()));
  auto n = static_cast<size_t>(x.dims()[rank - 1]);
  Tensor y(x.dtype(), std::vector<int64_t>(x.dims().begin(), x.dims().end() - 2));
  std::vector<double> matrix(n * n);
  for (int64_t b = 0; b < y.elements(); ++b) {
    for (size_t i = 0; i < n * n; ++i)
      matrix[i] = x.elementAsDouble(b * static_cast<int64_t>(n * n) + static_cast<int64_t>(i));
    y.setElement(b, determinantOf(matrix, n));
  }
  outputs[0] = std::move(y);
  return Status::ok();
}

}  // namespace locution::hostops
