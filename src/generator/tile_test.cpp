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

}  // namespace
}  // namespace locution::generator
