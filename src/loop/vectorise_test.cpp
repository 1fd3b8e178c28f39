// vectorise: the forms it must give, and equality with the interpreter on the loops as they were.
#include <gtest/gtest.h>

#include <cmath>

#include "loop/build.h"
#include "loop/interpreter.h"
#include "loop/passes.h"
#include "loop/random_test.h"

namespace locution::loop {
namespace {

using testing::Random;

bool hasLoop(const Stmt& s, LoopKind kind) {
  bool found = false;
  visit(
      s, [&](const Stmt& x) { return found = found || (as<For>(x) && as<For>(x)->loop == kind), true; },
      [](const Expr&) { return false; });
  return found;
}

/// Vectorised, verified, and run next to the original on the same inputs.
Stmt checked(Function f, uint64_t seed = 1) {
  EXPECT_TRUE(verify(f).isOk()) << verify(f).message() << print(f);
  Function g = f;
  g.body = vectorise(f.body);
  EXPECT_TRUE(verify(g).isOk()) << verify(g).message() << print(f) << print(g);
  EXPECT_FALSE(hasLoop(g.body, LoopKind::Vector)) << print(g);
  std::vector<Tensor> a = testing::tensorsFor(f, seed), b = testing::tensorsFor(f, seed);
  Status ra = interpret(f, a), rb = interpret(g, b);
  EXPECT_TRUE(ra.isOk()) << ra.message() << print(f);
  EXPECT_TRUE(rb.isOk()) << rb.message() << print(f) << print(g);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].identical(b[i])) << "seed " << seed << " parameter " << i << "\n" << print(f) << print(g);
  return g.body;
}

struct Vectorise : ::testing::Test {
  BufferRef a = makeBuffer("A", {DType::F32, 1}, {4, 64}), b = makeBuffer("B", {DType::F32, 1}, {64, 4});
  BufferRef c = makeBuffer("C", {DType::F32, 1}, {4, 64});
  VarRef i = makeVar("i"), j = makeVar("j"), k = makeVar("k"), v = makeVar("v");
  Expr I = i, J = j, K = k, V = v;
  Expr zero = constant(DType::F32, 0);
  Stmt serial(VarRef var, int64_t n, Stmt body) { return forLoop(var, index(0), index(n), LoopKind::Serial, body); }
  Stmt vector(int64_t n, Stmt body) { return forLoop(v, index(0), index(n), LoopKind::Vector, body); }
  Function fn(Stmt body) { return {"f", {a, b, c}, 1, body}; }
};

TEST_F(Vectorise, LoadsAndStoresBecomeRamps) {
  Stmt s = serial(
      i, 4, serial(j, 4, vector(16, store(c, {I, J * 16 + V}, load(a, {I, J * 16 + V}) * load(a, {I, index(3)})))));
  EXPECT_EQ(print(checked(fn(s))),
            "for i in 0..4 {\n  for j in 0..4 {\n    C[i, ramp(j * 16, 1, 16)] = A[i, ramp(j * 16, 1, 16)] * "
            "broadcast(A[i, 3], 16)\n  }\n}\n");
}

TEST_F(Vectorise, WhatIsUniformStaysScalar) {
  Expr flat = J * 16 + V;
  Stmt s = serial(j, 4,
                  vector(16, store(c, {floorDiv(flat, index(32)), floorMod(flat, index(64))},
                                   load(b, {floorMod(flat, index(64)), index(1)}))));
  EXPECT_EQ(print(checked(fn(s))),
            "for j in 0..4 {\n  C[j // 2, ramp(j * 16, 1, 16)] = B[ramp(j * 16, 1, 16), 1]\n}\n");
}

TEST_F(Vectorise, ConditionsBecomeMasks) {
  Stmt s = serial(
      j, 5,
      vector(16, ifThen(lt(J * 16 + V, index(60)), store(c, {index(0), J * 16 + V}, load(a, {index(1), J * 16 + V})))));
  std::string text = print(checked(fn(s)));
  EXPECT_EQ(text,
            "for j in 0..5 {\n  C[0, ramp(j * 16, 1, 16); ramp(j * 16, 1, 16) < broadcast(60, 16)] = A[1, ramp(j * 16, "
            "1, 16); ramp(j * 16, 1, 16) < "
            "broadcast(60, 16)]\n}\n");
}

TEST_F(Vectorise, PaddingGuardsItsLoad) {
  Expr at = V - 1;
  Expr padded = select(logicalAnd(le(index(0), at), lt(at, index(10))), load(a, {index(0), at}), zero);
  Stmt s = vector(16, store(c, {index(0), V}, padded));
  std::string text = print(checked(fn(s)));
  EXPECT_NE(text.find("A[0, ramp(-1, 1, 16); "), std::string::npos) << text;
  // A load that is always in range needs no mask.
  s = vector(16, store(c, {index(0), V}, select(lt(zero, load(a, {index(1), V})), load(a, {index(2), V}), zero)));
  EXPECT_EQ(print(checked(fn(s))),
            "C[0, ramp(0, 1, 16)] = select(broadcast(0.0, 16) < A[1, ramp(0, 1, 16)], A[2, ramp(0, 1, 16)], "
            "broadcast(0.0, 16))\n");
}

TEST_F(Vectorise, PrivateAccumulatorsBecomeVectors) {
  BufferRef acc = makeBuffer("acc", {DType::F32, 1}, {1}, Scope::Register);
  std::vector<Expr> at{index(0)};
  Stmt body = allocate(
      acc, block({store(acc, at, zero),
                  serial(k, 8, store(acc, at, load(acc, at) + load(a, {I, K}) * load(b, {V, floorMod(K, index(4))}))),
                  store(c, {I, V}, load(acc, at))}));
  std::string text = print(checked(fn(serial(i, 4, vector(16, body)))));
  EXPECT_NE(text.find("register acc: float32x16[1] {"), std::string::npos) << text;
  EXPECT_NE(text.find("acc[0] = acc[0] + broadcast(A[i, k], 16) * B[ramp(0, 1, 16), k %% 4]"), std::string::npos)
      << text;
}

TEST_F(Vectorise, OuterTilesOfWholeVectorsArePromoted) {
  BufferRef acc = makeBuffer("acc", {DType::F32, 1}, {2, 32}, Scope::Register);
  VarRef r = makeVar("r"), n = makeVar("n");
  std::vector<Expr> at{r, Expr(n) * 16 + V};
  auto tile = [&](Stmt s) { return serial(r, 2, serial(n, 2, vector(16, s))); };
  Stmt s =
      allocate(acc, block({tile(store(acc, at, zero)),
                           serial(k, 4, tile(store(acc, at, load(acc, at) + load(a, {r, K}) * load(a, {K, at[1]})))),
                           tile(store(c, at, load(acc, at)))}));
  std::string text = print(checked(fn(s)));
  EXPECT_NE(text.find("register acc: float32x16[2, 2] {"), std::string::npos) << text;
  EXPECT_NE(text.find("acc[r, n] = acc[r, n] + broadcast(A[r, k], 16) * A[k, ramp(n * 16, 1, 16)]"), std::string::npos)
      << text;
}

TEST_F(Vectorise, LaneIndexedPrivateBuffersGetAnInnerDim) {
  BufferRef t = makeBuffer("t", {DType::F32, 1}, {4}, Scope::Stack);
  Stmt body = allocate(t, block({serial(k, 4, store(t, {K}, load(a, {K, V}))),
                                 store(c, {index(0), V}, load(t, {floorMod(V, index(4))}))}));
  std::string text = print(checked(fn(vector(8, body))));
  EXPECT_NE(text.find("stack t: float32[4, 8]"), std::string::npos) << text;
}

TEST_F(Vectorise, WithoutAVectorFormItStaysSerial) {
  // A sum into one place, an inner loop of varying length.
  Stmt sum = vector(16, store(c, {index(0), index(0)}, load(c, {index(0), index(0)}) + load(a, {index(0), V})));
  EXPECT_TRUE(hasLoop(checked(fn(sum)), LoopKind::Serial));
  Stmt triangle = vector(8, forLoop(k, index(0), V, LoopKind::Serial, store(c, {index(0), V}, load(a, {index(0), K}))));
  EXPECT_TRUE(hasLoop(checked(fn(triangle)), LoopKind::Serial));
}

TEST_F(Vectorise, TheConditionIsReadBeforeTheBranchWrites) {
  std::vector<Expr> at{index(0), V};
  Stmt s = vector(16, block({store(c, at, load(a, at)),
                             ifThen(lt(zero, load(c, at)),
                                    block({store(c, at, zero - load(c, at)), store(c, {index(1), V}, load(c, at))}),
                                    store(c, {index(2), V}, load(c, at)))}));
  checked(fn(s));
}

/// Bodies of vector loops whose iterations are independent: outputs are written at the lane's own place only.
class RandomBodies {
 public:
  RandomBodies(Random& r, VarRef lane, BufferRef in, BufferRef ints, BufferRef out)
      : r_(r), lane_(lane), in_(in), ints_(ints), out_(out), vars_{lane} {}

  Stmt stmt(int depth) {
    if (depth <= 0) return storeStmt();
    switch (r_.in(0, 7)) {
      case 0:
      case 1: {
        std::vector<Stmt> list;
        for (int64_t n = r_.in(1, 3); n > 0; --n) list.push_back(stmt(depth - 1));
        return block(list);
      }
      case 2: {
        VarRef k = makeVar("k");
        vars_.push_back(k);
        Stmt body = stmt(depth - 1);
        vars_.pop_back();
        return forLoop(k, r_.chance(70) ? index(0) : uniform(), index(r_.in(1, 3)), LoopKind::Serial, body);
      }
      case 3:
        return ifThen(condition(), stmt(depth - 1), r_.chance(50) ? stmt(depth - 1) : nullptr);
      case 4: {
        BufferRef b = makeBuffer("t", {DType::F32, 1}, {4}, Scope::Stack);
        VarRef z = makeVar("z");
        Stmt init = forLoop(z, index(0), index(4), LoopKind::Serial, store(b, {z}, value(1)));
        locals_.push_back(b);
        Stmt body = block({init, stmt(depth - 1), stmt(depth - 1)});
        locals_.pop_back();
        return allocate(b, body);
      }
      case 5: {
        VarRef x = makeVar("x", {DType::F32, 1});
        Expr initial = value(2);
        floats_.push_back(x);
        Stmt body = stmt(depth - 1);
        floats_.pop_back();
        return letStmt(x, initial, body);
      }
      default:
        return storeStmt();
    }
  }

 private:
  Expr place() { return Expr(lane_) * 2 + index(r_.in(0, 1)); }
  Expr uniform() {
    std::vector<VarRef> others(vars_.begin() + 1, vars_.end());
    return others.empty() || r_.chance(40) ? index(r_.in(0, 3)) : Expr(r_.pick(others));
  }
  Expr any(int depth) {
    if (depth <= 0) return r_.chance(25) ? index(r_.in(-4, 40)) : Expr(r_.pick(vars_));
    auto op = r_.pick<BinaryOp>({BinaryOp::Add, BinaryOp::Sub, BinaryOp::Add, BinaryOp::Max});
    if (r_.chance(30))
      return r_.chance(50) ? floorDiv(any(depth - 1), index(r_.in(1, 5))) : any(depth - 1) * r_.in(1, 4);
    return binary(op, any(depth - 1), any(depth - 1));
  }
  Expr condition() {
    switch (r_.in(0, 3)) {
      case 0:
        return lt(any(1), any(1));
      case 1:
        return lt(value(1), value(1));
      case 2:
        return logicalAnd(le(any(1), any(1)), lt(any(0), index(r_.in(0, 8))));
      default:
        return lt(uniform(), index(2));
    }
  }
  Expr value(int depth) {
    if (depth <= 0) {
      switch (r_.in(0, 5)) {
        case 0:
          return constant(DType::F32, static_cast<double>(r_.in(-3, 3)));
        case 1:
          return cast(DType::F32, any(1));
        case 2: {  // guarded: the index may be anywhere
          Expr at = r_.chance(70) ? any(2) : load(ints_, {floorMod(any(1), index(64))}) * 3;
          return select(logicalAnd(le(index(0), at), lt(at, index(64))), load(in_, {at}), constant(DType::F32, 7));
        }
        case 3:
          return load(out_, {place()});
        case 4:
          if (!floats_.empty()) return r_.pick(floats_);
          [[fallthrough]];
        default:
          return locals_.empty() ? load(in_, {floorMod(any(1), index(64))})
                                 : load(r_.pick(locals_), {floorMod(r_.chance(60) ? uniform() : any(1), index(4))});
      }
    }
    switch (r_.in(0, 4)) {
      case 0:
        return select(condition(), value(depth - 1), value(depth - 1));
      case 1:
        return maxOf(value(depth - 1), value(depth - 1));
      case 2: {
        VarRef y = makeVar("y", {DType::F32, 1});
        Expr v = value(depth - 1);
        floats_.push_back(y);
        Expr body = value(depth - 1);
        floats_.pop_back();
        return let(y, v, body);
      }
      case 3:
        return value(depth - 1) * value(depth - 1);
      default:
        return value(depth - 1) + value(depth - 1);
    }
  }
  Stmt storeStmt() {
    if (!locals_.empty() && r_.chance(50))
      return store(r_.pick(locals_), {floorMod(r_.chance(70) ? uniform() : any(1), index(4))}, value(2));
    return store(out_, {place()}, value(2));
  }

  Random& r_;
  VarRef lane_;
  BufferRef in_, ints_, out_;
  std::vector<VarRef> vars_, floats_;
  std::vector<BufferRef> locals_;
};

TEST(VectoriseRandom, AgreesWithTheSerialLoop) {
  int vectorised = 0, total = 800;
  for (int seed = 0; seed < total; ++seed) {
    Random random(static_cast<uint64_t>(seed));
    BufferRef in = makeBuffer("in", {DType::F32, 1}, {64}), ints = makeBuffer("ints", {DType::I64, 1}, {64});
    BufferRef out = makeBuffer("out", {DType::F32, 1}, {64});
    VarRef v = makeVar("v"), i = makeVar("i");
    Stmt body = RandomBodies(random, v, in, ints, out).stmt(4);
    int64_t lanes = random.pick<int64_t>({2, 4, 8, 16});
    Function f{"f", {in, ints, out}, 1, forLoop(v, index(random.in(0, 8)), index(lanes), LoopKind::Vector, body)};
    Stmt s = checked(f, static_cast<uint64_t>(seed));
    auto* outer = as<For>(s);
    vectorised += !(outer && outer->loop == LoopKind::Serial && outer->var == v);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(vectorised, total * 3 / 4);
}

TEST(SimplifyRandom, FunctionsComputeTheSame) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Function f = testing::RandomFunctions(seed).make(), g = f;
    g.body = simplify(f.body);
    auto* outer = as<For>(g.body);
    g.parallelExtent = outer && outer->loop == LoopKind::Parallel ? f.parallelExtent : 1;
    ASSERT_TRUE(verify(g).isOk()) << seed << verify(g).message() << print(f) << print(g);
    std::vector<Tensor> a = testing::tensorsFor(f, seed), b = testing::tensorsFor(f, seed);
    Status ra = interpret(f, a), rb = interpret(g, b);
    ASSERT_TRUE(ra.isOk()) << ra.message() << print(f);
    ASSERT_TRUE(rb.isOk()) << rb.message() << print(f) << print(g);
    for (int64_t k = 0; k < a.back().elements(); ++k) {
      double x = a.back().elementAsDouble(k), y = b.back().elementAsDouble(k);
      ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << seed << "\n" << print(f) << print(g);
    }
  }
}

}  // namespace
}  // namespace locution::loop
