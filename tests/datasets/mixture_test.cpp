// Mixtures: exact shares in each block, each source's epochs whole.
#include "datasets/mixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace plimsoll::datasets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Mixture, EachBlockHoldsExactShares) {
  const std::vector<MixtureSource> sources = {{100, 0.5}, {7, 0.3}, {100'000, 0.2}};
  for (const bool shuffle : {true, false}) {
    const auto mixture = Mixture::create(sources, 3, shuffle);
    ASSERT_TRUE(mixture);
    const int64_t size = mixture->block_size();
    EXPECT_EQ(size, 1024);
    EXPECT_THAT(mixture->block_counts(), ElementsAre(512, 307, 205));
    for (const int64_t block : {0, 1, 77}) {
      std::vector<int64_t> counts(3);
      for (int64_t i = 0; i < size; ++i) ++counts[static_cast<size_t>(mixture->at(block * size + i).source)];
      EXPECT_THAT(counts, ElementsAre(512, 307, 205));
    }
  }
}

TEST(Mixture, EverySourceGoesThroughItsSequencesEpochByEpoch) {
  const std::vector<MixtureSource> sources = {{10, 3}, {33, 1}, {5000, 2}};
  const auto mixture = Mixture::create(sources, 9, true);
  ASSERT_TRUE(mixture);
  const int64_t positions = mixture->positions_for_all();
  EXPECT_GE(positions, 14'900);
  std::vector<std::vector<std::vector<int>>> seen(3);  // by source, epoch, index
  for (int64_t p = 0; p < positions; ++p) {
    const MixturePlace place = mixture->at(p);
    auto& epochs = seen[static_cast<size_t>(place.source)];
    const int64_t n = sources[static_cast<size_t>(place.source)].num_sequences;
    while (static_cast<int64_t>(epochs.size()) <= place.epoch) epochs.emplace_back(static_cast<size_t>(n));
    ASSERT_LT(place.index, n);
    ++epochs[static_cast<size_t>(place.epoch)][static_cast<size_t>(place.index)];
  }
  for (const auto& epochs : seen)
    for (const auto& epoch : epochs)
      for (const int count : epoch) ASSERT_LE(count, 1) << "a sequence twice in one epoch";
  // Whole but for what the last block, which is not gone through to its end, leaves out.
  const auto whole = static_cast<size_t>(positions / mixture->block_size() * mixture->block_counts()[0] / 10);
  for (size_t e = 0; e < whole; ++e)
    EXPECT_EQ(std::count(seen[0][e].begin(), seen[0][e].end(), 1), 10) << "epoch " << e;
  const MixturePlace last = mixture->at(positions - 1);
  EXPECT_EQ(last.source, 2) << "not one position more than it takes";
  EXPECT_EQ(last.epoch, 0);
  EXPECT_EQ(std::count(seen[2][0].begin(), seen[2][0].end(), 1), 5000);
}

TEST(Mixture, IsAFunctionOfThePosition) {
  const std::vector<MixtureSource> sources = {{1000, 1}, {1000, 1}};
  const auto a = Mixture::create(sources, 1, true), b = Mixture::create(sources, 1, true),
             c = Mixture::create(sources, 2, true);
  int same = 0;
  bool own_orders = false;
  for (int64_t p = 4000; p-- > 0;) {
    EXPECT_EQ(a->at(p).index, b->at(p).index);
    EXPECT_EQ(a->at(p).source, b->at(p).source);
    same += a->at(p).index == c->at(p).index ? 1 : 0;
    own_orders = own_orders || (p > 0 && a->at(p).index != a->at(p - 1).index);
  }
  EXPECT_LT(same, 100) << "another seed, another order";
  EXPECT_TRUE(own_orders);
}

TEST(Mixture, WithoutShufflingBothAreInOrderAndSpread) {
  const std::vector<MixtureSource> sources = {{100'000, 3}, {100'000, 1}};
  const auto mixture = Mixture::create(sources, 1, false);
  std::vector<int64_t> next(2);
  for (int64_t p = 0; p < 5000; ++p) {
    const MixturePlace place = mixture->at(p);
    EXPECT_EQ(place.index, next[static_cast<size_t>(place.source)]++);
    EXPECT_NEAR(static_cast<double>(next[1]), static_cast<double>(p + 1) / 4, 1.0);
  }
}

TEST(Mixture, SmallSharesMakeLargerBlocks) {
  const auto blocks = [](std::vector<MixtureSource> sources) {
    const auto mixture = Mixture::create(sources, 1, true);
    return mixture ? mixture->block_size() : 0;
  };
  EXPECT_EQ(blocks({{5, 1}, {5, 1}}), 1024);
  EXPECT_EQ(blocks({{5, 1}, {5, 1e-4}}), 65'536);
  EXPECT_EQ(blocks({{5, 1e308}, {5, 1e308}, {5, 1e308}}), 1024);
}

TEST(Mixture, RefusesWeightsThatAreNone) {
  for (const double weight : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e-9}) {
    const auto mixture =
        Mixture::create(std::vector<MixtureSource>{{5, 1, "a.shard"}, {5, weight, "b.shard"}}, 1, true);
    ASSERT_FALSE(mixture) << weight;
    EXPECT_EQ(mixture.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(mixture.error().what, HasSubstr("weight of source 2"));
    EXPECT_EQ(mixture.error().where, "b.shard");
  }
}

}  // namespace
}  // namespace plimsoll::datasets
