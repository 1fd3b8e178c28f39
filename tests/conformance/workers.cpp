#include "workers.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>

#include "support/check.h"

namespace locution::conformance {
namespace {

std::string readAll(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

struct Child {
  size_t task = 0;
  int result = -1, errors = -1;
};

[[noreturn]] void runChild(const Child& child, unsigned seconds, const std::function<std::string(size_t)>& task) {
  dup2(child.errors, STDERR_FILENO);
  alarm(seconds);
  std::string text = task(child.task);
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(child.result, text.data() + done, text.size() - done);
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
  // Not exit(): the parent's buffers and handlers are not this process's to flush and run.
  _exit(0);
}

TaskEnd endOf(const Child& child, int status) {
  std::string result = readAll(child.result), errors = readAll(child.errors);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {TaskEnd::How::Finished, result};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return {TaskEnd::How::TimedOut, "no result in time"};
  std::string what = WIFSIGNALED(status) ? std::string(strsignal(WTERMSIG(status)))
                                         : "exit code " + std::to_string(WEXITSTATUS(status));
  constexpr size_t kTail = 600;
  if (errors.size() > kTail) errors.resize(kTail);
  return {TaskEnd::How::Crashed, what + ": " + errors};
}

}  // namespace

std::vector<TaskEnd> runForked(size_t count, int processes, unsigned seconds,
                               const std::function<std::string(size_t)>& task,
                               const std::function<void(size_t done)>& progress) {
  std::vector<TaskEnd> ends(count);
  std::map<pid_t, Child> running;
  size_t next = 0, done = 0;
  std::fflush(nullptr);
  while (done < count) {
    while (next < count && running.size() < static_cast<size_t>(processes)) {
      Child child{next++, memfd_create("result", MFD_CLOEXEC), memfd_create("errors", MFD_CLOEXEC)};
      LOCUTION_CHECK(child.result >= 0 && child.errors >= 0) << std::strerror(errno);
      pid_t pid = fork();
      LOCUTION_CHECK(pid >= 0) << std::strerror(errno);
      if (pid == 0) runChild(child, seconds, task);
      running[pid] = child;
    }
    int status = 0;
    pid_t pid = waitpid(-1, &status, 0);
    auto at = running.find(pid);
    if (at == running.end()) continue;
    ends[at->second.task] = endOf(at->second, status);
    running.erase(at);
    progress(++done);
  }
  return ends;
}

}  // namespace locution::conformance
