// Runs tasks in processes of their own, so that a crash or an endless loop ends one task, not the suite.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace locution::conformance {

struct TaskEnd {
  enum class How : char { Finished, Crashed, TimedOut } how = How::Finished;
  std::string
      text;  ///< what the task returned; of one that crashed: its exit code or signal, and the tail of its stderr
};

/// Forks for each task, `processes` at a time; a task that takes longer than `seconds` is killed. Ends are in the tasks' order. The
/// caller must not run other threads.
std::vector<TaskEnd> runForked(size_t count, int processes, unsigned seconds,
                               const std::function<std::string(size_t)>& task,
                               const std::function<void(size_t done)>& progress);

}  // namespace locution::conformance
