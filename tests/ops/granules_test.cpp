#include "ops/granules.h"

#include <gtest/gtest.h>

namespace plimsoll::ops {
namespace {

TEST(Granules, RestartAtEachSequence) {
  const Granules granules(ir::Shape{2, 300, 8});
  EXPECT_EQ(granules.rows(), 600);
  EXPECT_EQ(granules.segment(), 300);
  EXPECT_EQ(granules.count(), 4);
  EXPECT_EQ(granules.begin(2), 300);
  EXPECT_EQ(granules.end(1), 300);
}

TEST(Granules, OfNoRowsThereAreNone) { EXPECT_EQ(Granules(ir::Shape{0, 16, 8}).count(), 0); }

TEST(LossChunks, AreWholeSequencesOrWholeGranulesOfOne) {
  const LossChunks sequences(ir::Shape{4, 300, 8}, 700, true);
  EXPECT_EQ(sequences.max_rows(), 600);
  EXPECT_EQ(sequences.end(600), 1200);
  const LossChunks parts(ir::Shape{2, 1000, 8}, 700, true);
  EXPECT_EQ(parts.max_rows(), 512);
  EXPECT_EQ(parts.end(512), 1000);
  EXPECT_EQ(parts.end(1000), 1512);
}

}  // namespace
}  // namespace plimsoll::ops
