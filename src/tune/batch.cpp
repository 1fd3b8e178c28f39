#include "tune/batch.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <thread>

#include "loop/build.h"
#include "runtime/code_memory.h"
#include "runtime/kernel_abi.h"
#include "runtime/thread_pool.h"
#include "tune/caches.h"

namespace locution::tune {
namespace {

constexpr size_t kGroup = 6;       // candidates between two runs of the incumbent
constexpr double kHopeless = 1.5;  // times what is slow
constexpr int kChances = 2;
constexpr double kSoon = 100e-6;                                        // seconds: interruptions are as long
constexpr int64_t kSteps = 16;                                          // of a run that may be stopped
constexpr int kRetries = 3;                                             // of a sample that lost the processor
constexpr size_t kHugeConstant = 2u << 20, kHugeActivation = 8u << 20;  // as the runtime places them

// Who gets more samples: those within that share of the best, so that they have taken `share` of MeasureOptions::secondsEach together.
struct Round {
  double within, share;
  int least;
};
constexpr Round kRounds[] = {{INFINITY, 0.25, 2}, {1.15, 0.5, 3}, {1.05, 1, 6}};

// Code in place, with the buffers it is called on.
struct Loaded {
  std::shared_ptr<runtime::CodeMemory> memory;
  runtime::KernelFunction entry = nullptr;
  int64_t extent = 1;
  bool shared = false;
  std::vector<void*> buffers;
};

struct Entrant {
  Candidate candidate;
  std::vector<Region> activations;  ///< packed with each run
  std::vector<Loaded> parts;        ///< packing of activations, then the kernel
  std::vector<std::pair<const std::byte*, size_t>> cold, warm;
  double cost = 0;  ///< wall time of a sample with what comes before it
  double best = INFINITY;
  int wanted = 0;
};

struct Piece {
  const Loaded* code;
  runtime::KernelArgs args;
  int64_t first = 0;
  std::atomic<int> failure = 0;
};
void runPiece(void* state, int64_t begin, int64_t end) {
  auto* piece = static_cast<Piece*>(state);
  if (int code = piece->code->entry(&piece->args, piece->first + begin, piece->first + end); code != 0)
    piece->failure.store(code);
}

int64_t switchesOf(int who) {
  rusage u{};
  getrusage(who, &u);
  return u.ru_nivcsw;
}

int64_t threadNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

size_t bytesOf(const loop::Buffer& b) {
  int64_t n = 1;
  for (int64_t d : loop::extents(b)) n *= d;
  return static_cast<size_t>(dtypeBytes(b.element.dtype, n));
}

class Batch {
 public:
  Batch(const Subject& subject, SharedBlock* block)
      : s_(subject), block_(block), threads_(subject.options.threads), entrants_(block->slots() + 1) {}

  void run(const std::vector<schedule::Plan>& plans, Task task, int jobs) {
    pool_ = runtime::ThreadPool::create(threads_);
    for (const loop::BufferRef& b : s_.kernel.outputs) {
      outputs_.emplace_back(bytesOf(*b), Region::Sharing::Own, bytesOf(*b) >= kHugeActivation);
      outputTensors_.push_back(viewOf(outputs_.back(), *b));
    }
    if (s_.incumbent) {
      entrants_.back() = std::make_unique<Entrant>();
      entrants_.back()->candidate = *s_.incumbent;
      prepare(*entrants_.back());
    }
    if (task == Task::CheckIncumbent) {
      if (check(entrants_.size() - 1)) finishIncumbent();
      return;
    }
    for (size_t i = 0; i < plans.size(); ++i)
      if (block_->slot(i).done.load() == 0) todo_.push_back(i);
    std::vector<std::thread> makers;
    for (int t = 1; t < std::min<int>(jobs, static_cast<int>(todo_.size())); ++t)
      makers.emplace_back([this, &plans, t] { makeAll(plans, t); });
    makeAll(plans, 0);
    for (std::thread& t : makers) t.join();
    if (task == Task::Measure)
      timeAll();
    else
      checkAll();
  }

 private:
  bool isOpen(size_t i) const { return entrants_[i] != nullptr; }

  /// Compiles and packs constants of what no other thread has begun with.
  void makeAll(const std::vector<schedule::Plan>& plans, int lane) {
    for (size_t k = next_++; k < todo_.size(); k = next_++) {
      const size_t i = todo_[k];
      block_->lane(lane).begin(Lane::Compiling, static_cast<int32_t>(i));
      auto made = std::make_unique<Entrant>();
      made->candidate = compileCandidate(s_.kernel, plans[i], *s_.compiler, *s_.packer, s_.packingCode.get());
      const bool isLegal = made->candidate.illegal.empty();
      if (isLegal) prepare(*made);
      block_->lane(lane).end();
      Slot& slot = block_->slot(i);
      slot.codeHash = made->candidate.codeHash;
      slot.compileMs = made->candidate.compileMs;
      if (isLegal)
        entrants_[i] = std::move(made);
      else
        slot.fail(Outcome::Illegal, made->candidate.illegal);
    }
  }

  void checkAll() {
    for (size_t i = 0; i + 1 < entrants_.size(); ++i) {
      if (!isOpen(i)) continue;
      if (check(i)) block_->slot(i).done.store(1, std::memory_order_release);
      entrants_[i].reset();
    }
  }

  Loaded load(const Code& code, const std::vector<std::byte*>& numbered) const {
    Loaded out;
    auto memory = runtime::CodeMemory::create(code.bytes);
    LOCUTION_CHECK(memory.isOk()) << memory.status().message();
    out.memory = *memory;
    out.entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>(out.memory->data()));
    out.extent = code.extent;
    out.shared = code.shared && threads_ > 1;
    for (size_t b : code.buffers) out.buffers.push_back(numbered[b]);
    return out;
  }

  // Its code in memory and its constants packed; equal ones are packed once.
  void prepare(Entrant& e) {
    const size_t params = s_.inputs.size() + outputs_.size();
    std::vector<std::byte*> numbered;
    std::vector<const Region*> constants;
    for (const Region& r : s_.inputs) numbered.push_back(r.data());
    for (const Region& r : outputs_) numbered.push_back(r.data());
    e.activations.reserve(e.candidate.packs.size());
    for (const Packing& p : e.candidate.packs) {
      const size_t bytes = bytesOf(*p.computation.outputs[0]);
      if (!p.isConstant) e.activations.emplace_back(bytes, Region::Sharing::Own, bytes >= kHugeActivation);
      constants.push_back(p.isConstant ? &packedConstant(p, bytes) : nullptr);
      numbered.push_back((p.isConstant ? *constants.back() : e.activations.back()).data());
    }
    auto note = [&](size_t b) {
      if (b >= params) {
        if (const Region* r = constants[b - params]) e.cold.emplace_back(r->data(), r->size());
      } else if (b < s_.inputs.size()) {
        const auto& known = s_.kernel.constants;
        const bool isConstant = std::find(known.begin(), known.end(), s_.kernel.inputs[b]) != known.end();
        (isConstant ? e.cold : e.warm).emplace_back(s_.inputs[b].data(), s_.inputs[b].size());
      }
    };
    for (const Packing& p : e.candidate.packs) {
      if (p.isConstant) continue;
      e.parts.push_back(load(p.code, numbered));
      note(p.source);
    }
    e.parts.push_back(load(e.candidate.kernel, numbered));
    for (size_t b : e.candidate.kernel.buffers) note(b);
  }

  struct Packed {
    std::once_flag once;
    Region region;
  };
  const Region& packedConstant(const Packing& p, size_t bytes) {
    auto known = s_.packed.find(p.key);
    if (known != s_.packed.end()) return known->second;
    Packed* packed = nullptr;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      packed = &packed_[p.key];
    }
    std::call_once(packed->once, [&] {
      packed->region = Region(bytes, Region::Sharing::Own, bytes >= kHugeConstant);
      packConstant(p, s_, packed->region);
      packed->region.protect();
    });
    return packed->region;
  }

  bool runPart(const Loaded& part, int64_t begin, int64_t end) {
    Piece piece{&part, {part.buffers.data(), &runtime::mathTable()}};
    runPiece(&piece, begin, end);
    return piece.failure == 0;
  }
  bool runShared(const Loaded& part, int64_t begin, int64_t end) {
    if (!part.shared) return runPart(part, begin, end);
    Piece piece{&part, {part.buffers.data(), &runtime::mathTable()}, begin};
    pool_->parallelFor(end - begin, runPiece, &piece);
    return piece.failure == 0;
  }
  /// One run, at most about `seconds` of it: past that the rest of the kernel's iterations is left out. Returns the share that was run.
  double runOnce(const Entrant& e, double seconds) {
    const int64_t from = nowNs();
    fine_ = true;
    for (size_t k = 0; k + 1 < e.parts.size() && fine_; ++k) fine_ = runShared(e.parts[k], 0, e.parts[k].extent);
    const Loaded& kernel = e.parts.back();
    const int64_t step = std::isfinite(seconds) ? std::max<int64_t>(kernel.extent / kSteps, threads_) : kernel.extent;
    int64_t done = 0;
    while (fine_ && done < kernel.extent) {
      if (done > 0 && static_cast<double>(nowNs() - from) * 1e-9 > seconds) break;
      const int64_t end = std::min(done + step, kernel.extent);
      fine_ = runShared(kernel, done, end);
      done = end;
    }
    return fine_ ? static_cast<double>(done) / static_cast<double>(kernel.extent) : 1;
  }

  void poison(const Entrant& e) {
    for (const Region& r : outputs_) std::memset(r.data(), Oracle::kPoison, r.size());
    for (const Region& r : e.activations) std::memset(r.data(), Oracle::kPoison, r.size());
  }

  // Runs on poisoned outputs; the second half of the iterations first, which a kernel must not mind.
  bool check(size_t i) {
    Entrant& e = *entrants_[i];
    poison(e);
    block_->lane(0).begin(Lane::Running, static_cast<int32_t>(i));
    bool fine = true;
    for (const Loaded& part : e.parts) {
      const int64_t half = part.extent - part.extent / 2;
      if (half < part.extent) fine = fine && runPart(part, half, part.extent);
      fine = fine && runPart(part, 0, half);
    }
    if (threads_ > 1 && fine) {
      runOnce(e, INFINITY);
      fine = fine_;
    }
    block_->lane(0).end();
    return judge(i, fine);
  }

  // Whether the outputs are right; else the candidate has its outcome.
  bool judge(size_t i, bool fine, bool isPartial = false) {
    const Entrant& e = *entrants_[i];
    std::string problem = fine ? "" : "the kernel reports a failure";
    auto isIntact = [](const Region& r) { return r.isIntact(); };
    if (problem.empty() && !(std::all_of(outputs_.begin(), outputs_.end(), isIntact) &&
                             std::all_of(e.activations.begin(), e.activations.end(), isIntact)))
      problem = "it writes next to a buffer";
    if (problem.empty()) problem = s_.oracle.check(outputTensors_, e.candidate.isWinograd, isPartial);
    if (problem.empty() && s_.hasReference) {
      std::vector<Tensor> reference;
      for (size_t o = 0; o < outputs_.size(); ++o) reference.push_back(viewOf(s_.reference[o], *s_.kernel.outputs[o]));
      problem =
          s_.oracle.compare(reference, outputTensors_, e.candidate.isWinograd || s_.incumbent->isWinograd, isPartial);
    }
    if (problem.empty()) return true;
    block_->slot(i).fail(Outcome::Wrong, problem);
    return false;
  }

  void finishIncumbent() {
    for (size_t o = 0; o < outputs_.size(); ++o)
      std::memcpy(s_.reference[o].data(), outputs_[o].data(), outputs_[o].size());
    Slot& slot = block_->slot(block_->slots());
    pool_->beginRun();
    sample(entrants_.size() - 1);
    slot.samples[0] = sample(entrants_.size() - 1);
    slot.count = 1;
    pool_->endRun();
    slot.done.store(1, std::memory_order_release);
  }

  // Each thread has its share of what the layer before wrote, and evicts its share of the constants.
  void setCaches(const Entrant& e) {
    struct Work {
      const Entrant* e;
      int64_t shares;
    } work{&e, threads_};
    auto body = [](void* state, int64_t begin, int64_t end) {
      auto* w = static_cast<Work*>(state);
      auto each = [&](const auto& list, auto&& act) {
        for (const auto& [data, bytes] : list) {
          const auto lines = static_cast<int64_t>((bytes + 63) / 64);
          const auto from = static_cast<size_t>(lines * begin / w->shares * 64);
          const auto to = std::min(bytes, static_cast<size_t>(lines * end / w->shares * 64));
          if (from < to) act(data + from, to - from);
        }
      };
      each(w->e->cold, evict);
      each(w->e->warm, touch);
    };
    if (threads_ > 1)
      pool_->parallelFor(threads_, body, &work);
    else
      body(&work, 0, 1);
  }

  // Of the threads that run kernels.
  int64_t switches() const { return switchesOf(threads_ > 1 ? RUSAGE_SELF : RUSAGE_THREAD); }

  /// Seconds of one run. One that lost the processor meanwhile is made again, unless it has used up `hopeless` seconds of processor time:
  /// then it was stopped, and a whole one is estimated from its part.
  double sample(size_t i, double hopeless = INFINITY) {
    Entrant& e = *entrants_[i];
    double seconds = INFINITY;
    isSure_ = false;
    for (int attempt = 0; attempt <= kRetries && !isSure_; ++attempt) {
      block_->lane(0).begin(Lane::Running, static_cast<int32_t>(i));
      const int64_t begin = nowNs();
      setCaches(e);
      const int64_t lost = switches(), used = threadNs();
      const int64_t from = nowNs();
      share_ = runOnce(e, hopeless);
      const int64_t to = nowNs();
      // Of several threads, one that waits for the others uses processor time, too.
      const bool isUsedUp = threads_ == 1 && static_cast<double>(threadNs() - used) * 1e-9 > hopeless;
      isSure_ = isUsedUp || switches() == lost;
      seconds = std::min(seconds, static_cast<double>(to - from) * 1e-9 / share_);
      e.cost = static_cast<double>(to - begin) * 1e-9;
      block_->lane(0).end();
    }
    e.best = std::min(e.best, seconds);
    return seconds;
  }
  void record(size_t i, double seconds, double incumbent) {
    Slot& slot = block_->slot(i);
    slot.samples[slot.count] = seconds;
    slot.incumbent[slot.count] = incumbent;
    ++slot.count;
  }

  // All is compiled before the first run: a compilation on another core, which it shares memory and caches with, makes times a tenth
  // longer and three times as uncertain.
  void timeAll() {
    const size_t incumbent = entrants_.size() - 1;
    poison(*entrants_[incumbent]);
    pool_->beginRun();
    sample(incumbent);
    std::vector<size_t> racing;
    double beside = 0;
    for (size_t i = 0, k = 0; i < incumbent; ++i) {
      if (!isOpen(i)) continue;
      if (k++ % kGroup == 0) beside = sample(incumbent);
      block_->slot(i).count = 0;
      if (probe(i, entrants_[incumbent]->best, beside))
        racing.push_back(i);
      else
        entrants_[i].reset();
    }
    finals(racing, incumbent);
    pool_->endRun();
  }

  // The probe was everybody's first sample. The nearer to the best, the more.
  void finals(std::vector<size_t> racing, size_t incumbent) {
    const std::vector<size_t> all = racing;
    for (const Round& round : kRounds) {
      double best = INFINITY;
      for (size_t i : racing) best = std::min(best, fastest(i));
      std::vector<size_t> near;
      for (size_t i : racing) {
        if (fastest(i) > round.within * best) continue;
        Entrant& e = *entrants_[i];
        e.wanted =
            std::clamp(static_cast<int>(round.share * s_.options.secondsEach / e.cost), round.least, kMaxSamples);
        near.push_back(i);
      }
      racing = std::move(near);
      race(racing, incumbent);
    }
    for (size_t i : all) block_->slot(i).done.store(1, std::memory_order_release);
  }
  double fastest(size_t i) const {
    const Slot& slot = block_->slot(i);
    return *std::min_element(slot.samples, slot.samples + slot.count);
  }

  // The first run, which is checked. Whether the candidate stays in the race; one that is far slower than the incumbent has its only
  // sample here.
  bool probe(size_t i, double incumbent, double beside) {
    Entrant& e = *entrants_[i];
    poison(e);
    const double limit = s_.options.abandonRatio * incumbent, hopeless = kHopeless * limit;
    double seconds = sample(i, hopeless);
    if (!judge(i, fine_, share_ < 1)) return false;
    // The code was never run before: what is not surely hopeless gets another chance, and more of them where a run is soon over.
    double spent = 0;
    for (int k = 0; seconds > limit && (spent < kSoon || (k < kChances && !(isSure_ && seconds > hopeless))); ++k) {
      const double again = sample(i, hopeless);
      spent += again;
      seconds = std::min(seconds, again);
    }
    record(i, seconds, beside);
    if (seconds <= limit) return true;
    block_->slot(i).abandoned = true;
    block_->slot(i).done.store(1, std::memory_order_release);
    return false;
  }

  // Rounds of all that want more samples, the incumbent between groups of them. Beside a sample stands the incumbent's before the group
  // and after it by turns, so that there are as many of either.
  void race(const std::vector<size_t>& racing, size_t incumbent) {
    for (;;) {
      std::vector<size_t> round;
      for (size_t i : racing)
        if (block_->slot(i).count < entrants_[i]->wanted) round.push_back(i);
      if (round.empty()) return;
      if (isReversed_) std::reverse(round.begin(), round.end());
      isReversed_ = !isReversed_;
      double before = sample(incumbent);
      for (size_t k = 0; k < round.size(); k += kGroup) {
        std::vector<double> seconds;
        const size_t end = std::min(k + kGroup, round.size());
        for (size_t j = k; j < end; ++j) seconds.push_back(sample(round[j]));
        const double after = sample(incumbent);
        for (size_t j = k; j < end; ++j) record(round[j], seconds[j - k], isReversed_ ? before : after);
        before = after;
      }
    }
  }

  const Subject& s_;
  SharedBlock* block_;
  const int threads_;
  bool isReversed_ = false;
  bool isSure_ = true;  ///< the last sample wasn't disturbed
  bool fine_ = true;    ///< the last run reported no failure ...
  double share_ = 1;    ///< ... and went through that share of the kernel's iterations
  std::shared_ptr<runtime::ThreadPool> pool_;
  std::vector<Region> outputs_;
  std::vector<Tensor> outputTensors_;
  std::vector<std::unique_ptr<Entrant>> entrants_;  // by slot; null: not in it, or out
  std::vector<size_t> todo_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::map<uint64_t, Packed> packed_;  ///< guarded by mutex_; what a node holds, by its flag
};

}  // namespace

void runBatch(const Subject& subject, const std::vector<schedule::Plan>& plans, Task task, int jobs,
              SharedBlock* block) {
  Batch(subject, block).run(plans, task, jobs);
}

}  // namespace locution::tune
