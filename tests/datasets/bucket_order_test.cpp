// The order with buckets: each sequence once an epoch, batches of one length, nothing that depends on what
// was asked before.
#include "datasets/bucket_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "datasets/length_buckets.h"
#include "datasets/permutation.h"

namespace plimsoll::datasets {
namespace {

/// A length from 1 to 64 for each position of an epoch.
int64_t length_at(int64_t position, int64_t epoch_size) {
  const int64_t sequence =
      Permutation(epoch_size, 9, static_cast<uint64_t>(position / epoch_size)).at(position % epoch_size);
  return 1 + sequence * 37 % 64;
}

BucketOrderOptions options(int64_t batch, int64_t epoch) {
  return {.lengths = {8, 24, 64}, .batch_size = batch, .epoch_size = epoch, .seed = 3, .shuffle = true};
}

struct Place {
  int64_t position = 0, length = 0;  ///< what stands there; its bucket's
};

Place place(const BucketOrder& order, int64_t position, int64_t epoch) {
  Place found;
  const auto length =
      order.at(position, std::span(&found.position, 1),
               [&](int64_t p, std::span<std::byte>) { return Result<int64_t>(length_at(p, epoch)); }, {});
  EXPECT_TRUE(length);
  found.length = *length;
  return found;
}

TEST(BucketOrder, EachEpochHoldsEachOfItsPositionsOnce) {
  for (const auto& [batch, epoch] : std::vector<std::pair<int64_t, int64_t>>{
           {4, 100}, {7, 100}, {32, 100}, {8, 3}, {1, 5}, {100, 100}, {3, 40'000}, {64, 33'333}}) {
    const BucketOrder order(options(batch, epoch));
    for (int64_t e = 0; e < 3; ++e) {
      std::vector<int64_t> seen;
      for (int64_t p = e * epoch; p < (e + 1) * epoch; ++p) {
        const Place at = place(order, p, epoch);
        EXPECT_GE(at.length, length_at(at.position, epoch));
        seen.push_back(at.position);
      }
      std::sort(seen.begin(), seen.end());
      for (int64_t i = 0; i < epoch; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], e * epoch + i) << batch;
    }
  }
}

/// Batches beyond an epoch: however far apart threads stand, a look-up computes each window at most once.
TEST(BucketOrder, LooksUpBatchesAtOnce) {
  constexpr int64_t kEpoch = 50, kBatch = 300;
  const BucketOrder order(options(kBatch, kEpoch)), one_by_one(options(kBatch, kEpoch));
  std::vector<int64_t> positions(kBatch);
  int64_t lengths_asked = 0;
  const auto length_of = [&](int64_t p, std::span<std::byte>) {
    ++lengths_asked;
    return Result<int64_t>(length_at(p, kEpoch));
  };
  for (const int64_t first : {0 * kBatch, 5 * kBatch, 1 * kBatch, 6 * kBatch, 2 * kBatch}) {
    lengths_asked = 0;
    const auto longest = order.at(first, positions, length_of, {});
    ASSERT_TRUE(longest);
    EXPECT_LE(lengths_asked, kBatch + kEpoch);
    int64_t expected = 0;
    for (int64_t r = 0; r < kBatch; ++r) {
      const Place at = place(one_by_one, first + r, kEpoch);
      EXPECT_EQ(positions[static_cast<size_t>(r)], at.position);
      expected = std::max(expected, at.length);
    }
    EXPECT_EQ(*longest, expected);
  }
}

TEST(LengthCounts, AreScaledToAShare) {
  LengthCounts few(64), mixed(64);
  few.add(10, 1);
  few.add(60, 3);
  mixed.add_scaled(few, 1000);
  mixed.add_scaled(LengthCounts(64), 1000);  // a source without sequences
  EXPECT_EQ(mixed.num_sequences(), 1000);
  EXPECT_EQ(mixed.num_tokens(), 250 * 10 + 750 * 60);
  EXPECT_EQ(mixed.at_most(10), 250);
}

TEST(BucketOrder, AFunctionOfThePositionAlone) {
  constexpr int64_t kEpoch = 50'000;
  const BucketOrder first(options(6, kEpoch));
  std::vector<int64_t> expected;
  for (int64_t p = 0; p < 2 * kEpoch; ++p) expected.push_back(place(first, p, kEpoch).position);
  // From every kind of beginning, backwards, and by several threads at once.
  const BucketOrder second(options(6, kEpoch));
  for (int64_t p = 2 * kEpoch - 1; p >= 0; p -= 977)
    ASSERT_EQ(place(second, p, kEpoch).position, expected[static_cast<size_t>(p)]);
  const BucketOrder third(options(6, kEpoch));
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int64_t p = 20'000 * t; p < 20'000 * t + 12'000; p += 7)
        EXPECT_EQ(place(third, p, kEpoch).position, expected[static_cast<size_t>(p)]);
    });
  for (std::thread& thread : threads) thread.join();
  BucketOrderOptions other = options(6, kEpoch);
  other.seed = 4;
  const BucketOrder fourth(other);
  EXPECT_NE(place(fourth, 0, kEpoch).position, expected[0]) << "another seed, another order of batches";
}

TEST(BucketOrder, BatchesAreOfOneLength) {
  constexpr int64_t kEpoch = 40'000, kBatch = 16;
  const BucketOrder order(options(kBatch, kEpoch));
  int64_t mixed = 0, positions = 0, ideal = 0;
  std::map<int64_t, int64_t> batches;
  for (int64_t begin = 0; begin < kEpoch; begin += kBatch) {
    std::vector<int64_t> lengths;
    for (int64_t p = begin; p < begin + kBatch; ++p) lengths.push_back(place(order, p, kEpoch).length);
    const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
    mixed += *least != *most ? 1 : 0;
    ++batches[*most];
    positions += *most * kBatch;
    for (const int64_t length : lengths) ideal += length;
  }
  EXPECT_LE(mixed, 3 * 2) << "one at each of two borders in each of three windows";
  EXPECT_EQ(batches.size(), 3U);
  EXPECT_LE(static_cast<double>(positions), 1.005 * static_cast<double>(ideal));
  // Short and long ones come mixed, not one after the other.
  int64_t changes = 0;
  for (int64_t begin = kBatch; begin < kEpoch; begin += kBatch)
    changes += place(order, begin, kEpoch).length != place(order, begin - 1, kEpoch).length ? 1 : 0;
  EXPECT_GT(changes, kEpoch / kBatch / 4);
}

TEST(BucketOrder, WindowsDivideAnEpochEvenlyAtBatches) {
  for (const auto& [batch, epoch] :
       std::vector<std::pair<int64_t, int64_t>>{{7, 100'000}, {32, 16'385}, {1000, 70'001}, {5, 16'384}}) {
    const BucketOrder order(options(batch, epoch));
    for (int64_t e = 0; e < 3; ++e)
      for (int64_t p = e * epoch; p < (e + 1) * epoch;) {
        const BucketOrder::Window window = order.window_of(p);
        ASSERT_EQ(window.begin, p);
        ASSERT_GT(window.end, p);
        EXPECT_TRUE(window.end == (e + 1) * epoch || window.end % batch == 0);
        EXPECT_EQ(order.window_of(window.end - 1).begin, p);
        p = window.end;
      }
  }
}

TEST(BucketOrder, WithoutShufflingTheShortestComeFirst) {
  BucketOrderOptions in_order = options(4, 64);
  in_order.shuffle = false;
  const BucketOrder order(in_order);
  int64_t before = 0;
  for (int64_t p = 0; p < 64; ++p) {
    const int64_t length = place(order, p, 64).length;
    EXPECT_GE(length, before);
    before = length;
  }
}

TEST(BucketOrder, TellsOfALengthThatCannotBeRead) {
  const BucketOrder order(options(4, 64));
  const auto broken = [](int64_t p, std::span<std::byte>) {
    return p == 63 ? Result<int64_t>(Error{ErrorCode::kBadData, "torn"}) : Result<int64_t>(p + 1);
  };
  int64_t position = 0;
  const auto at = order.at(0, std::span(&position, 1), broken, {});
  ASSERT_FALSE(at);
  EXPECT_EQ(at.error().what, "torn");
  EXPECT_EQ(place(order, 0, 64).length, place(BucketOrder(options(4, 64)), 0, 64).length)
      << "nothing of it is kept";
}

TEST(LengthBuckets, TheLeastPaddingOfAllChoices) {
  LengthCounts counts(96);
  const int64_t lengths[] = {3, 5, 14, 15, 16, 17, 30, 33, 34, 35, 60, 61, 80, 96};
  for (const int64_t length : lengths) counts.add(length, 1 + length % 4);
  EXPECT_EQ(counts.at_most(16), 4 + 2 + 3 + 4 + 1);
  for (int64_t count = 1; count <= 6; ++count) {
    const std::vector<int64_t> chosen = choose_lengths(counts, count);
    EXPECT_LE(static_cast<int64_t>(chosen.size()), count);
    EXPECT_EQ(chosen.back(), 96);
    // Against every subset of the multiples of 16 below 96.
    int64_t least = padded_positions(counts, std::vector<int64_t>{96});
    for (unsigned subset = 0; subset < 32; ++subset) {
      std::vector<int64_t> tried;
      for (unsigned k = 0; k < 5; ++k)
        if ((subset >> k & 1) != 0) tried.push_back(16 * (k + 1));
      tried.push_back(96);
      if (static_cast<int64_t>(tried.size()) <= count)
        least = std::min(least, padded_positions(counts, tried));
    }
    EXPECT_EQ(padded_positions(counts, chosen), least) << count;
  }
}

TEST(LengthBuckets, CountsAndEdges) {
  LengthCounts counts(10);
  counts.add(1);
  counts.add(10, 2);
  EXPECT_EQ(counts.num_sequences(), 3);
  EXPECT_EQ(counts.num_tokens(), 21);
  EXPECT_EQ(counts.at_most(0), 0);
  EXPECT_EQ(counts.at_most(9), 1);
  EXPECT_EQ(counts.at_most(10), 3);
  EXPECT_EQ(choose_lengths(counts, 4), std::vector<int64_t>{10}) << "shorter than any choice";
  EXPECT_EQ(even_lengths(512, 4), (std::vector<int64_t>{128, 256, 384, 512}));
  EXPECT_EQ(even_lengths(20, 4), std::vector<int64_t>{20});
  EXPECT_EQ(even_lengths(50, 3), (std::vector<int64_t>{16, 32, 50}));
  LengthCounts many(300'000);  // several lengths a count
  many.add(299'999);
  many.add(1);
  EXPECT_EQ(many.at_most(300'000), 2);
  const std::vector<int64_t> chosen = choose_lengths(many, 2);
  EXPECT_EQ(chosen.size(), 2U);
  EXPECT_LT(chosen[0], 1000);
}

}  // namespace
}  // namespace plimsoll::datasets
