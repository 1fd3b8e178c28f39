// Writes a plan step by step, keeping track of the loops that a stage has at each point.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedule/plan.h"

namespace locution::space {

/// Axis k of a stage and reduction axis k, as plans name them.
inline std::string axisName(size_t k) { return "i" + std::to_string(k); }
inline std::string reduceName(size_t k) { return "r" + std::to_string(k); }

/// Of one stage, or of the loops that all stages share (stage -1).
class PlanWriter {
 public:
  PlanWriter(schedule::Plan* plan, int32_t stage, std::vector<std::string> loops);

  const std::vector<std::string>& order() const { return order_; }
  /// Returns {outer, inner}.
  std::pair<std::string, std::string> split(const std::string& loop, int64_t factor, schedule::Tail tail);
  /// Adjacent loops into one, whose name is returned; one loop stays as it is.
  std::string fuse(const std::vector<std::string>& loops);
  void reorder(std::vector<std::string> loops);
  void mark(schedule::Primitive primitive, std::vector<std::string> loops);
  void pack(int64_t operand);
  void dot(schedule::Primitive primitive, const std::string& loop, int64_t operand);
  void prefetch(int64_t operand);
  /// Fuses the loops of order()[0, count) and shares them out to threads.
  void parallel(size_t count);

 private:
  schedule::Plan* plan_;
  int32_t stage_;
  std::vector<std::string> order_;
};

}  // namespace locution::space
