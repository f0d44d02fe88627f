#include "train/fp16_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll::train {
namespace {

/// Ties go to even, which is infinity's side: 65,520 is the first that is lost.
TEST(Fp16Range, EndsHalfwayToTheNextNumber) {
  const float below = std::nextafter(65520.0F, 0.0F), infinite = std::numeric_limits<float>::infinity();
  for (const float fine : {0.0F, -0.0F, 1e-40F, 65504.0F, below, -below, infinite, -infinite,
                           std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(first_beyond_fp16({&fine, 1}), std::nullopt) << fine;
  for (const float lost : {65520.0F, -65520.0F, 1e30F, std::numeric_limits<float>::lowest()})
    EXPECT_EQ(first_beyond_fp16({&lost, 1}), 0U) << lost;
}

TEST(Fp16Range, FindsTheFirst) {
  for (const size_t at : {0U, 4095U, 4096U, 9999U}) {
    std::vector<float> values(10'000, 1.0F);
    values[at] = 1e5F;
    values.back() = -1e5F;
    EXPECT_EQ(first_beyond_fp16(values), at);
  }
  EXPECT_EQ(first_beyond_fp16({}), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::train
