// NumPy's array files, versions 1 to 3. Types that NumPy lacks are written as the next wider one that holds every value:
// bfloat16 and the 8 and 4 bit floats as float32, int4 and int2 as int8, uint4 and uint2 as uint8; strings as unicode (<U).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/tensor.h"
#include "support/status.h"

namespace locution::runtime {

/// Little- and big-endian, C and Fortran order, numbers, booleans, strings (U and S), and V2 as bfloat16 (what ml_dtypes saves).
/// A large array is a view of the mapped file. Errors name the path: not an .npy file, unknown type, cut off.
Result<Tensor> readNpy(const std::string& path);
/// The same from the bytes of a file.
Result<Tensor> parseNpy(std::shared_ptr<Storage> file);
/// Nothing is left behind when writing fails.
Status writeNpy(const std::string& path, const Tensor& tensor);

}  // namespace locution::runtime
