// Processes that use a store and are killed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "support/check.h"

namespace locution::records::testing {

inline bool full() {
  const char* value = std::getenv("LOCUTION_FULL");
  return value && std::string(value) == "1";
}

/// A forked process. It may not use what the parent has open, and says what it has done line by line.
class Worker {
 public:
  explicit Worker(const std::function<void(const std::function<void(const std::string&)>& say)>& work) {
    int ends[2];
    LOCUTION_CHECK(pipe(ends) == 0);
    process_ = fork();
    LOCUTION_CHECK(process_ >= 0);
    if (process_ == 0) {
      close(ends[0]);
      work([&](const std::string& line) {
        std::string whole = line + "\n";
        // Short enough to go in one piece.
        if (write(ends[1], whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) _exit(3);
      });
      _exit(0);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  ~Worker() { close(from_); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void killAfter(int microseconds) const {
    usleep(static_cast<useconds_t>(microseconds));
    kill(process_, SIGKILL);
  }
  /// Waits for its end; what it said, whole lines only. `status` as waitpid gives it.
  std::vector<std::string> said(int* status = nullptr) {
    std::string text;
    char block[4096];
    for (ssize_t got; (got = read(from_, block, sizeof block)) > 0;) text.append(block, static_cast<size_t>(got));
    int ended = 0;
    waitpid(process_, &ended, 0);
    if (status) *status = ended;
    std::vector<std::string> lines;
    for (size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(text.substr(at, end - at));
    return lines;
  }

 private:
  pid_t process_ = 0;
  int from_ = -1;
};

}  // namespace locution::records::testing
