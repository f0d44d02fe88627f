// The order of an epoch: a permutation, random access, different from epoch to epoch, the same on every
// machine.
#include "datasets/permutation.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::datasets {
namespace {

TEST(Permutation, HitsEveryIndexOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097}) {
    const Permutation permutation(size, 7, 0);
    std::vector<int> seen(static_cast<size_t>(size), 0);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t value = permutation.at(i);
      ASSERT_TRUE(value >= 0 && value < size);
      ++seen[static_cast<size_t>(value)];
    }
    for (const int count : seen) ASSERT_EQ(count, 1) << size;
  }
}

TEST(Permutation, ReachesHugeSizes) {
  const int64_t size = int64_t{1} << 62;
  const Permutation permutation(size, 1, 1);
  EXPECT_LT(permutation.at(size - 1), size);
  EXPECT_NE(permutation.at(0), permutation.at(1));
}

TEST(Permutation, ScattersNeighboursAndEpochs) {
  // Over 256 values a fixed order would give 255 steps of one; a random one gives about two.
  const Permutation first(256, 42, 0);
  const Permutation second(256, 42, 1);
  int neighbours = 0, fixed_points = 0, same = 0;
  for (int64_t i = 0; i < 256; ++i) {
    if (i > 0 && std::abs(first.at(i) - first.at(i - 1)) == 1) ++neighbours;
    if (first.at(i) == i) ++fixed_points;
    if (first.at(i) == second.at(i)) ++same;
  }
  EXPECT_LT(neighbours, 10);
  EXPECT_LT(fixed_points, 8);
  EXPECT_LT(same, 8);
}

TEST(Permutation, PutsEveryValueEverywhere) {
  // Where index 0 goes over 4,000 epochs of 20 values: 200 each on average, standard deviation 14.
  std::vector<int> counts(20, 0);
  for (uint64_t epoch = 0; epoch < 4000; ++epoch)
    ++counts[static_cast<size_t>(Permutation(20, 3, epoch).at(0))];
  for (const int count : counts) {
    EXPECT_GT(count, 130);
    EXPECT_LT(count, 270);
  }
}

TEST(Permutation, IsTheSameOnEveryMachine) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < 10; ++i) order.push_back(Permutation(10, 42, 0).at(i));
  EXPECT_EQ(order, (std::vector<int64_t>{2, 7, 1, 6, 4, 9, 5, 0, 8, 3}));
}

TEST(BatchOrder, RunsOnAcrossEpochs) {
  const BatchOrder in_order(3, 42, false);
  std::vector<int64_t> order;
  for (int64_t position = 0; position < 7; ++position) order.push_back(in_order.at(position));
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 0, 1, 2, 0}));

  const BatchOrder shuffled(100, 42, true);
  std::vector<int> counts(100, 0);
  for (int64_t position = 100; position < 200; ++position)
    ++counts[static_cast<size_t>(shuffled.at(position))];
  for (const int count : counts) EXPECT_EQ(count, 1);
  EXPECT_EQ(shuffled.epoch_of(199), 1);
  EXPECT_EQ(shuffled.at(150), BatchOrder(100, 42, true).at(150));
}

TEST(StepsForEpochs, RoundsUp) {
  EXPECT_EQ(steps_for_epochs(10, 1.0, 4), 3);
  EXPECT_EQ(steps_for_epochs(10, 2.0, 4), 5);
  EXPECT_EQ(steps_for_epochs(10, 0.5, 4), 2);
  EXPECT_EQ(steps_for_epochs(10, 2.5, 5), 5);
  EXPECT_EQ(steps_for_epochs(1, 0.001, 32), 1);
  EXPECT_EQ(steps_for_epochs((int64_t{1} << 60) + 1, 1.0, 1), (int64_t{1} << 60) + 1);
  EXPECT_EQ(steps_for_epochs(int64_t{1} << 60, 1e9, 1), int64_t{1} << 62);
}

}  // namespace
}  // namespace plimsoll::datasets
