// Which workloads learning may never see, so that what it has learnt can be judged on them: whole models, kinds of operators, extents, and
// a target. The list is a file, written before any training.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/target.h"
#include "driver/corpus.h"
#include "support/status.h"

namespace locution::driver {

class HeldOut {
 public:
  /// A group a line, "#" starts a comment:
  ///     model NAME              workloads that occur in that model
  ///     op NAME                 that compute a node of that type
  ///     depthwise 5x5           depthwise convolutions with such a window
  ///     factor 13               an axis of the largest stage has a prime factor above 13
  ///     target CPU THREADS      measured on that target, whatever the workload
  /// Errors name `file` and the line.
  static Result<HeldOut> parse(std::string_view text, const std::string& file);
  static Result<HeldOut> read(const std::string& file);

  /// What a group is about: "model", "op" (of depthwise windows too), "factor" or "target".
  static std::string kindOf(const std::string& group);
  /// The groups that a workload is in, as the file writes them, in its order. None: learning may see it.
  std::vector<std::string> groupsOf(const CorpusWorkload& workload, const TargetSpec& target) const;

 private:
  struct Group {
    std::string text, kind, name;
    int64_t number = 0, other = 0;
  };
  static Result<Group> parseGroup(const std::string& line);
  static bool holds(const Group& group, const CorpusWorkload& workload, const TargetSpec& target);
  std::vector<Group> groups_;
};

}  // namespace locution::driver
