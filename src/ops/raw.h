// Makers of loop nests for ops that are written as raw loops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "loop/build.h"
#include "loop/compute.h"

namespace locution::ops {

/// Serial loops over the axes, outermost first, around `body`.
inline loop::Stmt nest(const std::vector<loop::Axis>& axes, loop::Stmt body) {
  for (size_t i = axes.size(); i-- > 0;) {
    body = loop::forLoop(axes[i].var, loop::index(0), loop::index(axes[i].extent), loop::LoopKind::Serial,
                         std::move(body));
  }
  return body;
}

/// Allocates every buffer around `body`.
inline loop::Stmt withBuffers(const std::vector<loop::BufferRef>& buffers, loop::Stmt body) {
  for (size_t i = buffers.size(); i-- > 0;) body = loop::allocate(buffers[i], std::move(body));
  return body;
}

/// Names values for a statement to come: `Expr y = lets("y", value)`, then `lets.around(statement that uses y)`.
class Lets {
 public:
  loop::Expr operator()(const std::string& name, const loop::Expr& value) {
    loop::VarRef var = loop::makeVar(name, value->type);
    entries_.emplace_back(var, value);
    return var;
  }
  loop::Stmt around(loop::Stmt body) const {
    for (size_t i = entries_.size(); i-- > 0;)
      body = loop::letStmt(entries_[i].first, entries_[i].second, std::move(body));
    return body;
  }

 private:
  std::vector<std::pair<loop::VarRef, loop::Expr>> entries_;
};

}  // namespace locution::ops
