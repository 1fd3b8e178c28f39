#include "tune/candidate.h"

#include <time.h>

#include <algorithm>

#include "loop/passes.h"
#include "loop/strided_copy.h"
#include "loop/traffic.h"
#include "runtime/sharing.h"
#include "schedule/apply.h"
#include "schedule/winograd.h"
#include "support/hash.h"

namespace locution::tune {
namespace {

size_t positionOf(const std::vector<loop::BufferRef>& list, const loop::BufferRef& b) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), b) - list.begin());
}

double bytesOf(const loop::Buffer& b) {
  double elements = 1;
  for (int64_t d : loop::extents(b)) elements *= static_cast<double>(d);
  return elements * dtypeBits(b.element.dtype) / 8;
}

// Of this thread alone: others at work on the machine don't count.
double threadMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

constexpr size_t kPacked = SIZE_MAX;  // not numbered yet

class Maker {
 public:
  Maker(const loop::Computation& kernel, const codegen::KernelCompiler& compiler, const generator::Scheduler& packer,
        PackingCode* packingCode)
      : kernel_(kernel), compiler_(compiler), packer_(packer), packingCode_(packingCode) {}

  Status run(const schedule::Plan& plan, Candidate* out) {
    LOCUTION_ASSIGN_OR_RETURN(schedule::Lowered lowered, applied(kernel_, plan));
    const size_t params = kernel_.inputs.size() + kernel_.outputs.size();
    for (size_t k = 0; k < lowered.packs.size(); ++k) {
      schedule::PackedOperand& p = lowered.packs[k];
      Packing pack;
      pack.source = positionOf(kernel_.inputs, p.source);
      pack.isConstant = positionOf(kernel_.constants, p.source) < kernel_.constants.size();
      pack.key = hashBytes(&pack.source, sizeof pack.source, loop::hash(p.computation));
      if (!pack.isConstant || !loop::asStridedCopy(p.computation)) {
        if (!packingCode_->find(pack.key, &pack.code)) {
          LOCUTION_ASSIGN_OR_RETURN(loop::Function copy, packingLoops(p.computation));
          LOCUTION_RETURN_IF_ERROR(compile(copy, p.computation, &pack.code));
          for (const loop::BufferRef& b : copy.params)
            pack.code.buffers.push_back(b == p.computation.outputs[0] ? kPacked : pack.source);
          packingCode_->add(pack.key, pack.code);
        }
        std::replace(pack.code.buffers.begin(), pack.code.buffers.end(), kPacked, params + k);
      }
      pack.computation = std::move(p.computation);
      out->packs.push_back(std::move(pack));
    }
    LOCUTION_RETURN_IF_ERROR(compile(lowered.function, kernel_, &out->kernel));
    for (const loop::BufferRef& b : lowered.function.params) {
      size_t at = positionOf(kernel_.inputs, b);
      if (at == kernel_.inputs.size()) at += positionOf(kernel_.outputs, b);
      if (at == params)
        while (lowered.packs[at - params].packed != b) ++at;
      out->kernel.buffers.push_back(at);
    }
    out->isWinograd = schedule::isWinograd(plan);
    out->codeHash = hashBytes(out->kernel.bytes.data(), out->kernel.bytes.size());
    for (const Packing& p : out->packs)
      if (!p.isConstant) out->codeHash = hashBytes(p.code.bytes.data(), p.code.bytes.size(), out->codeHash);
    return Status::ok();
  }

 private:
  static Result<schedule::Lowered> applied(const loop::Computation& c, const schedule::Plan& plan) {
    auto lowered = schedule::apply(c, plan);
    if (const auto* e = std::get_if<schedule::ApplyError>(&lowered))
      return Status::error(std::string(schedule::reasonText(e->reason)) +
                           (e->step < 0 ? "" : " (step " + std::to_string(e->step) + ")"));
    auto& made = std::get<schedule::Lowered>(lowered);
    LOCUTION_RETURN_IF_ERROR(loop::verify(made.function));
    return std::move(made);
  }

  Result<loop::Function> packingLoops(const loop::Computation& c) const {
    if (c.raw) return schedule::rawFunction(c);
    LOCUTION_ASSIGN_OR_RETURN(schedule::Lowered copy, applied(c, packer_.propose(c, compiler_.target())));
    LOCUTION_CHECK(copy.packs.empty()) << c.name;
    return std::move(copy.function);
  }

  Status compile(const loop::Function& f, const loop::Computation& meaning, Code* out) const {
    LOCUTION_ASSIGN_OR_RETURN(codegen::KernelCode code, compiler_.compile(f));
    out->bytes = std::move(code.bytes);
    out->extent = f.parallelExtent;
    double bytes = 0;
    for (const loop::BufferRef& b : f.params) {
      const size_t at = positionOf(meaning.inputs, b);
      double share = 1;
      if (at < meaning.inputs.size())
        if (double whole = bytesOf(*b) * 8 / dtypeBits(b->element.dtype); whole > 0)
          share = loop::countReads(meaning, *b) / whole;
      bytes += bytesOf(*b) * share;
    }
    out->shared = runtime::isWorthSharing(out->extent, loop::countFlops(meaning), bytes);
    return Status::ok();
  }

  const loop::Computation& kernel_;
  const codegen::KernelCompiler& compiler_;
  const generator::Scheduler& packer_;
  PackingCode* packingCode_;
};

}  // namespace

bool PackingCode::find(uint64_t key, Code* code) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto it = known_.find(key);
  if (it != known_.end()) *code = it->second;
  return it != known_.end();
}

void PackingCode::add(uint64_t key, const Code& code) {
  std::lock_guard<std::mutex> lock(mutex_);
  known_.emplace(key, code);
}

Candidate compileCandidate(const loop::Computation& kernel, const schedule::Plan& plan,
                           const codegen::KernelCompiler& compiler, const generator::Scheduler& packer,
                           PackingCode* packingCode) {
  const double start = threadMs();
  Candidate out;
  Status s = Maker(kernel, compiler, packer, packingCode).run(plan, &out);
  if (!s.isOk()) out.illegal = s.message();
  out.compileMs = threadMs() - start;
  return out;
}

}  // namespace locution::tune
