#include "passes/fold_evaluate.h"

#include <gtest/gtest.h>

#include <random>

#include "passes/random_network.h"

namespace locution::passes {
namespace {

using Ints = std::vector<int64_t>;

/// Element of `t` under numpy's broadcasting at `index` of the result.
float elementAt(const Tensor& t, const Ints& index) {
  int64_t flat = 0;
  const size_t skip = index.size() - t.dims().size();
  for (size_t i = 0; i < t.dims().size(); ++i) flat = flat * t.dims()[i] + (t.dims()[i] == 1 ? 0 : index[i + skip]);
  return t.data<float>()[flat];
}

TEST(FoldBinary, BroadcastsLikeNumpy) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    Ints full, a, b;
    for (size_t rank = random() % 5; full.size() < rank;) full.push_back(static_cast<int64_t>(random() % 4));
    for (int64_t d : full) {
      const auto kind = random() % 4;
      a.push_back(kind == 0 ? 1 : d);
      b.push_back(kind == 1 ? 1 : d);
    }
    if (!b.empty() && b[0] == 1 && random() % 2 == 0) b.erase(b.begin());
    Tensor x = RandomNetwork::randomTensor(a, random), y = RandomNetwork::randomTensor(b, random);
    std::optional<Tensor> sum = foldBinary("Sub", x, y);
    ASSERT_TRUE(sum.has_value());
    Ints index(sum->dims().size(), 0);
    for (int64_t i = 0; i < sum->elements(); ++i) {
      ASSERT_EQ(sum->data<float>()[i], elementAt(x, index) - elementAt(y, index))
          << x.shape().str() << " - " << y.shape().str();
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < sum->dims()[d]) break;
        index[d] = 0;
      }
    }
  }
}

TEST(FoldBinary, LeavesOthersAlone) {
  EXPECT_FALSE(foldBinary("Pow", Tensor::scalarF32(1), Tensor::scalarF32(1)).has_value());
  EXPECT_FALSE(foldBinary("Add", Tensor::scalarI64(1), Tensor::scalarI64(1)).has_value());
  EXPECT_FALSE(foldBinary("Add", Tensor(DType::F32, {2}), Tensor(DType::F32, {3})).has_value());
}

}  // namespace
}  // namespace locution::passes
