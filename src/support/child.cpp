#include "support/child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "support/check.h"

namespace locution {

namespace {

std::string readAll(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(fd);
  return text;
}

[[noreturn]] void runTask(unsigned seconds, int result, int errors, const std::function<std::string()>& task) {
  dup2(errors, STDERR_FILENO);
  // What a handler of the parent would do with these is not wanted here.
  for (int s : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(s, SIG_DFL);
  alarm(seconds);
  std::string text;
  try {
    text = task();
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "not enough memory\n");
    _exit(1);
  }
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(result, text.data() + done, text.size() - done);
    if (n <= 0) _exit(1);
    done += static_cast<size_t>(n);
  }
  // Not exit(): the parent's buffers and handlers are not this process's to flush and run.
  _exit(0);
}

}  // namespace

ChildEnd runInChild(unsigned seconds, const std::function<std::string()>& task) {
  int result = memfd_create("result", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC);
  LOCUTION_CHECK(result >= 0 && errors >= 0) << std::strerror(errno);
  std::fflush(nullptr);
  pid_t pid = fork();
  LOCUTION_CHECK(pid >= 0) << std::strerror(errno);
  if (pid == 0) runTask(seconds, result, errors, task);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  std::string text = readAll(result), said = readAll(errors);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {ChildEnd::How::Finished, text};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return {ChildEnd::How::TimedOut, "no end within " + std::to_string(seconds) + " s"};
  std::string what = WIFSIGNALED(status) ? std::string(strsignal(WTERMSIG(status)))
                                         : "exit code " + std::to_string(WEXITSTATUS(status));
  constexpr size_t kHead = 800;
  if (said.size() > kHead) said.resize(kHead);
  return {ChildEnd::How::Crashed, said.empty() ? what : what + ": " + said};
}

}  // namespace locution
