// The loops of one stage (or those that all stages share) while a plan is applied: which loops there are, how they came from the axes,
// and how to open them. Invariant: `order` holds each leaf loop once, outermost first.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "loop/passes.h"
#include "schedule/apply.h"

namespace locution::schedule {

struct Loop {
  std::string name;
  bool reduce = false;
  loop::LoopKind kind = loop::LoopKind::Serial;
  bool partial = false;
  bool edges = false;  ///< first and last iteration apart
};

/// What is known inside opened loops: values of loops and axes, extents that tails made smaller, and conditions that stores and
/// unpacked loads need (`guards`), each with the axis it protects.
struct Env {
  std::map<std::string, loop::Expr> value;
  std::map<std::string, int64_t> extent;
  std::set<std::string> exact;  ///< split loops known to be complete here: no guard needed
  std::vector<std::pair<std::string, loop::Expr>> guards;
};
using Inside = std::function<loop::Stmt(const Env&)>;

class Nest {
 public:
  /// Loops for the axes that `own` lists, named i<own>; reduce axes r0, r1 ...
  Nest(const std::vector<loop::Axis>& axes, const std::vector<size_t>& own, const std::vector<loop::Axis>& reduce);

  std::optional<Illegal> apply(const Step& step);
  /// After all steps: outer loops before inner ones, vector loops innermost.
  std::optional<Illegal> check() const;

  const std::vector<Loop>& order() const { return order_; }
  /// The loop counts tiles of which the last is incomplete and cut short: what is inside needs two versions.
  bool peels(const std::string& name) const;
  /// Iterations of a loop or axis under `env`.
  int64_t extentOf(const std::string& name, const Env& env) const;
  /// Opens the loops of `names` (outermost first) around `inside`. Before the reduction (`inTile` false) incomplete tiles branch;
  /// within a register tile they are guarded.
  loop::Stmt open(const std::vector<std::string>& names, const Env& env, bool inTile, const Inside& inside) const;
  /// The same for any mix of reduction and tile loops: a reduction's incomplete tile follows its complete ones.
  loop::Stmt openReduction(const std::vector<std::string>& names, const Env& env, const Inside& inside) const;

  /// The same for a block whose register tiles accumulate elsewhere: incomplete tiles branch, as before a reduction.
  loop::Stmt openBlock(const std::vector<std::string>& names, const Env& env, const Inside& inside) const;

  /// Leaf loops taken apart at fusions, in order: what a packed operand is indexed by.
  std::vector<std::string> atoms() const;
  std::vector<std::string> atomsOf(const std::string& name) const;
  /// The axis that a loop came from; for a fused loop the first.
  std::string rootOf(const std::string& name) const { return roots(name)[0]; }
  /// All axes that a loop came from: several where fused loops were split.
  std::vector<std::string> roots(const std::string& name) const;
  /// The axis' value from the atoms' values; adds `axis < extent` to `guards` where a split does not divide.
  loop::Expr rebuild(const std::string& name, const std::map<std::string, loop::Expr>& atomValues,
                     std::vector<loop::Expr>* guards) const;

 private:
  struct Split {
    std::string parent, outer, inner;
    int64_t factor;
    Tail tail;
  };
  struct Fusion {
    std::string fused, a, b;
  };
  const Loop* find(const std::string& name) const;
  const Split* splitOfParent(const std::string& name) const;
  const Split* splitOfPart(const std::string& name) const;
  const Fusion* fusionInto(const std::string& name) const;
  loop::Stmt openFrom(const std::vector<std::string>& names, size_t k, const Env& env, bool inTile, bool reduction,
                      const Inside& inside) const;
  loop::Stmt bind(const std::string& name, const loop::Expr& value, Env env, bool branch, const Inside& inside) const;
  void expandAtoms(const std::string& name, std::vector<std::string>* out) const;

  std::map<std::string, int64_t> axisExtent_;
  std::vector<Loop> order_;
  std::vector<Split> splits_;
  std::vector<Fusion> fusions_;
};

}  // namespace locution::schedule
