// Loop IR: immutable expressions and statements over buffers. A pass returns a new root; the same pointer means unchanged.
// Scalars and vectors share one type: `lanes` is 1 for a scalar. Indices are int64. Loads and stores take one index a dim.
// Arithmetic on integers wraps; nothing traps: integer division by zero gives 0 and INT_MIN / -1 wraps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace locution::loop {

struct Type {
  DType dtype = DType::F32;
  int lanes = 1;
  Type withLanes(int n) const { return {dtype, n}; }
  bool operator==(const Type&) const = default;
};

enum class ExprKind : uint8_t {
#define EXPR_NODE(Name) Name,
#define STMT_NODE(Name)
#include "loop/nodes.inc"
#undef EXPR_NODE
#undef STMT_NODE
};
enum class StmtKind : uint8_t {
#define EXPR_NODE(Name)
#define STMT_NODE(Name) Name,
#include "loop/nodes.inc"
#undef EXPR_NODE
#undef STMT_NODE
};

struct ExprNode {
  ExprKind kind;
  Type type;
  ExprNode(ExprKind k, Type t) : kind(k), type(t) {}
  virtual ~ExprNode() = default;
};
struct StmtNode {
  StmtKind kind;
  explicit StmtNode(StmtKind k) : kind(k) {}
  virtual ~StmtNode() = default;
};
// Shared ownership: nodes are immutable and form DAGs that every pass shares with its input.
using Expr = std::shared_ptr<const ExprNode>;
using Stmt = std::shared_ptr<const StmtNode>;

/// Where a buffer lives. Register buffers are indexed by constants once unrolled and become SSA values in code.
enum class Scope : uint8_t { Global, Stack, Register };

/// A named, row-major array of fixed element type. Identity is the pointer. A vector element type (`lanes` > 1) is allowed
/// for Register and Stack buffers: one index then names a whole vector.
struct Buffer {
  std::string name;
  Type element;
  std::vector<Expr> dims;  ///< int64 scalars; constants today, run-time values later
  Scope scope = Scope::Global;
};
using BufferRef = std::shared_ptr<const Buffer>;

enum class BinaryOp : uint8_t {
#define BINARY_OP(Name, text) Name,
#include "loop/nodes.inc"
#undef BINARY_OP
};

struct IntImm : ExprNode {  ///< any integer type or bool; scalar
  static constexpr ExprKind kKind = ExprKind::IntImm;
  int64_t value;
  IntImm(DType t, int64_t v) : ExprNode(ExprKind::IntImm, {t, 1}), value(v) {}
};
struct FloatImm : ExprNode {  ///< any float type; scalar
  static constexpr ExprKind kKind = ExprKind::FloatImm;
  double value;
  FloatImm(DType t, double v) : ExprNode(ExprKind::FloatImm, {t, 1}), value(v) {}
};
struct Var : ExprNode {  ///< identity is the pointer, the name is for people
  static constexpr ExprKind kKind = ExprKind::Var;
  std::string name;
  Var(std::string n, Type t) : ExprNode(ExprKind::Var, t), name(std::move(n)) {}
};
using VarRef = std::shared_ptr<const Var>;
/// C's conversions made total: float to int truncates and saturates, NaN gives 0; to bool is `!= 0`; int to int wraps;
/// float narrowing rounds to nearest even.
struct Cast : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Cast;
  Expr value;
  Cast(Type t, Expr v) : ExprNode(ExprKind::Cast, t), value(std::move(v)) {}
};
/// Both sides have the same type; comparisons give bool. Min and Max return NaN when either side is NaN.
struct Binary : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Binary;
  BinaryOp op;
  Expr a, b;
  Binary(BinaryOp o, Type t, Expr x, Expr y) : ExprNode(ExprKind::Binary, t), op(o), a(std::move(x)), b(std::move(y)) {}
};
/// With a scalar condition only the chosen side is evaluated: a load in the other side may be out of range (the interpreter
/// evaluates lazily; code branches or masks the load). The sides may then be vectors. With a vector condition (of the sides'
/// lanes) both sides are evaluated, so loads in them must be safe for every lane: `vectorise` pushes the condition into the
/// masks of the loads of either side.
struct Select : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Select;
  Expr condition, yes, no;
  Select(Expr c, Expr y, Expr n)
      : ExprNode(ExprKind::Select, y->type), condition(std::move(c)), yes(std::move(y)), no(std::move(n)) {}
};
/// One element, or with a vector among the indices (usually the innermost; all vectors of equal lanes, scalars stand for all of
/// them) one for each lane. `mask` (vector of bool with the load's lanes, or null; never on scalar loads, see `load` in build.h):
/// masked-off lanes read 0 and do not touch memory. With a vector-element buffer the indices are scalars and the result has the
/// buffer's lanes.
struct Load : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Load;
  BufferRef buffer;
  std::vector<Expr> indices;
  Expr mask;
  Load(Type t, BufferRef b, std::vector<Expr> i, Expr m)
      : ExprNode(ExprKind::Load, t), buffer(std::move(b)), indices(std::move(i)), mask(std::move(m)) {}
};
struct Ramp : ExprNode {  ///< base + i * stride for lane i
  static constexpr ExprKind kKind = ExprKind::Ramp;
  Expr base, stride;
  Ramp(Expr b, Expr s, int lanes)
      : ExprNode(ExprKind::Ramp, b->type.withLanes(lanes)), base(std::move(b)), stride(std::move(s)) {}
};
struct Broadcast : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Broadcast;
  Expr value;
  Broadcast(Expr v, int lanes) : ExprNode(ExprKind::Broadcast, v->type.withLanes(lanes)), value(std::move(v)) {}
};
/// An intrinsic of intrinsics.inc, element by element: "exp", "sqrt", "fma", "isnan", "bitcast" ...
struct Call : ExprNode {
  static constexpr ExprKind kKind = ExprKind::Call;
  std::string name;
  std::vector<Expr> args;
  Call(std::string n, Type t, std::vector<Expr> a)
      : ExprNode(ExprKind::Call, t), name(std::move(n)), args(std::move(a)) {}
};
/// All lanes of a vector to one scalar by Add, Mul, Min, Max, And or Or, in pairs (lane i with lane i + lanes/2, and so on).
/// Sums and products are over 2^n lanes; what pairs as you like (isIdempotent) may be over any number: a lane without a partner stays.
struct VectorReduce : ExprNode {
  static constexpr ExprKind kKind = ExprKind::VectorReduce;
  BinaryOp op;
  Expr value;
  VectorReduce(BinaryOp o, Expr v)
      : ExprNode(ExprKind::VectorReduce, v->type.withLanes(1)), op(o), value(std::move(v)) {}
};
struct LetExpr : ExprNode {
  static constexpr ExprKind kKind = ExprKind::LetExpr;
  VarRef var;
  Expr value, body;
  LetExpr(VarRef v, Expr x, Expr b)
      : ExprNode(ExprKind::LetExpr, b->type), var(std::move(v)), value(std::move(x)), body(std::move(b)) {}
};

/// Unrolled loops have constant extents and are expanded by code generation; Vector loops are rewritten to vector expressions
/// by `vectorise` before code generation, their iterations must be independent; one Parallel loop at most, the outermost of a
/// kernel. The meaning of every kind is that of Serial.
enum class LoopKind : uint8_t { Serial, Parallel, Vector, Unrolled };

struct Store : StmtNode {  ///< indices and mask as for Load; of lanes that hit the same element the last one wins
  static constexpr StmtKind kKind = StmtKind::Store;
  BufferRef buffer;
  std::vector<Expr> indices;
  Expr value, mask;
  Store(BufferRef b, std::vector<Expr> i, Expr v, Expr m)
      : StmtNode(StmtKind::Store),
        buffer(std::move(b)),
        indices(std::move(i)),
        value(std::move(v)),
        mask(std::move(m)) {}
};
struct For : StmtNode {  ///< var = min, min + 1, ... min + extent - 1
  static constexpr StmtKind kKind = StmtKind::For;
  VarRef var;
  Expr min, extent;
  LoopKind loop;
  Stmt body;
  For(VarRef v, Expr m, Expr e, LoopKind k, Stmt b)
      : StmtNode(StmtKind::For),
        var(std::move(v)),
        min(std::move(m)),
        extent(std::move(e)),
        loop(k),
        body(std::move(b)) {}
};
struct Block : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Block;
  std::vector<Stmt> stmts;
  explicit Block(std::vector<Stmt> s) : StmtNode(StmtKind::Block), stmts(std::move(s)) {}
};
struct IfThen : StmtNode {
  static constexpr StmtKind kKind = StmtKind::IfThen;
  Expr condition;        ///< scalar bool
  Stmt then, otherwise;  ///< otherwise may be null
  IfThen(Expr c, Stmt t, Stmt o)
      : StmtNode(StmtKind::IfThen), condition(std::move(c)), then(std::move(t)), otherwise(std::move(o)) {}
};
struct Allocate : StmtNode {  ///< a Stack or Register buffer, uninitialised, alive in `body`
  static constexpr StmtKind kKind = StmtKind::Allocate;
  BufferRef buffer;
  Stmt body;
  Allocate(BufferRef b, Stmt s) : StmtNode(StmtKind::Allocate), buffer(std::move(b)), body(std::move(s)) {}
};
struct LetStmt : StmtNode {
  static constexpr StmtKind kKind = StmtKind::LetStmt;
  VarRef var;
  Expr value;
  Stmt body;
  LetStmt(VarRef v, Expr x, Stmt b)
      : StmtNode(StmtKind::LetStmt), var(std::move(v)), value(std::move(x)), body(std::move(b)) {}
};

/// The node as a `T` if it is one, else null (also for null).
template <typename T>
const T* as(const Expr& e) {
  return e && e->kind == T::kKind ? static_cast<const T*>(e.get()) : nullptr;
}
template <typename T>
const T* as(const Stmt& s) {
  return s && s->kind == T::kKind ? static_cast<const T*>(s.get()) : nullptr;
}

}  // namespace locution::loop
