#include "generator/tile.h"

#include <gtest/gtest.h>

namespace locution::generator {
namespace {

TEST(RegisterTile, RowsThatDivideWhereOperandsAreAtHand) {
  const RegisterTile t = chooseTile({128, 512, 8, 16, true});
  EXPECT_EQ(t.rows, 4);
  EXPECT_EQ(t.vectors, 2);
}

TEST(RegisterTile, LargerWhereEachStepReadsItsOwnLines) {
  for (int64_t columns : {128, 384, 512}) {
    const RegisterTile t = chooseTile({128, columns, 8, 16, true, 6});
    EXPECT_EQ(t.rows, 6) << columns;
    EXPECT_EQ(t.vectors, 2) << columns;
  }
}

TEST(RegisterTile, WithoutIncompleteRowsOfEqualCost) {
  const RegisterTile t = chooseTile({49, 512, 16, 32, true});
  EXPECT_EQ(49 % t.rows, 0);
}

TEST(RegisterTile, WiderWhereRowsAreReadOneAtATime) {
  TileQuestion q{196, 256, 16, 32, true};
  EXPECT_EQ(chooseTile(q).vectors, 2);
  q.loads = loadsPerCycle(1024);
  const RegisterTile t = chooseTile(q);
  EXPECT_GE(t.rows * t.vectors / 2, t.rows + t.vectors);
}

TEST(RegisterTile, RowsThatTheFirstCacheHolds) {
  EXPECT_EQ(rowsInCache(4096, 48 << 10), 10);
  EXPECT_EQ(rowsInCache(8192, 32 << 10), 6);
  EXPECT_EQ(rowsInCache(2048, 48 << 10), 20);
  EXPECT_EQ(rowsInCache(1088, 48 << 10), 640);
  TileQuestion q{196, 256, 16, 32, true};
  q.mostRows = 4;
  EXPECT_LE(chooseTile(q).rows, 4);
}

}  // namespace
}  // namespace locution::generator
