#include <gtest/gtest.h>

#include <numeric>

#include "ops/one_node.h"

namespace locution::ops {
namespace {

Tensor iota(std::vector<int64_t> dims) {
  Tensor t(DType::F32, std::move(dims));
  std::iota(t.data<float>(), t.data<float>() + t.elements(), 0.F);
  return t;
}

TEST(Reshape, MapsIndices) {
  OneNode split("Reshape");
  expectRun(split.in(iota({2, 6})).constant(i64({3}, {0, 2, -1})), {2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  OneNode uneven("Reshape");
  expectRun(uneven.in(iota({4, 3})).constant(i64({3}, {2, 1, 6})), {2, 1, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  OneNode scalar("Reshape");
  expectRun(scalar.in(iota({1, 1})).constant(i64({0}, {})), {}, {0});
  OneNode empty("Reshape");
  expectRun(empty.attr("allowzero", int64_t{1}).in(iota({0, 3})).constant(i64({2}, {3, 0})), {3, 0}, {});
  OneNode flat("Flatten");
  expectRun(flat.attr("axis", int64_t{-1}).in(iota({2, 1, 2})), {2, 2}, {0, 1, 2, 3});
  OneNode squeeze("Squeeze");
  expectRun(squeeze.in(iota({1, 3, 1})).constant(i64({1}, {-1})), {1, 3}, {0, 1, 2});
  OneNode unsqueeze("Unsqueeze");
  expectRun(unsqueeze.in(iota({3})).constant(i64({2}, {0, -1})), {1, 3, 1}, {0, 1, 2});
}

TEST(Reshape, Messages) {
  auto message = [](std::vector<int64_t> to) {
    auto n = static_cast<int64_t>(to.size());
    return OneNode("Reshape").type({DType::F32, {2, 3}}).constant(i64({n}, to)).inferred();
  };
  EXPECT_EQ(message({4}), "can't reshape 2x3 to 4: 6 and 4 elements");
  EXPECT_EQ(message({-1, 4}), "can't reshape 2x3 to -1x4: the number of elements doesn't divide");
  EXPECT_EQ(message({-1, -1}), "the new shape has more than one -1");
  EXPECT_EQ(message({2, 3, 0}), "0 at position 2 copies a dimension that the input 2x3 doesn't have");
  EXPECT_EQ(message({-5}), "the new shape has the extent -5");
  EXPECT_EQ(OneNode("Squeeze").type({DType::F32, {2, 3}}).constant(i64({1}, {1})).inferred(),
            "dimension 1 of 2x3 isn't 1 and can't be squeezed");
  EXPECT_EQ(OneNode("Unsqueeze").type({DType::F32, {2}}).constant(i64({2}, {0, 0})).inferred(),
            "axis 0 is given twice");
}

TEST(Transpose, Permutes) {
  OneNode plain("Transpose");
  expectRun(plain.in(iota({2, 3})), {3, 2}, {0, 3, 1, 4, 2, 5});
  OneNode perm("Transpose");
  expectRun(perm.attr("perm", std::vector<int64_t>{1, 2, 0}).in(iota({2, 1, 3})), {1, 3, 2}, {0, 3, 1, 4, 2, 5});
  EXPECT_EQ(OneNode("Transpose").attr("perm", std::vector<int64_t>{0, 0}).type({DType::F32, {2, 3}}).inferred(),
            "attribute 'perm' isn't a permutation of 2 dimensions");
  EXPECT_EQ(OneNode("Transpose").attr("perm", std::vector<int64_t>{0}).type({DType::F32, {}}).inferred(),
            "attribute 'perm' isn't a permutation of 0 dimensions");
}

TEST(Concat, AlongAnyAxisAndEmpty) {
  OneNode node("Concat");
  expectRun(node.attr("axis", int64_t{-1}).in(iota({2, 1})).in(iota({2, 0})).in(iota({2, 2})), {2, 3},
            {0, 0, 1, 1, 2, 3});
  OneNode rows("Concat");
  expectRun(rows.attr("axis", int64_t{0}).in(iota({1, 2})).in(iota({2, 2})), {3, 2}, {0, 1, 0, 1, 2, 3});
  EXPECT_EQ(OneNode("Concat").attr("axis", int64_t{0}).type({DType::F32, {2, 3}}).type({DType::F32, {2, 4}}).inferred(),
            "dimension 1 of inputs 0 and 1: 3 and 4 differ");
}

TEST(Split, EvenUnevenAndTold) {
  OneNode uneven("Split");
  auto got = uneven.attr("num_outputs", int64_t{2}).in(iota({5})).outputs(2).run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {3}, {0, 1, 2});
  expectTensor((*got)[1], {2}, {3, 4});
  OneNode told("Split");
  got = told.attr("axis", int64_t{1}).in(iota({2, 3})).constant(i64({2}, {1, 2})).outputs(2).run();
  ASSERT_TRUE(got.isOk()) << got.status().message();
  expectTensor((*got)[0], {2, 1}, {0, 3});
  expectTensor((*got)[1], {2, 2}, {1, 2, 4, 5});
  EXPECT_EQ(OneNode("Split").type({DType::F32, {5}}).constant(i64({2}, {1, 2})).outputs(2).inferred(),
            "the sum of the split's sizes and the extent that is split: 3 and 5 differ");
  EXPECT_EQ(OneNode("Split").type({DType::F32, {5}}).outputs(4).inferred(),
            "an extent of 5 can't be split into 4 parts of 2");
}

TEST(Expand, AndTile) {
  OneNode expand("Expand");
  expectRun(expand.in(iota({2, 1})).constant(i64({3}, {2, 1, 2})), {2, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1});
  OneNode tile("Tile");
  expectRun(tile.in(iota({1, 2})).constant(i64({2}, {2, 2})), {2, 4}, {0, 1, 0, 1, 0, 1, 0, 1});
}

TEST(Slice, ClampsLikeNumpy) {
  auto slice = [](int64_t start, int64_t end, int64_t step) {
    OneNode node("Slice");
    auto got = node.in(iota({5}))
                   .constant(i64({1}, {start}))
                   .constant(i64({1}, {end}))
                   .absent()
                   .constant(i64({1}, {step}))
                   .run();
    EXPECT_TRUE(got.isOk()) << got.status().message();
    std::vector<double> out;
    for (int64_t i = 0; got.isOk() && i < got->front().elements(); ++i) out.push_back(got->front().elementAsDouble(i));
    return out;
  };
  using V = std::vector<double>;
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice(1, 4, 2), (V{1, 3}));
  EXPECT_EQ(slice(-3, high, 1), (V{2, 3, 4}));
  EXPECT_EQ(slice(low, -1, 1), (V{0, 1, 2, 3}));
  EXPECT_EQ(slice(-1, low, -1), (V{4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(9, 0, -2), (V{4, 2}));
  EXPECT_EQ(slice(3, 1, 1), (V{}));
  EXPECT_EQ(slice(0, 5, high), (V{0}));
  EXPECT_EQ(slice(4, 0, low), (V{4}));
  EXPECT_EQ(OneNode("Slice")
                .type({DType::F32, {5}})
                .constant(i64({1}, {0}))
                .constant(i64({1}, {5}))
                .absent()
                .constant(i64({1}, {0}))
                .inferred(),
            "the step of axis 0 is 0");
}

TEST(Pad, Modes) {
  auto pad = [](const std::string& mode, const Tensor& x, const std::vector<int64_t>& pads) {
    OneNode node("Pad");
    auto got = node.attr("mode", mode).in(x).constant(i64({static_cast<int64_t>(pads.size())}, pads)).run();
    EXPECT_TRUE(got.isOk()) << got.status().message();
    std::vector<double> out;
    for (int64_t i = 0; got.isOk() && i < got->front().elements(); ++i) out.push_back(got->front().elementAsDouble(i));
    return out;
  };
  using V = std::vector<double>;
  EXPECT_EQ(pad("constant", iota({2, 2}), {0, 1, 1, 0}), (V{0, 0, 1, 0, 2, 3, 0, 0, 0}));
  EXPECT_EQ(pad("constant", iota({5}), {-1, -2}), (V{1, 2}));
  EXPECT_EQ(pad("constant", iota({3}), {2, -2}), (V{0, 0, 0}));
  EXPECT_EQ(pad("constant", iota({0}), {1, 1}), (V{0, 0}));
  EXPECT_EQ(pad("edge", iota({3}), {2, 1}), (V{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(pad("wrap", iota({3}), {4, 1}), (V{2, 0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(pad("reflect", iota({3}), {2, 2}), (V{2, 1, 0, 1, 2, 1, 0}));
  EXPECT_EQ(pad("reflect", iota({2}), {3, 0}), (V{1, 0, 1, 0, 1}));
  EXPECT_EQ(pad("reflect", iota({1}), {2, 0}), (V{0, 0, 0}));
  OneNode value("Pad");
  expectRun(value.in(iota({2})).constant(i64({2}, {1, 0})).in(f32({}, {7})).constant(i64({1}, {-1})), {3}, {7, 0, 1});
  EXPECT_EQ(OneNode("Pad").type({DType::F32, {3}}).constant(i64({2}, {-2, -2})).inferred(),
            "the pads -2 and -2 leave nothing of dimension 0 of 3");
}

TEST(Gather, NegativeIndicesAndChecks) {
  OneNode node("Gather");
  expectRun(node.attr("axis", int64_t{1}).in(iota({2, 3})).in(i64({1, 2}, {-1, 0})), {2, 1, 2}, {2, 0, 5, 3});
  ASSERT_EQ(node.checks().size(), 1U);
  EXPECT_EQ(node.checks()[0].low, -3);
  EXPECT_EQ(node.checks()[0].high, 2);
  OneNode bad("Gather");
  EXPECT_EQ(failure(bad.in(iota({3})).constant(i64({1}, {3}))), "input 1 ('c1'): index 3 is outside [-3, 2]");
  OneNode elements("GatherElements");
  expectRun(elements.attr("axis", int64_t{1}).in(iota({2, 3})).in(i64({2, 1}, {2, -3})), {2, 1}, {2, 3});
  OneNode nd("GatherND");
  expectRun(nd.in(iota({2, 3})).in(i64({2, 2}, {{0, -1, 1, 0}})), {2}, {2, 3});
  OneNode single("GatherND");
  expectRun(single.in(iota({2, 3})).in(i64({2}, {1, -1})), {}, {5});
  OneNode batched("GatherND");
  expectRun(batched.attr("batch_dims", int64_t{1}).in(iota({2, 2, 2})).in(i64({2, 1}, {1, 0})), {2, 2}, {2, 3, 4, 5});
  OneNode tuple("GatherND");
  EXPECT_EQ(failure(tuple.in(iota({4, 2})).constant(i64({1, 2}, {3, 2}))),
            "input 1: index 2 (component 1) is outside [-2, 1]");
  OneNode ranges("GatherND");
  expectRun(ranges.in(iota({4, 2})).in(i64({1, 2}, {3, 1})), {1}, {7});
  ASSERT_EQ(ranges.checks().size(), 2U);
  EXPECT_EQ(ranges.checks()[0].high, 3);
  EXPECT_EQ(ranges.checks()[1].low, -2);
  EXPECT_EQ(ranges.checks()[1].high, 1);
}

TEST(OneHot, OutOfRangeIsOff) {
  OneNode node("OneHot");
  expectRun(node.attr("axis", int64_t{0}).in(i64({3}, {0, -1, 5})).constant(i64({}, {2})).in(f32({2}, {-1, 1})), {2, 3},
            {1, -1, -1, -1, 1, -1});
}

TEST(Generate, FromShapesAndScalars) {
  OneNode shape("Shape");
  expectRun(shape.attr("start", int64_t{1}).in(iota({2, 3, 0})), {2}, {3, 0});
  OneNode size("Size");
  expectRun(size.in(iota({2, 3})), {}, {6});
  OneNode fill("ConstantOfShape");
  expectRun(fill.attr("value", i64({1}, {7})).constant(i64({2}, {1, 2})), {1, 2}, {7, 7});
  OneNode range("Range");
  expectRun(range.constant(i64({}, {10})).constant(i64({}, {4})).constant(i64({}, {-2})), {3}, {10, 8, 6});
  OneNode reals("Range");
  expectRun(reals.constant(f32({}, {1})).constant(f32({}, {2})).constant(f32({}, {0.3F})), {4}, {1, 1.3, 1.6, 1.9});
  OneNode eye("EyeLike");
  expectRun(eye.attr("k", int64_t{1}).attr("dtype", std::string("int32")).in(iota({2, 3})), {2, 3}, {0, 1, 0, 0, 0, 1});
}

TEST(Blocks, AreInverse) {
  OneNode depth("DepthToSpace");
  expectRun(depth.attr("blocksize", int64_t{2}).attr("mode", std::string("CRD")).in(iota({1, 4, 1, 2})), {1, 1, 2, 4},
            {0, 2, 1, 3, 4, 6, 5, 7});
  OneNode space("SpaceToDepth");
  expectRun(space.attr("blocksize", int64_t{2}).in(iota({1, 1, 2, 4})), {1, 4, 1, 2}, {0, 2, 1, 3, 4, 6, 5, 7});
  OneNode last("SpaceToDepth");
  expectRun(last.attr("blocksize", int64_t{2}).attr("channels_last", int64_t{1}).in(iota({1, 2, 4, 1})), {1, 1, 2, 4},
            {0, 1, 4, 5, 2, 3, 6, 7});
}

TEST(Trilu, ExtremeDiagonals) {
  OneNode upper("Trilu");
  expectRun(upper.in(iota({2, 2})).in(i64({}, {1})), {2, 2}, {0, 1, 0, 0});
  OneNode lower("Trilu");
  expectRun(lower.attr("upper", int64_t{0}).in(iota({2, 2})).in(i64({}, {std::numeric_limits<int64_t>::max()})), {2, 2},
            {0, 1, 2, 3});
  OneNode none("Trilu");
  expectRun(none.in(iota({2, 2})).in(i64({}, {std::numeric_limits<int64_t>::max()})), {2, 2}, {0, 0, 0, 0});
}

TEST(ReverseSequence, ByLength) {
  OneNode node("ReverseSequence");
  expectRun(node.in(iota({3, 2})).in(i64({2}, {3, 2})), {3, 2}, {4, 3, 2, 1, 0, 5});
}

TEST(CenterCropPad, CropsAndPads) {
  OneNode node("CenterCropPad");
  expectRun(node.in(iota({2, 4})).constant(i64({2}, {3, 2})), {3, 2}, {1, 2, 5, 6, 0, 0});
}

TEST(Scatter, ElementsAndTuples) {
  OneNode elements("ScatterElements");
  expectRun(elements.attr("axis", int64_t{1}).in(iota({2, 3})).in(i64({2, 1}, {-1, 0})).in(f32({2, 1}, {9, 8})), {2, 3},
            {0, 1, 9, 8, 4, 5});
  OneNode add("ScatterElements");
  expectRun(add.attr("reduction", std::string("add")).in(iota({3})).in(i64({3}, {1, 1, 0})).in(f32({3}, {10, 20, 5})),
            {3}, {5, 31, 2});
  OneNode max("ScatterElements");
  expectRun(max.attr("reduction", std::string("max"))
                .in(ofType(DType::F16, {2}, {1, 2}))
                .in(i64({2}, {0, 1}))
                .in(ofType(DType::F16, {2}, {3, 1})),
            {2}, {3, 2});
  OneNode nd("ScatterND");
  expectRun(nd.in(iota({2, 2})).in(i64({1, 1}, {-1})).in(f32({1, 2}, {7, 8})), {2, 2}, {0, 1, 7, 8});
  OneNode single("ScatterND");
  expectRun(single.in(iota({2, 2})).in(i64({2}, {1, 0})).in(f32({}, {7})), {2, 2}, {0, 1, 7, 3});
  OneNode cache("TensorScatter");
  expectRun(cache.attr("mode", std::string("circular"))
                .attr("axis", int64_t{1})
                .in(iota({2, 3, 1}))
                .in(f32({2, 2, 1}, {7, 8, 9, 10}))
                .in(i64({2}, {2, 0})),
            {2, 3, 1}, {8, 1, 7, 9, 10, 5});
  EXPECT_EQ(
      OneNode("ScatterND").type({DType::F32, {2, 2}}).type({DType::I64, {1, 1}}).type({DType::F32, {1, 3}}).inferred(),
      "dimension 1 of the updates: 3 and 2 differ");
}

TEST(Scan, SumsAndProducts) {
  OneNode rows("CumSum");
  expectRun(rows.in(iota({2, 3})).constant(i64({}, {0})), {2, 3}, {0, 1, 2, 3, 5, 7});
  OneNode exclusive("CumSum");
  expectRun(exclusive.attr("exclusive", int64_t{1}).attr("reverse", int64_t{1}).in(iota({4})).constant(i64({}, {-1})),
            {4}, {6, 5, 3, 0});
  OneNode halves("CumSum");
  expectRun(halves.in(ofType(DType::F16, {3}, {2048, 1, 1})).constant(i64({}, {0})), {3}, {2048, 2048, 2050});
  OneNode product("CumProd");
  expectRun(product.in(i64({2, 2}, {1, 2, 3, 4})).constant(i64({}, {1})), {2, 2}, {1, 2, 3, 12});
}

}  // namespace
}  // namespace locution::ops
