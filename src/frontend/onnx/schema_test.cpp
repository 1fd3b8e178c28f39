#include "frontend/onnx/schema.h"

#include <gtest/gtest.h>

#include <set>

namespace locution::frontend {
namespace {

TEST(Schema, TableIsSortedAndWellFormed) {
  const std::set<std::string_view> types = {"i", "f", "s", "t", "g", "d", "sp", "tp", "is", "fs", "ss"};
  const OpRow* last = nullptr;
  for (const OpRow& row : allRows()) {
    if (last != nullptr) {
      EXPECT_LT(std::tie(last->domain, last->name, last->since), std::tie(row.domain, row.name, row.since)) << row.name;
    }
    last = &row;
    EXPECT_LE(row.since, kNewestOpset);
    for (const AttrSpec& spec : attrSpecs(row)) EXPECT_TRUE(types.contains(spec.type)) << row.name << " " << spec.name;
    size_t star = row.inputs.find('*');
    EXPECT_TRUE(star == std::string_view::npos || star == row.inputs.size() - 1) << row.name;
  }
}

TEST(Schema, FindsTheRowOfAnOpset) {
  int64_t since = 0;
  EXPECT_EQ(findRow("", "Clip", 10, since)->since, 6);
  EXPECT_EQ(findRow("", "Clip", 11, since)->since, 11);
  EXPECT_EQ(findRow("", "Clip", kNewestOpset, since)->since, 11);
  EXPECT_EQ(since, 6);
  EXPECT_EQ(findRow("", "Mish", 17, since), nullptr);
  EXPECT_EQ(since, 18);
  EXPECT_EQ(findRow("", "NoSuchThing", 17, since), nullptr);
  EXPECT_EQ(since, 0);
  EXPECT_EQ(findRow("com.microsoft", "FusedMatMul", 1, since)->since, 1);
  EXPECT_EQ(findRow("com.microsoft", "Clip", 1, since), nullptr);
}

TEST(Schema, Arity) {
  int64_t since = 0;
  const OpRow& conv = *findRow("", "Conv", 11, since);
  EXPECT_TRUE(checkArity(conv, {true, true}, 1).isOk());
  EXPECT_TRUE(checkArity(conv, {true, true, false}, 1).isOk());
  EXPECT_EQ(checkArity(conv, {true}, 1).message(), "input W is missing");
  EXPECT_EQ(checkArity(conv, {false, true}, 1).message(), "input X is missing");
  EXPECT_EQ(checkArity(conv, {true, true, true, true}, 1).message(), "4 inputs are given, it takes 3 at most");
  EXPECT_EQ(checkArity(conv, {true, true}, 2).message(), "2 outputs are asked for, it has 1");
  EXPECT_TRUE(checkArity(*findRow("", "Concat", 11, since), std::vector<bool>(1000, true), 1).isOk());
  EXPECT_TRUE(checkArity(*findRow("", "Split", 11, since), {true}, 1000).isOk());
}

}  // namespace
}  // namespace locution::frontend
