// verify names what is wrong with functions made by hand.
#include <gtest/gtest.h>

#include "loop/build.h"
#include "loop/passes.h"

namespace locution::loop {
namespace {

struct Verify : ::testing::Test {
  BufferRef in = makeBuffer("in", {DType::F32, 1}, {8}), out = makeBuffer("out", {DType::F32, 1}, {8});
  VarRef i = makeVar("i"), j = makeVar("j");
  Expr one = constant(DType::F32, 1);
  std::string problem(Stmt body, int64_t parallelExtent = 1) {
    return verify(Function{"f", {in, out}, 1, body, parallelExtent}).message();
  }
  Stmt loop(VarRef v, LoopKind kind, Stmt body) { return forLoop(v, index(0), index(8), kind, body); }
};

TEST_F(Verify, DefinitionsAndAccesses) {
  EXPECT_EQ(problem(loop(i, LoopKind::Serial, store(out, {i}, one))), "");
  EXPECT_NE(problem(store(out, {i}, one)).find("variable i is not defined"), std::string::npos);
  EXPECT_NE(problem(store(in, {index(0)}, one)).find("store to input in"), std::string::npos);
  BufferRef other = makeBuffer("other", {DType::F32, 1}, {8}, Scope::Stack);
  EXPECT_NE(problem(store(other, {index(0)}, one)).find("buffer other is neither"), std::string::npos);
  EXPECT_EQ(problem(allocate(other, store(other, {index(0)}, one))), "");
  EXPECT_NE(problem(std::make_shared<Store>(out, std::vector<Expr>{}, one, nullptr)).find("has 1 dims, not 0"),
            std::string::npos);
  EXPECT_NE(problem(std::make_shared<Store>(out, std::vector<Expr>{index(0)}, constant(DType::F64, 1), nullptr))
                .find("another type"),
            std::string::npos);
  EXPECT_NE(
      problem(std::make_shared<Store>(out, std::vector<Expr>{intImm(DType::I32, 0)}, one, nullptr)).find("not int64"),
      std::string::npos);
  EXPECT_NE(
      problem(std::make_shared<Store>(out, std::vector<Expr>{index(0)}, one, intImm(DType::Bool, 1))).find("mask"),
      std::string::npos);
}

TEST_F(Verify, LoopKinds) {
  Stmt body = store(out, {i}, one);
  EXPECT_EQ(problem(loop(i, LoopKind::Parallel, body), 8), "");
  EXPECT_NE(problem(loop(i, LoopKind::Parallel, body), 1), "");
  EXPECT_NE(problem(loop(i, LoopKind::Serial, body), 8), "");
  EXPECT_NE(problem(loop(j, LoopKind::Serial, loop(i, LoopKind::Parallel, body))).find("not the outermost"),
            std::string::npos);
  EXPECT_NE(problem(loop(j, LoopKind::Vector, loop(i, LoopKind::Vector, body))).find("within another"),
            std::string::npos);
  EXPECT_NE(
      problem(loop(j, LoopKind::Serial, forLoop(i, index(0), j, LoopKind::Unrolled, body))).find("constant extent"),
      std::string::npos);
  EXPECT_NE(problem(loop(i, LoopKind::Serial, loop(i, LoopKind::Serial, body))).find("bound twice"), std::string::npos);
  EXPECT_EQ(problem(block({loop(i, LoopKind::Serial, body), loop(i, LoopKind::Serial, body)})), "");
}

TEST_F(Verify, Types) {
  auto stored = [&](Expr e) { return problem(std::make_shared<Store>(out, std::vector<Expr>{index(0)}, e, nullptr)); };
  Type f32{DType::F32, 1};
  EXPECT_NE(stored(std::make_shared<Binary>(BinaryOp::Add, f32, one, index(1))).find("operands differ"),
            std::string::npos);
  EXPECT_NE(stored(std::make_shared<Binary>(BinaryOp::Lt, f32, one, one)).find("another type"), std::string::npos);
  EXPECT_NE(stored(std::make_shared<Binary>(BinaryOp::Xor, f32, one, one)).find("bitwise"), std::string::npos);
  EXPECT_NE(stored(std::make_shared<Select>(one, one, one)).find("bad condition"), std::string::npos);
  EXPECT_NE(stored(std::make_shared<Call>("frobnicate", f32, std::vector<Expr>{one})).find("no intrinsic"),
            std::string::npos);
  EXPECT_NE(stored(std::make_shared<Call>("popcount", f32, std::vector<Expr>{one})).find("wrong kind"),
            std::string::npos);
  EXPECT_NE(stored(std::make_shared<VectorReduce>(BinaryOp::Add, broadcast(one, 3))).find("vector reduction"),
            std::string::npos);
  EXPECT_EQ(stored(std::make_shared<VectorReduce>(BinaryOp::Max, broadcast(one, 3))), "");
  EXPECT_NE(stored(std::make_shared<Cast>(f32, broadcast(index(1), 4))).find("changes lanes"), std::string::npos);
  EXPECT_NE(problem(std::make_shared<Store>(out, std::vector<Expr>{index(0)}, broadcast(one, 4), nullptr))
                .find("another type"),
            std::string::npos);
}

}  // namespace
}  // namespace locution::loop
