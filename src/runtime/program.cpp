#include <string>

#include "runtime/code_memory.h"
#include "runtime/cpu_features.h"
#include "runtime/executable.h"
#include "runtime/format.h"
#include "runtime/validate.h"
#include "support/hash.h"
#include "support/strings.h"

namespace locution::runtime {
namespace {

Status checkCpu(const TargetSpec& target) {
  std::string architecture = target.triple.substr(0, target.triple.find('-'));
  if (architecture != hostArchitecture())
    return Status::error("was compiled for " + architecture + ", and this machine is " +
                         std::string(hostArchitecture()));
  std::vector<std::string> missing = missingFeatures(target.features);
  if (missing.empty()) return Status::ok();
  return Status::error("was compiled for " + target.cpu + " (needs " + join(missing, ", ") + "), which this CPU lacks");
}

// "net.loc was compiled for ...": the file is the subject of what is wrong with it.
Status about(const std::string& name, const Status& status) {
  return status.isOk() ? status : Status::error(name + " " + status.message());
}

}  // namespace

int64_t Executable::weightBytes() const {
  int64_t sum = 0;
  for (const Tensor& t : constants) sum += static_cast<int64_t>(t.dtype() == DType::String ? 0 : t.bytes());
  for (const Region& region : regions)
    if (region.code) sum += region.code->weightBytes();
  return sum;
}

Program::~Program() = default;

Result<std::shared_ptr<const Program>> Program::load(std::shared_ptr<const Executable> executable) {
  std::string name = executable->modelName.empty() ? "the model" : executable->modelName;
  LOCUTION_RETURN_IF_ERROR(about(name, checkCpu(executable->target)));
  LOCUTION_RETURN_IF_ERROR(validate(*executable).withContext(name + " can't be run"));
  std::shared_ptr<Program> program(new Program());
  LOCUTION_ASSIGN_OR_RETURN(program->code_, CodeMemory::create(executable->code));
  for (const KernelInfo& k : executable->kernels)
    program->kernels_.push_back(
        reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(program->code_->data() + k.codeOffset)));
  for (size_t i = 0; i < executable->instructions.size(); ++i) {
    const auto* call = std::get_if<RunHostOp>(&executable->instructions[i]);
    if (call == nullptr) continue;
    LOCUTION_ASSIGN_OR_RETURN(hostops::Attrs attrs, hostops::parseAttrs(call->attrs));
    program->hostCode_[i] = {hostops::findHostOp(call->op), std::move(attrs), hashText(call->nodeName)};
  }
  for (size_t i = 0; i < executable->instructions.size(); ++i) {
    const auto* call = std::get_if<RunRegion>(&executable->instructions[i]);
    if (call == nullptr) continue;
    LOCUTION_ASSIGN_OR_RETURN(hostops::Attrs attrs, hostops::parseAttrs(call->attrs));
    program->hostCode_[i] = {nullptr, std::move(attrs), 0};
  }
  for (const Region& region : executable->regions) {
    program->regions_.emplace_back();
    if (!region.code) continue;
    LOCUTION_ASSIGN_OR_RETURN(program->regions_.back(), load(region.code));
  }
  program->executable_ = std::move(executable);
  return std::shared_ptr<const Program>(std::move(program));
}

Result<std::shared_ptr<const Program>> Program::loadBytes(std::shared_ptr<Storage> bytes, const std::string& name) {
  auto read = readExecutable(std::move(bytes));
  if (!read.isOk()) return about(name, read.status());
  const std::shared_ptr<const Executable>& executable = *read;
  LOCUTION_RETURN_IF_ERROR(about(name, checkCpu(executable->target)));
  Status valid = validate(*executable);
  if (!valid.isOk()) return about(name, Status::error("is damaged: " + valid.message()));
  return load(executable);
}

Result<std::shared_ptr<const Program>> Program::loadFile(const std::string& path) {
  LOCUTION_ASSIGN_OR_RETURN(std::shared_ptr<Storage> bytes, mapExecutable(path));
  return loadBytes(std::move(bytes), path);
}

}  // namespace locution::runtime
