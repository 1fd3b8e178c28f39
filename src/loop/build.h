// Makers of loop IR nodes. They fold constants and obvious identities (x + 0, x * 1, nested broadcasts), check types, and
// broadcast a scalar operand to the lanes of the other.
#pragma once

#include <string>
#include <vector>

#include "loop/expr.h"

namespace locution::loop {

Expr intImm(DType type, int64_t value);
inline Expr index(int64_t value) { return intImm(DType::I64, value); }
Expr floatImm(DType type, double value);
/// A constant of any numeric type or bool.
Expr constant(DType type, double value);
VarRef makeVar(std::string name, Type type = {DType::I64, 1});

Expr binary(BinaryOp op, Expr a, Expr b);
inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::Add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::Sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::Mul, std::move(a), std::move(b)); }
inline Expr operator/(Expr a, Expr b) { return binary(BinaryOp::Div, std::move(a), std::move(b)); }
inline Expr operator+(Expr a, int64_t b) {
  auto t = a->type.dtype;
  return std::move(a) + constant(t, double(b));
}
inline Expr operator-(Expr a, int64_t b) {
  auto t = a->type.dtype;
  return std::move(a) - constant(t, double(b));
}
inline Expr operator*(Expr a, int64_t b) {
  auto t = a->type.dtype;
  return std::move(a) * constant(t, double(b));
}
inline Expr floorDiv(Expr a, Expr b) { return binary(BinaryOp::FloorDiv, std::move(a), std::move(b)); }
inline Expr floorMod(Expr a, Expr b) { return binary(BinaryOp::FloorMod, std::move(a), std::move(b)); }
inline Expr minOf(Expr a, Expr b) { return binary(BinaryOp::Min, std::move(a), std::move(b)); }
inline Expr maxOf(Expr a, Expr b) { return binary(BinaryOp::Max, std::move(a), std::move(b)); }
inline Expr lt(Expr a, Expr b) { return binary(BinaryOp::Lt, std::move(a), std::move(b)); }
inline Expr le(Expr a, Expr b) { return binary(BinaryOp::Le, std::move(a), std::move(b)); }
inline Expr eq(Expr a, Expr b) { return binary(BinaryOp::Eq, std::move(a), std::move(b)); }
inline Expr ne(Expr a, Expr b) { return binary(BinaryOp::Ne, std::move(a), std::move(b)); }
inline Expr logicalAnd(Expr a, Expr b) { return binary(BinaryOp::And, std::move(a), std::move(b)); }
inline Expr logicalOr(Expr a, Expr b) { return binary(BinaryOp::Or, std::move(a), std::move(b)); }
Expr select(Expr condition, Expr yes, Expr no);
Expr logicalNot(Expr a);
Expr cast(DType type, Expr value);
Expr call(const std::string& intrinsic, std::vector<Expr> args);
Expr bitcast(DType type, Expr value);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
Expr vectorReduce(BinaryOp op, Expr value);
Expr let(VarRef var, Expr value, Expr body);
/// A scalar mask makes `select(mask, load, 0)` (and `store` an IfThen): masks in the IR are vectors.
Expr load(BufferRef buffer, std::vector<Expr> indices, Expr mask = nullptr);

BufferRef makeBuffer(std::string name, Type element, const std::vector<int64_t>& dims, Scope scope = Scope::Global);
/// The constant extents; every dim must be constant.
std::vector<int64_t> extents(const Buffer& buffer);

Stmt store(BufferRef buffer, std::vector<Expr> indices, Expr value, Expr mask = nullptr);
Stmt forLoop(VarRef var, Expr min, Expr extent, LoopKind kind, Stmt body);
Stmt block(std::vector<Stmt> stmts);  ///< flattens nested blocks; one statement stays itself
Stmt ifThen(Expr condition, Stmt then, Stmt otherwise = nullptr);
Stmt allocate(BufferRef buffer, Stmt body);
Stmt letStmt(VarRef var, Expr value, Stmt body);

/// The value of an integer constant (IntImm, or a Broadcast of one); nullptr-like false otherwise.
bool isConstInt(const Expr& e, int64_t* value = nullptr);

/// How a reduction combines: identity element, operator.
enum class Combiner : uint8_t { None, Sum, Product, Max, Min, And, Or };
BinaryOp combinerOp(Combiner combiner);
/// 0, 1, -inf (or the lowest integer), inf (or the highest), true, false.
Expr identity(Combiner combiner, DType type);

}  // namespace locution::loop
