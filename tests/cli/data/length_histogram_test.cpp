#include "cli/data/length_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

TEST(LengthHistogram, PercentilesAreThoseOfTheSortedLengths) {
  std::mt19937 random(1);
  for (const int64_t longest : {1, 100, 65'535, 65'536, 50'000'000}) {
    LengthHistogram lengths;
    std::vector<int64_t> sorted;
    for (int i = 0; i < 5000; ++i) {
      sorted.push_back(1 + static_cast<int64_t>(random()) % longest);
      lengths.add(sorted.back());
    }
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(lengths.shortest(), sorted.front());
    EXPECT_EQ(lengths.longest(), sorted.back());
    for (const double share : {0.0001, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0}) {
      const auto exact = sorted[static_cast<size_t>(std::ceil(share * 5000)) - 1];
      const double slack = exact < 65'536 ? 0 : static_cast<double>(exact) / 1024;
      EXPECT_NEAR(static_cast<double>(lengths.percentile(share)), static_cast<double>(exact), slack) << share;
    }
  }
}

TEST(LengthHistogram, BinsCoverWhatIsThere) {
  LengthHistogram lengths;
  EXPECT_TRUE(lengths.bins().empty());
  EXPECT_EQ(lengths.percentile(0.5), 0);
  for (const int64_t length : std::initializer_list<int64_t>{3, 4, 7, 33, int64_t{1} << 61})
    lengths.add(length);
  const auto bins = lengths.bins();
  ASSERT_EQ(bins.size(), 61U);
  EXPECT_EQ(bins[0].least, 2);
  EXPECT_EQ(bins[1].documents, 2);
  EXPECT_EQ(bins[1].tokens, 11);
  EXPECT_EQ(bins[2].documents, 0);
  EXPECT_EQ(bins.back().least, int64_t{1} << 61);
}

TEST(LengthHistogram, PictureKeepsItsWidth) {
  LengthHistogram lengths;
  for (int64_t i = 1; i < 3000; ++i) lengths.add(i);
  const std::string picture = lengths.picture(70);
  EXPECT_THAT(picture, HasSubstr("1,024 to 2,047  1,024"));
  for (size_t at = 0; at < picture.size();) {
    const size_t end = picture.find('\n', at);
    const auto columns = std::count_if(picture.begin() + static_cast<std::ptrdiff_t>(at),
                                       picture.begin() + static_cast<std::ptrdiff_t>(end),
                                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    EXPECT_LE(columns, 70);
    at = end + 1;
  }
}

TEST(Bar, ShowsEighthsAndNeverHidesSomething) {
  EXPECT_EQ(bar(0, 10), "");
  EXPECT_EQ(bar(1e-9, 10), "▏");
  EXPECT_EQ(bar(0.25, 2), "▌");
  EXPECT_EQ(bar(1, 3), "███");
}

}  // namespace
}  // namespace plimsoll::cli
