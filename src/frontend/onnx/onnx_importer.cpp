#include "frontend/onnx/onnx_importer.h"

#include "frontend/onnx/model_importer.h"
#include "frontend/onnx/proto_io.h"

namespace locution::frontend {
namespace {

constexpr const char* kWhat = "an ONNX model";

Result<ImportedModel> importProto(onnx::ModelProto& model, const std::string& name, std::optional<std::string> folder,
                                  const ImportOptions& options) {
  auto imported = ModelImporter(options, std::move(folder)).run(model);
  if (!imported) return imported.status().withContext(name);
  return imported;
}

}  // namespace

Result<ImportedModel> importModel(const std::string& path, const ImportOptions& options) {
  onnx::ModelProto model;
  LOCUTION_RETURN_IF_ERROR(parseProtoFile(path, kWhat, model));
  return importProto(model, path, folderOf(path), options);
}

Result<ImportedModel> importModel(std::span<const std::byte> bytes, const std::string& name, const std::string& folder,
                                  const ImportOptions& options) {
  onnx::ModelProto model;
  if (Status s = parseProtoBytes(bytes, kWhat, model); !s) return s.withContext(name);
  return importProto(model, name, folder.empty() ? std::nullopt : std::optional<std::string>(folder), options);
}

}  // namespace locution::frontend
