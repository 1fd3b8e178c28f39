#include "loop/traffic.h"

#include <algorithm>

#include "loop/passes.h"

namespace locution::loop {

double countReads(const Computation& c, const Buffer& input) {
  double all = 1;
  for (int64_t d : extents(input)) all *= static_cast<double>(d);
  if (c.raw) return all;
  double reads = 0;
  for (const Stage& s : c.stages) {
    // Each load reads as many elements as the axes that its indices depend on have points, through other loads as well.
    auto count = [&](const Expr& e) {
      if (e->kind != ExprKind::Load || as<Load>(e)->buffer.get() != &input) return true;
      double points = 1;
      for (const std::vector<Axis>* axes : {&s.axes, &s.reduce})
        for (const Axis& a : *axes)
          if (usesVar(e, a.var.get())) points *= static_cast<double>(a.extent);
      reads += points;
      return true;
    };
    visit(s.body, count);
    if (s.epilogue) visit(s.epilogue, count);
  }
  return std::min(reads, all);
}

}  // namespace locution::loop
