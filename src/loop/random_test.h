// Seeded random loop IR for property tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "loop/build.h"
#include "loop/compute.h"
#include "loop/passes.h"

namespace locution::loop::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t in(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % (static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <typename T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(in(0, static_cast<int64_t>(list.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

/// Variables with small ranges, and integer expressions over them as reshapes, tiles and paddings make them.
struct IndexExpressions {
  Random& random;
  std::vector<VarRef> vars;
  Ranges ranges;

  explicit IndexExpressions(Random& r, int count) : random(r) {
    for (int i = 0; i < count; ++i) {
      vars.push_back(makeVar(std::string(1, static_cast<char>('a' + i))));
      int64_t low = r.chance(70) ? 0 : r.in(-5, 5);
      ranges[vars.back().get()] = {low, low + r.in(0, 12)};
    }
  }
  int64_t factor() { return random.pick<int64_t>({1, 2, 3, 4, 6, 7, 8, 12, 16, 24}); }
  Expr condition(int depth) {
    auto op = random.pick<BinaryOp>({BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne});
    Expr c = binary(op, make(depth - 1), make(depth - 1));
    if (depth > 1 && random.chance(30))
      c = binary(random.pick<BinaryOp>({BinaryOp::And, BinaryOp::Or}), c, condition(depth - 1));
    return random.chance(15) ? logicalNot(c) : c;
  }
  Expr make(int depth) {
    if (depth <= 0) return random.chance(75) ? Expr(random.pick(vars)) : index(random.in(-9, 30));
    Expr a = make(depth - 1);
    switch (random.in(0, 11)) {
      case 0:
      case 1:
        return a + make(depth - 1);
      case 2:
        return a - make(depth - 1);
      case 3:
        return a * index(random.chance(80) ? factor() : -factor());
      case 4:
        return a * index(factor()) + make(depth - 1);
      case 5:
      case 6:
        return floorDiv(a, index(factor()));
      case 7:
      case 8:
        return floorMod(a, index(factor()));
      case 9:
        return random.chance(50) ? minOf(a, make(depth - 1)) : maxOf(a, make(depth - 1));
      case 10:
        return select(condition(depth), a, make(depth - 1));
      default: {
        int64_t c = factor();
        switch (random.in(0, 3)) {
          case 0:
            return floorDiv(a, index(c)) * c + floorMod(a, index(c));
          case 1:
            return a * make(depth - 1);
          case 2:
            return a / index(c);
          default:
            return binary(BinaryOp::Mod, a, index(c));
        }
      }
    }
  }
};

/// A function whose one output holds `e` at every point of the variables' ranges (as int64 or bool).
inline Function tabulate(const std::vector<Expr>& expressions, const std::vector<VarRef>& vars, const Ranges& ranges) {
  Function f;
  f.name = "tabulate";
  std::vector<int64_t> dims;
  std::vector<Expr> at;
  for (const VarRef& v : vars) {
    Range r = ranges.at(v.get());
    dims.push_back(r.max - r.min + 1);
    at.push_back(Expr(v) - index(r.min));
  }
  std::vector<Stmt> stores;
  for (size_t i = 0; i < expressions.size(); ++i) {
    f.params.push_back(makeBuffer("out" + std::to_string(i), expressions[i]->type, dims));
    stores.push_back(store(f.params.back(), at, expressions[i]));
  }
  f.outputCount = f.params.size();
  f.body = block(std::move(stores));
  for (size_t i = vars.size(); i-- > 0;) {
    Range r = ranges.at(vars[i].get());
    f.body = forLoop(vars[i], index(r.min), index(r.max - r.min + 1), LoopKind::Serial, f.body);
  }
  return f;
}

/// Zeroed tensors for the parameters; inputs get small values that every type holds exactly.
inline std::vector<Tensor> tensorsFor(const Function& f, uint64_t seed) {
  Random r(seed);
  std::vector<Tensor> out;
  for (size_t i = 0; i < f.params.size(); ++i) {
    Tensor t(f.params[i]->element.dtype, extents(*f.params[i]));
    if (i + f.outputCount < f.params.size())
      for (int64_t k = 0; k < t.elements(); ++k)
        t.setElement(k, static_cast<double>(r.in(isUnsignedInt(t.dtype()) ? 0 : -8, 8)));
    out.push_back(t);
  }
  return out;
}

/// Functions of every node kind that verify and never index out of range.
class RandomFunctions {
 public:
  explicit RandomFunctions(uint64_t seed) : random_(seed) {}

  Function make() {
    Function f;
    f.name = random_.chance(80) ? "kernel" : "a \"strange\" name";
    int64_t inputs = random_.in(1, 3);
    for (int64_t i = 0; i < inputs; ++i) f.params.push_back(newBuffer(Scope::Global, 1));
    f.params.push_back(newBuffer(Scope::Global, 1));
    f.outputCount = 1;
    readable_ = {f.params.begin(), f.params.end()};
    writable_ = {f.params.back()};
    bool parallel = random_.chance(30);
    f.body = parallel ? loop(LoopKind::Parallel, 3) : stmt(4);
    auto* outer = as<For>(f.body);
    if (outer && outer->loop == LoopKind::Parallel) isConstInt(outer->extent, &f.parallelExtent);
    return f;
  }

  /// Stages of every combiner, scans, epilogues, each reading those before; sometimes raw loops.
  Computation makeComputation() {
    Computation c;
    if (random_.chance(15)) {
      Function f = make();
      c.name = f.name;
      c.inputs.assign(f.params.begin(), f.params.end() - 1);
      c.outputs = {f.params.back()};
      c.raw = f.body;
    } else {
      c.name = random_.chance(80) ? "kernel" : "a \"strange\" name";
      for (int64_t i = random_.in(1, 3); i > 0; --i) c.inputs.push_back(newBuffer(Scope::Global, 1));
      readable_ = c.inputs;
      for (int64_t i = random_.in(1, 4); i > 0; --i) {
        c.stages.push_back(stage());
        readable_.push_back(c.stages.back().out);
        if (readable_.back()->scope == Scope::Global && (i == 1 || random_.chance(30)))
          c.outputs.push_back(readable_.back());
      }
      if (c.outputs.empty()) return makeComputation();
      if (random_.chance(30)) std::reverse(c.outputs.begin(), c.outputs.end());
    }
    for (const BufferRef& b : c.inputs)
      if (random_.chance(40)) c.constants.push_back(b);
    return c;
  }

 private:
  Stage stage() {
    Stage s;
    std::vector<int64_t> dims;
    for (int64_t i = random_.in(0, 3); i > 0; --i) dims.push_back(random_.in(1, 5));
    for (int64_t d : dims) s.axes.push_back({newVar({DType::I64, 1}), d});
    Type type{dtype(), 1};
    if (random_.chance(70)) {
      std::vector<Combiner> combiners{Combiner::Sum, Combiner::Product, Combiner::Max, Combiner::Min};
      if (!isFloat(type.dtype)) combiners.push_back(Combiner::And), combiners.push_back(Combiner::Or);
      s.combiner = random_.pick(combiners);
      s.scan = !dims.empty() && random_.chance(30);
      s.scanExclusive = s.scan && random_.chance(50);
      s.scanReverse = s.scan && random_.chance(50);
      if (!s.scan)
        for (int64_t i = random_.in(0, 2); i > 0; --i) s.reduce.push_back({newVar({DType::I64, 1}), random_.in(1, 4)});
    }
    for (const auto* list : {&s.axes, &s.reduce})
      for (const Axis& a : *list) vars_.push_back(a.var);
    s.body = expr(type, static_cast<int>(random_.in(0, 3)));
    vars_.resize(s.axes.size());
    if (random_.chance(50)) {
      s.acc = newVar(type);
      vars_.push_back(s.acc);
      type.dtype = dtype();
      s.epilogue = expr(type, static_cast<int>(random_.in(0, 3)));
    }
    vars_.clear();
    s.out = makeBuffer(random_.pick<std::string>({"A", "sum", "tmp.1"}), type, dims,
                       random_.chance(80) ? Scope::Global : Scope::Stack);
    return s;
  }
  DType dtype() {
    return random_.pick<DType>({DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16, DType::I8, DType::I32,
                                DType::I64, DType::U8, DType::U64, DType::Bool, DType::F8E4M3FN});
  }
  BufferRef newBuffer(Scope scope, int lanes) {
    std::vector<int64_t> dims;
    for (int64_t i = random_.in(0, 2); i >= 0; --i) dims.push_back(random_.in(1, 6));
    if (random_.chance(10)) dims.clear();
    return makeBuffer(random_.pick<std::string>({"A", "B", "weights:0", "for", "x"}), {dtype(), lanes}, dims, scope);
  }
  VarRef newVar(Type type) { return makeVar(random_.pick<std::string>({"i", "j", "i", "k.1", "exp"}), type); }

  /// An index below `extent`.
  Expr indexBelow(int64_t extent, int lanes) {
    Expr e = intExpr(2);
    if (lanes > 1) e = random_.chance(70) ? ramp(e, index(random_.in(1, 2)), lanes) : broadcast(e, lanes);
    return floorMod(e, index(extent));
  }
  Expr intExpr(int depth) {
    std::vector<VarRef> ints;
    for (const VarRef& v : vars_)
      if (v->type == Type{DType::I64, 1}) ints.push_back(v);
    if (depth <= 0) return !ints.empty() && random_.chance(80) ? Expr(random_.pick(ints)) : index(random_.in(-3, 20));
    auto op = random_.pick<BinaryOp>({BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv,
                                      BinaryOp::FloorMod, BinaryOp::Min, BinaryOp::Max});
    return binary(op, intExpr(depth - 1), intExpr(depth - 1));
  }

  Expr leaf(Type t) {
    std::vector<BufferRef> fitting;
    for (const BufferRef& b : readable_)
      if (b->element.dtype == t.dtype && (b->element.lanes == 1 || b->element.lanes == t.lanes)) fitting.push_back(b);
    std::vector<VarRef> vars;
    for (const VarRef& v : vars_)
      if (v->type == t) vars.push_back(v);
    if (!vars.empty() && random_.chance(40)) return random_.pick(vars);
    if (!fitting.empty() && random_.chance(70)) {
      BufferRef b = random_.pick(fitting);
      int lanes = b->element.lanes == 1 ? t.lanes : 1;
      std::vector<Expr> at;
      for (int64_t d : extents(*b)) at.push_back(indexBelow(d, lanes));
      bool vector = b->element.lanes > 1;
      for (const Expr& i : at) vector = vector || i->type.lanes > 1;
      return broadcast(load(b, at, vector && random_.chance(30) ? expr({DType::Bool, t.lanes}, 1) : nullptr), t.lanes);
    }
    double v = static_cast<double>(random_.in(isUnsignedInt(t.dtype) ? 0 : -20, 20));
    if (isFloat(t.dtype))
      v = random_.pick<double>(
          {v, v / 7, 1e-30, 1e30, 0.1, -0.0, std::numeric_limits<double>::infinity(), std::nan("")});
    return broadcast(constant(t.dtype, v), t.lanes);
  }

  Expr expr(Type t, int depth) {
    if (depth <= 0) return leaf(t);
    if (t.dtype == DType::Bool && random_.chance(60)) {
      Type in{dtype(), t.lanes};
      auto op = random_.pick<BinaryOp>({BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le});
      return binary(op, expr(in, depth - 1), expr(in, depth - 1));
    }
    switch (random_.in(0, 9)) {
      case 0:
        return cast(t.dtype, expr({dtype(), t.lanes}, depth - 1));
      case 1:
        return select(expr({DType::Bool, random_.chance(50) ? 1 : t.lanes}, depth - 1), expr(t, depth - 1),
                      expr(t, depth - 1));
      case 2:
        if (t.lanes == 1)
          return vectorReduce(random_.pick<BinaryOp>({BinaryOp::Min, BinaryOp::Max}), expr(t.withLanes(4), depth - 1));
        return broadcast(expr(t.withLanes(1), depth - 1), t.lanes);
      case 3: {
        VarRef v = newVar(t);
        Expr value = expr(t, depth - 1);
        vars_.push_back(v);
        Expr body = expr(t, depth - 1);
        vars_.pop_back();
        return let(v, value, body);
      }
      case 4:
        if (isFloat(t.dtype))
          return call(random_.pick<std::string>({"abs", "sqrt", "floor", "round_even", "exp", "tanh"}),
                      {expr(t, depth - 1)});
        return call("not", {expr(t, depth - 1)});
      case 5:
        if (t.dtype == DType::F32) return bitcast(t.dtype, expr({DType::I32, t.lanes}, depth - 1));
        if (t.dtype == DType::Bool) return call("isnan", {expr({DType::F32, t.lanes}, depth - 1)});
        [[fallthrough]];
      default: {
        std::vector<BinaryOp> ops{BinaryOp::Min, BinaryOp::Max};
        if (t.dtype != DType::Bool)
          for (BinaryOp op : {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Mod,
                              BinaryOp::FloorDiv, BinaryOp::FloorMod})
            ops.push_back(op);
        if (!isFloat(t.dtype))
          for (BinaryOp op : {BinaryOp::And, BinaryOp::Or, BinaryOp::Xor}) ops.push_back(op);
        if (isInteger(t.dtype)) ops.push_back(BinaryOp::Shl), ops.push_back(BinaryOp::Shr);
        return binary(random_.pick(ops), expr(t, depth - 1), expr(t, depth - 1));
      }
    }
  }

  Stmt storeStmt() {
    BufferRef b = random_.pick(writable_);
    int lanes = b->element.lanes == 1 && random_.chance(40) && !b->dims.empty() ? 4 : 1;
    std::vector<Expr> at;
    bool vector = b->element.lanes > 1;
    for (int64_t d : extents(*b)) {
      at.push_back(indexBelow(d, lanes));
      vector = vector || at.back()->type.lanes > 1;
    }
    Type t = b->element.withLanes(vector ? std::max(lanes, b->element.lanes) : 1);
    return store(b, at, expr(t, static_cast<int>(random_.in(0, 3))),
                 vector && random_.chance(30) ? expr({DType::Bool, t.lanes}, 2) : nullptr);
  }
  Stmt loop(LoopKind kind, int depth) {
    VarRef v = newVar({DType::I64, 1});
    bool constant = kind != LoopKind::Serial || random_.chance(60);
    Expr min = random_.chance(60) ? index(0) : intExpr(1);
    Expr extent = constant ? index(random_.in(1, 4)) : floorMod(intExpr(1), index(3));
    vars_.push_back(v);
    Stmt body = stmt(depth - 1);
    vars_.pop_back();
    return forLoop(v, min, extent, kind, body);
  }
  Stmt stmt(int depth) {
    if (depth <= 0) return storeStmt();
    switch (random_.in(0, 7)) {
      case 0:
      case 1:
        return loop(random_.pick<LoopKind>({LoopKind::Serial, LoopKind::Serial, LoopKind::Unrolled}), depth);
      case 2:
      case 3: {
        std::vector<Stmt> list;
        for (int64_t i = random_.in(0, 3); i >= 0; --i) list.push_back(stmt(depth - 1));
        return block(list);
      }
      case 4:
        return ifThen(expr({DType::Bool, 1}, 2), stmt(depth - 1), random_.chance(50) ? stmt(depth - 1) : nullptr);
      case 5: {
        BufferRef b = newBuffer(random_.pick<Scope>({Scope::Stack, Scope::Register}), random_.chance(40) ? 4 : 1);
        readable_.push_back(b), writable_.push_back(b);
        Stmt body = block({storeStmt(), stmt(depth - 1)});
        readable_.pop_back(), writable_.pop_back();
        return allocate(b, body);
      }
      case 6: {
        VarRef v = newVar({dtype(), random_.chance(30) ? 4 : 1});
        Expr value = expr(v->type, 2);
        vars_.push_back(v);
        Stmt body = stmt(depth - 1);
        vars_.pop_back();
        return letStmt(v, value, body);
      }
      default:
        return storeStmt();
    }
  }

  Random random_;
  std::vector<VarRef> vars_;
  std::vector<BufferRef> readable_, writable_;
};

}  // namespace locution::loop::testing
