// External data: tensors whose bytes lie in a file beside the model. Mapped, never read whole.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "core/tensor.h"
#include "support/status.h"

namespace locution::frontend {

struct ExternalRange {
  std::string location;  ///< relative to the model's folder
  int64_t offset = 0;
  int64_t length = 0;
  /// "external data 'w.bin' (offset 0, length 400)"
  std::string str() const;
};

/// The path of `location` in `folder`. Error when it is absolute, has a "..", or leads out of the folder through a symlink.
Result<std::string> resolveInFolder(const std::string& folder, const std::string& location);
/// The bytes of the range. What is small, or not aligned to `alignment` bytes, is copied to the heap; the rest stays mapped.
Result<std::shared_ptr<Storage>> openExternal(const std::string& folder, const ExternalRange& range, size_t alignment);

}  // namespace locution::frontend
