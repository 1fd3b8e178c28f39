// The safetensors format (Hugging Face): a length, a JSON header of names, dtypes, dims and places, then the bytes. Files may come from
// anywhere: every number of the header is checked before it is used.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/tensor.h"
#include "support/status.h"

namespace locution::generator::tlm {

struct SafeTensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Tensors own their bytes. Errors say what about the file is wrong, without its name.
Result<SafeTensors> parseSafeTensors(std::span<const std::byte> bytes);
/// Errors name the file.
Result<SafeTensors> readSafeTensors(const std::string& path);

/// Equal content gives equal bytes. Every dtype must be one that the format has.
std::string safeTensorsBytes(const SafeTensors& content);
/// Under a temporary name first: never half a file.
Status writeSafeTensors(const SafeTensors& content, const std::string& path);

}  // namespace locution::generator::tlm
