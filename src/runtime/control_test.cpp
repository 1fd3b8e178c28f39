#include "runtime/control.h"

#include <gtest/gtest.h>

namespace locution::runtime {
namespace {

using hostops::HostValue;
using Values = std::vector<HostValue>;

Tensor vec(const std::vector<float>& v) { return Tensor::of<float>(DType::F32, {static_cast<int64_t>(v.size())}, v); }
Tensor truth(bool b) {
  Tensor t(DType::Bool, {});
  t.setElementInt(0, b ? 1 : 0);
  return t;
}
std::vector<float> floats(const HostValue& v) {
  std::vector<float> out;
  for (int64_t i = 0; i < v.tensor.elements(); ++i) out.push_back(static_cast<float>(v.tensor.elementAsDouble(i)));
  return out;
}
using Dims = std::vector<int64_t>;

// (i, condition, s) -> (i < limit, s with i at its end, s[0])
RegionRunner growing(int64_t limit) {
  return [limit](size_t, Values in) -> Result<Values> {
    std::vector<float> s = floats(in[2]);
    s.push_back(static_cast<float>(in[0].tensor.elementAsInt(0)));
    return Values{truth(in[0].tensor.elementAsInt(0) < limit), vec(s), Tensor::scalarF32(s.back())};
  };
}

TEST(Control, LoopEndsByCountOrCondition) {
  hostops::Attrs none;
  auto run = [&](const HostValue& trips, const HostValue& condition, int64_t limit) {
    return runControl({RegionKind::Loop, none, {trips, condition, vec({9})}, {{}, {DType::F32, {-1}}}}, growing(limit));
  };
  auto counted = run(Tensor::scalarI64(3), {}, 99);
  ASSERT_TRUE(counted.isOk()) << counted.status().message();
  EXPECT_EQ(floats((*counted)[0]), (std::vector<float>{9, 0, 1, 2}));
  EXPECT_EQ(floats((*counted)[1]), (std::vector<float>{0, 1, 2}));
  auto conditional = run({}, truth(true), 1);
  ASSERT_TRUE(conditional.isOk());
  EXPECT_EQ(floats((*conditional)[0]), (std::vector<float>{9, 0, 1}));
  auto never = run(Tensor::scalarI64(3), truth(false), 99);
  ASSERT_TRUE(never.isOk());
  EXPECT_EQ(floats((*never)[0]), (std::vector<float>{9}));
  EXPECT_EQ((*never)[1].tensor.dims(), Dims{0});
  EXPECT_EQ((*never)[1].tensor.dtype(), DType::F32);
}

TEST(Control, LoopSaysWhichIterationFailed) {
  hostops::Attrs none;
  auto differ = runControl({RegionKind::Loop, none, {Tensor::scalarI64(3), {}}, {{DType::F32, {-1, -1}}}},
                           [](size_t, Values in) -> Result<Values> {
                             int64_t i = in[0].tensor.elementAsInt(0);
                             return Values{truth(true), Tensor(DType::F32, {i + 1})};
                           });
  EXPECT_EQ(differ.status().message(), "scanned output 0 has the shape 2, but 1 in the iterations before");
  auto fails = runControl({RegionKind::Loop, none, {Tensor::scalarI64(3), {}}, {}},
                          [](size_t, const Values& in) -> Result<Values> {
                            if (in[0].tensor.elementAsInt(0) == 1) return Status::error("no");
                            return Values{truth(true)};
                          });
  EXPECT_EQ(fails.status().message(), "iteration 1: no");
}

TEST(Control, ScanGoesBothWaysAlongAnyAxis) {
  hostops::Attrs attrs;
  attrs["num_scan_inputs"] = int64_t{2};
  attrs["scan_input_axes"] = std::vector<int64_t>{0, -1};
  attrs["scan_input_directions"] = std::vector<int64_t>{1, 0};
  attrs["scan_output_axes"] = std::vector<int64_t>{1};
  attrs["scan_output_directions"] = std::vector<int64_t>{1};
  Tensor a = Tensor::of<float>(DType::F32, {3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor b = Tensor::of<float>(DType::F32, {2, 3}, {10, 20, 30, 40, 50, 60});
  auto out =
      runControl({RegionKind::Scan, attrs, {vec({0, 0}), a, b}, {{}, {}}}, [](size_t, Values in) -> Result<Values> {
        std::vector<float> s = floats(in[0]), x = floats(in[1]), y = floats(in[2]), sum, both;
        for (size_t i = 0; i < 2; ++i) {
          sum.push_back(s[i] + x[i]);
          both.push_back(x[i] + y[i]);
        }
        return Values{vec(sum), vec(both)};
      });
  ASSERT_TRUE(out.isOk()) << out.status().message();
  EXPECT_EQ(floats((*out)[0]), (std::vector<float>{9, 12}));
  // x: (5, 6), (3, 4), (1, 2) with y: (10, 40), (20, 50), (30, 60); the last iteration first.
  EXPECT_EQ((*out)[1].tensor.dims(), (Dims{2, 3}));
  EXPECT_EQ(floats((*out)[1]), (std::vector<float>{31, 23, 15, 62, 54, 46}));
}

TEST(Control, SlicesAndStacksOfSmallTypesAndStrings) {
  Tensor bits(DType::I4, {3, 3});
  for (int64_t i = 0; i < 9; ++i) bits.setElementInt(i, i - 4);
  EXPECT_EQ(sliceOf(bits, 0, 1).toInts(), (Dims{-1, 0, 1}));
  EXPECT_EQ(sliceOf(bits, 1, 2).toInts(), (Dims{-2, 1, 4}));
  EXPECT_EQ(stackOf({sliceOf(bits, 0, 0), sliceOf(bits, 0, 2)}, 1).toInts(), (Dims{-4, 2, -3, 3, -2, 4}));
  Tensor words = Tensor::ofStrings({2, 2}, {"a", "b", "c", "d"});
  EXPECT_EQ(sliceOf(words, 1, 1).strings(), (std::vector<std::string>{"b", "d"}));
  EXPECT_EQ(stackOf({sliceOf(words, 0, 1), sliceOf(words, 0, 0)}, 0).strings(),
            (std::vector<std::string>{"c", "d", "a", "b"}));
}

TEST(Control, ConditionsAreOneBool) {
  hostops::Attrs none;
  auto out = runControl({RegionKind::If, none, {vec({1})}, {}}, [](size_t, const Values&) { return Values{}; });
  EXPECT_EQ(out.status().message(), "the condition must be one bool");
}

}  // namespace
}  // namespace locution::runtime
