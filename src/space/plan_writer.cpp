#include "space/plan_writer.h"

#include <algorithm>

namespace locution::space {

using schedule::Primitive;
using schedule::Tail;

PlanWriter::PlanWriter(schedule::Plan* plan, int32_t stage, std::vector<std::string> loops)
    : plan_(plan), stage_(stage), order_(std::move(loops)) {}

std::pair<std::string, std::string> PlanWriter::split(const std::string& loop, int64_t factor, Tail tail) {
  std::string outer = loop + ".o", inner = loop + ".i";
  plan_->steps.push_back({Primitive::Split, stage_, {loop}, factor, tail});
  auto at = std::find(order_.begin(), order_.end(), loop);
  *at = outer;
  order_.insert(at + 1, inner);
  return {outer, inner};
}

std::string PlanWriter::fuse(const std::vector<std::string>& loops) {
  if (loops.size() == 1) return loops[0];
  plan_->steps.push_back({Primitive::Fuse, stage_, loops, 0, Tail::Peel});
  std::string name = loops[0];
  for (size_t i = 1; i < loops.size(); ++i) {
    name += "*" + loops[i];
    order_.erase(std::find(order_.begin(), order_.end(), loops[i]));
  }
  *std::find(order_.begin(), order_.end(), loops[0]) = name;
  return name;
}

void PlanWriter::reorder(std::vector<std::string> loops) {
  if (loops == order_) return;
  order_ = loops;
  plan_->steps.push_back({Primitive::Reorder, stage_, std::move(loops), 0, Tail::Peel});
}

void PlanWriter::mark(Primitive primitive, std::vector<std::string> loops) {
  if (!loops.empty()) plan_->steps.push_back({primitive, stage_, std::move(loops), 0, Tail::Peel});
}

void PlanWriter::pack(int64_t operand) { plan_->steps.push_back({Primitive::Pack, stage_, {}, operand, Tail::Peel}); }

void PlanWriter::dot(Primitive primitive, const std::string& loop, int64_t operand) {
  plan_->steps.push_back({primitive, stage_, {loop}, operand, Tail::Peel});
}

void PlanWriter::prefetch(int64_t operand) {
  plan_->steps.push_back({Primitive::Prefetch, stage_, {}, operand, Tail::Peel});
}

void PlanWriter::parallel(size_t count) {
  if (count == 0) return;
  std::string whole = fuse({order_.begin(), order_.begin() + static_cast<long>(count)});
  mark(Primitive::Parallel, {whole});
}

}  // namespace locution::space
