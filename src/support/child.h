// Work in a process of its own: what may crash, hang or fail a check must not take its caller along.
#pragma once

#include <functional>
#include <string>

namespace locution {

struct ChildEnd {
  enum class How { Finished, Crashed, TimedOut } how = How::Finished;
  std::string
      text;  ///< Finished: what the task returned; else the signal or exit code, and the start of its standard error
};

/// Runs `task` in a forked child, at most `seconds` of real time. The caller must have no other threads at work: a fork copies none,
/// and what they had locked stays locked.
ChildEnd runInChild(unsigned seconds, const std::function<std::string()>& task);

}  // namespace locution
