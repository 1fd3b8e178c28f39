// LLVM IR to machine code. The middle end is short on purpose: the loops are already in their final shape, so what is left is
// promotion of register buffers, common subexpressions and hoisting of address arithmetic.
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils.h>

#include <map>
#include <memory>

#include "codegen/expand_math.h"
#include "targets/cpu/blob.h"
#include "targets/cpu/cpu_target.h"
#include "targets/cpu/emitter.h"
#include "targets/cpu/llvm_target.h"
#include "targets/cpu/opaque_bases.h"

namespace locution::targets::cpu {
namespace {

enum class Form : uint8_t { Object, Assembly, Ir };

// Construction takes a fraction of a millisecond, but kernels come by the hundred. One a thread: TargetMachine isn't shared.
Result<llvm::TargetMachine*> machineFor(const TargetSpec& spec) {
  thread_local std::map<std::string, std::unique_ptr<llvm::TargetMachine>> machines;
  std::string key = spec.triple + "|" + spec.cpu + "|" + spec.features;
  auto it = machines.find(key);
  if (it != machines.end()) return it->second.get();
  LOCUTION_ASSIGN_OR_RETURN(auto machine, makeTargetMachine(spec));
  return machines.emplace(key, std::move(machine)).first->second.get();
}

class LlvmCompiler : public codegen::KernelCompiler {
 public:
  explicit LlvmCompiler(TargetSpec target) : target_(std::move(target)) {}

  Result<codegen::KernelCode> compile(const loop::Function& f) const override {
    LOCUTION_ASSIGN_OR_RETURN(auto object, run(f, Form::Object));
    auto bytes = std::as_bytes(std::span(object.data(), object.size()));
    auto blob = linkBlob(bytes, kKernelSymbol);
    if (!blob) return blob.status().withContext("kernel " + f.name);
    return codegen::KernelCode{std::move(blob).value()};
  }

  Result<std::string> show(const loop::Function& f, const std::string& stage) const override {
    if (stage != "llvm" && stage != "asm")
      return Status::error("no stage " + stage + " of code generation; there are llvm and asm");
    LOCUTION_ASSIGN_OR_RETURN(auto text, run(f, stage == "asm" ? Form::Assembly : Form::Ir));
    return std::string(text.data(), text.size());
  }

  const TargetSpec& target() const override { return target_; }

 private:
  Result<llvm::SmallVector<char, 0>> run(const loop::Function& f, Form form) const {
    LOCUTION_ASSIGN_OR_RETURN(auto* machine, machineFor(target_));
    llvm::LLVMContext context;
    llvm::Module module(f.name, context);
    module.setDataLayout(machine->createDataLayout());
    module.setTargetTriple(machine->getTargetTriple());
    LOCUTION_RETURN_IF_ERROR(Emitter(codegen::expandMath(f), target_, module).emit());
    holdConstants(*module.getFunction(kKernelSymbol), target_);
    LOCUTION_RETURN_IF_ERROR(verified(module, f.name));

    llvm::SmallVector<char, 0> out;
    llvm::raw_svector_ostream stream(out);
    llvm::legacy::PassManager passes;
    // Without it passes assume a machine that has no masked loads and one addressing mode.
    passes.add(llvm::createTargetTransformInfoWrapperPass(machine->getTargetIRAnalysis()));
    passes.add(llvm::createPromoteMemoryToRegisterPass());
    passes.add(llvm::createEarlyCSEPass());
    passes.add(llvm::createLICMPass());
    passes.add(createOpaqueBasesPass());
    if (form == Form::Ir) {
      passes.run(module);
      module.print(stream, nullptr);
      return out;
    }
    auto type = form == Form::Object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
    if (machine->addPassesToEmitFile(passes, stream, nullptr, type))
      return Status::error("this target can't write " + f.name);
    passes.run(module);
    return out;
  }

  static Status verified(llvm::Module& module, const std::string& name) {
    std::string message;
    llvm::raw_string_ostream stream(message);
    if (!llvm::verifyModule(module, &stream)) return Status::ok();
    LOCUTION_CHECK(false) << "kernel " << name << ": " << message;
    return Status::ok();
  }

  TargetSpec target_;
};

}  // namespace

std::unique_ptr<codegen::KernelCompiler> makeKernelCompiler(const TargetSpec& target) {
  return std::make_unique<LlvmCompiler>(target);
}

}  // namespace locution::targets::cpu
