// Rewrites and queries of loop IR.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "loop/compute.h"
#include "loop/expr.h"
#include "support/status.h"

namespace locution::loop {

/// Rebuilds a tree bottom-up; override what changes. The same pointer comes back when nothing did. A statement may become
/// null: it is left out. Changed nodes are rebuilt by the makers, which fold and broadcast. Overriders that meet shared
/// subexpressions often should memoise.
class Mutator {
 public:
  virtual ~Mutator() = default;
  virtual Expr mutate(const Expr& e);
  virtual Stmt mutate(const Stmt& s);

 protected:
  Expr mutateChildren(const Expr& e);
  Stmt mutateChildren(const Stmt& s);
};
/// Visits every node (parents first), a node that an expression shares once in that expression. Return false from a callback
/// to skip the children.
void visit(const Expr& e, const std::function<bool(const Expr&)>& onExpr);
void visit(const Stmt& s, const std::function<bool(const Stmt&)>& onStmt,
           const std::function<bool(const Expr&)>& onExpr);

using Substitution = std::unordered_map<const Var*, Expr>;
Expr substitute(const Expr& e, const Substitution& map);
Stmt substitute(const Stmt& s, const Substitution& map);
/// Replaces every Load of `buffer` by `make(indices)`: inlining a stage, renaming a buffer.
Expr replaceLoads(const Expr& e, const Buffer* buffer, const std::function<Expr(const Load&)>& make);
bool usesVar(const Expr& e, const Var* var);
bool readsBuffer(const Expr& e, const Buffer* buffer);
/// Same structure; variables and buffers by identity, so hashes hold within one process only.
bool sameExpr(const Expr& a, const Expr& b);
uint64_t structuralHash(const Expr& e);

/// Inclusive ranges of integer variables, for `simplify`.
struct Range {
  int64_t min = 0, max = 0;
};
using Ranges = std::unordered_map<const Var*, Range>;
/// Integer index algebra with known ranges: sums of products in canonical order; (c*a + b) // c = a + b // c; what lies within
/// [0, c) divides to 0 and is its own remainder; x // c * c + x %% c = x; comparisons and min, max that ranges decide. Floats
/// are only constant-folded where that is exact.
Expr simplify(const Expr& e, const Ranges& ranges = {});
/// Every expression, with the ranges that the loops give; drops empty loops, unwraps loops of one iteration.
Stmt simplify(const Stmt& s);
/// If `e` (int64) is base + coefficient * var with var-free base: true and both.
bool splitAffine(const Expr& e, const Var* var, Expr* base, int64_t* coefficient, const Ranges& ranges = {});
/// Inclusive bounds of an integer expression, if they follow from `ranges`.
bool bounds(const Expr& e, const Ranges& ranges, Range* out);

/// Turns Vector loops (constant extents) into vector expressions: the loop variable becomes a Ramp, what depends on it becomes a
/// vector. Buffers allocated inside get vector elements (an inner dim where lanes index them apart); stack and register buffers
/// outside that are only touched by whole aligned vectors get them too: acc[r, ramp(16*j, 1, 16)] becomes acc[r, j]. Conditions
/// become masks. A loop without a vector form (a sum into one place, inner bounds that vary) becomes Serial. Buffer identities
/// change, so the whole body of a function must be handed over.
Stmt vectorise(const Stmt& s);

std::string print(const Expr& e);
std::string print(const Stmt& s);
std::string print(const Function& f);
std::string print(const Computation& c);
/// Inverse of print(Function).
Result<Function> parseFunction(std::string_view text);
/// Types, masks, index counts, defined variables, allocated buffers, constant extents of unrolled and vector loops.
Status verify(const Function& f);
/// Free of names: equal loops hash equal.
uint64_t hash(const Function& f);
uint64_t hash(const Computation& c);

/// The loops that a Computation means, unscheduled: stage after stage, serial, temporaries on the stack or as given.
Function naiveLoops(const Computation& c);

/// Multiply-adds count two, every other float operation one; of one run.
double countFlops(const Computation& c);

}  // namespace locution::loop
