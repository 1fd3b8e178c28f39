#include "tune/worker.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

#include "loop/build.h"
#include "loop/strided_copy.h"
#include "runtime/code_memory.h"
#include "runtime/kernel_abi.h"
#include "support/check.h"
#include "tune/batch.h"
#include "tune/shared_block.h"

namespace locution::tune {
namespace {

constexpr int kLookMs = 50;

struct View final : Storage {
  std::byte* bytes;
  size_t count;
  View(std::byte* b, size_t n) : bytes(b), count(n) {}
  std::byte* data() override { return bytes; }
  size_t size() const override { return count; }
};

std::string headOf(int fd) {
  char text[300];
  ssize_t n = pread(fd, text, sizeof text, 0);
  std::string out(text, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// The child's part of the fork.
[[noreturn]] void becomeWorker(pid_t parent, int errors, const std::function<void()>& work) {
  dup2(errors, STDERR_FILENO);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(s, SIG_DFL);
  std::signal(SIGINT, SIG_IGN);  // the parent decides
  setReproducerWriter({});
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  work();
  _exit(0);
}

// One worker, from its fork to its end.
class Watch {
 public:
  Watch(const Subject& subject, SharedBlock* block) : s_(subject), block_(block) {}

  /// Whether it came to its end by itself; else what it was at has got its outcome, or is in `suspects`.
  bool run(const std::function<void()>& work, std::vector<int32_t>* suspects) {
    int errors = memfd_create("errors", MFD_CLOEXEC);
    LOCUTION_CHECK(errors >= 0) << std::strerror(errno);
    std::fflush(nullptr);
    const pid_t parent = getpid(), pid = fork();
    LOCUTION_CHECK(pid >= 0) << std::strerror(errno);
    if (pid == 0) becomeWorker(parent, errors, work);
    const bool isOverdue = !waitFor(pid);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    std::string said = headOf(errors);
    close(errors);
    if (isOverdue) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    std::string what = WIFSIGNALED(status) ? std::string(strsignal(WTERMSIG(status)))
                                           : "exit code " + std::to_string(WEXITSTATUS(status));
    if (!said.empty()) what += ": " + said;
    for (int i = 0; i < kMaxLanes; ++i)
      if (block_->lane(i).at.load() != Lane::Idle) suspects->push_back(block_->lane(i).candidate.load());
    if (suspects->size() == 1) block_->slot(static_cast<size_t>((*suspects)[0])).fail(Outcome::Crash, what);
    // Not in a candidate: a bug of the measuring itself.
    LOCUTION_CHECK(!suspects->empty()) << "the worker ended: " << what;
    return false;
  }

 private:
  // False: it was too long at one thing and has been stopped.
  bool waitFor(pid_t pid) {
    const auto fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    for (;;) {
      if (fd >= 0) {
        pollfd p{fd, POLLIN, 0};
        if (poll(&p, 1, kLookMs) > 0) break;
      } else {
        // An old kernel: look now and then.
        siginfo_t info{};
        if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) break;
        usleep(1000);
      }
      if (!markOverdue()) continue;
      kill(pid, SIGKILL);
      if (fd >= 0) close(fd);
      return false;
    }
    if (fd >= 0) close(fd);
    return true;
  }

  bool markOverdue() {
    bool found = false;
    for (int i = 0; i < kMaxLanes; ++i) {
      Lane& lane = block_->lane(i);
      const int32_t at = lane.at.load(std::memory_order_acquire);
      if (at == Lane::Idle) continue;
      const double seconds = static_cast<double>(nowNs() - lane.since.load(std::memory_order_relaxed)) * 1e-9;
      const double limit = at == Lane::Compiling ? s_.options.compileSeconds
                                                 : std::max(s_.options.watchdogSeconds, 10 * s_.incumbentSeconds);
      if (seconds <= limit) continue;
      char text[80];
      std::snprintf(text, sizeof text, "no end of %s within %.3g s", at == Lane::Compiling ? "compiling" : "a run",
                    limit);
      block_->slot(static_cast<size_t>(lane.candidate.load())).fail(Outcome::Timeout, text);
      found = true;
    }
    return found;
  }

  const Subject& s_;
  SharedBlock* block_;
};

Measurement resultOf(const Slot& slot) {
  Measurement m;
  m.outcome = slot.outcome;
  m.reason = slot.reason;
  m.codeHash = slot.codeHash;
  m.compileMs = slot.compileMs;
  m.abandoned = slot.abandoned;
  if (m.outcome != Outcome::Ok) return m;
  m.samples.assign(slot.samples, slot.samples + slot.count);
  m.incumbent.assign(slot.incumbent, slot.incumbent + slot.count);
  return m;
}

}  // namespace

Tensor viewOf(const Region& region, const loop::Buffer& buffer) {
  return {buffer.element.dtype, loop::extents(buffer), std::make_shared<View>(region.data(), region.size())};
}

void packConstant(const Packing& pack, const Subject& subject, const Region& to) {
  if (pack.code.bytes.empty()) {
    Tensor out = viewOf(to, *pack.computation.outputs[0]);
    loop::runStridedCopy(*loop::asStridedCopy(pack.computation), subject.tensors[pack.source], &out);
    return;
  }
  auto memory = runtime::CodeMemory::create(pack.code.bytes);
  LOCUTION_CHECK(memory.isOk()) << memory.status().message();
  auto entry = reinterpret_cast<runtime::KernelFunction>(reinterpret_cast<uintptr_t>((*memory)->data()));
  std::vector<void*> buffers;
  for (size_t b : pack.code.buffers) buffers.push_back(b == pack.source ? subject.inputs[b].data() : to.data());
  const runtime::KernelArgs args{buffers.data(), &runtime::mathTable()};
  entry(&args, 0, pack.code.extent);
}

Result<std::vector<Measurement>> runWorkers(Subject* subject, const std::vector<schedule::Plan>& plans, Task task) {
  SharedBlock block(plans.size());
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int jobs = std::clamp(subject->options.jobs > 0 ? subject->options.jobs : cores, 1, kMaxLanes);
  Slot& incumbent = block.slot(plans.size());
  for (;;) {
    block.idle();
    std::vector<int32_t> suspects;
    if (Watch(*subject, &block).run([&] { runBatch(*subject, plans, task, jobs, &block); }, &suspects)) break;
    if (incumbent.outcome != Outcome::Ok) break;
    // Which of several it was shows when they are compiled one after the other.
    if (suspects.size() > 1) jobs = 1;
  }
  if (incumbent.outcome != Outcome::Ok)
    return Status::error("the incumbent of '" + subject->kernel.name + "': " + incumbent.reason);
  if (task == Task::CheckIncumbent) {
    subject->hasReference = true;
    subject->incumbentSeconds = incumbent.samples[0];
  }
  std::vector<Measurement> out;
  for (size_t i = 0; i < plans.size(); ++i) out.push_back(resultOf(block.slot(i)));
  return out;
}

}  // namespace locution::tune
