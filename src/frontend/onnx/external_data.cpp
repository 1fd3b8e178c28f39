#include "frontend/onnx/external_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "frontend/onnx/messages.h"

namespace locution::frontend {
namespace {

namespace fs = std::filesystem;

// Mappings are a limited resource (65,530 a process) and cost a page each.
constexpr int64_t kMapFrom = 1 << 16;

}  // namespace

std::string ExternalRange::str() const {
  return "external data " + named(location) + " (offset " + std::to_string(offset) + ", length " +
         std::to_string(length) + ")";
}

Result<std::string> resolveInFolder(const std::string& folder, const std::string& location) {
  if (location.empty()) return Status::error("no location is given");
  if (location.find('\0') != std::string::npos) return Status::error("the location isn't a path");
  fs::path relative(location);
  if (relative.is_absolute()) return Status::error("the location must be relative to the model's folder");
  if (std::find(relative.begin(), relative.end(), "..") != relative.end())
    return Status::error("the location may not leave the model's folder");
  std::error_code error;
  fs::path base = fs::canonical(folder, error);
  if (error) return Status::error("no folder '" + folder + "'");
  fs::path file = fs::canonical(base / relative, error);
  if (error == std::errc::no_such_file_or_directory) return Status::error("there is no such file");
  if (error) return Status::error("can't open it: " + error.message());
  if (std::mismatch(base.begin(), base.end(), file.begin(), file.end()).first != base.end())
    return Status::error("the location leads out of the model's folder through a symbolic link");
  return file.string();
}

Result<std::shared_ptr<Storage>> openExternal(const std::string& folder, const ExternalRange& range, size_t alignment) {
  auto path = resolveInFolder(folder, range.location);
  if (!path) return path.status().withContext(range.str());
  auto mapped = mapFile(*path, static_cast<size_t>(range.offset), static_cast<size_t>(range.length));
  if (!mapped) return mapped.status().withContext(range.str());
  bool aligned = reinterpret_cast<uintptr_t>((*mapped)->data()) % alignment == 0;
  if (aligned && range.length >= kMapFrom) return mapped;
  auto copy = allocateStorage(static_cast<size_t>(range.length));
  if (range.length > 0) std::memcpy(copy->data(), (*mapped)->data(), static_cast<size_t>(range.length));
  return copy;
}

}  // namespace locution::frontend
