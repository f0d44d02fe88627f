// The validator against a quadratic one, and against plans with one fault each.
#include "memory/validator.h"

#include <gtest/gtest.h>

#include "instances.h"

namespace plimsoll::memory {
namespace {

/// By definition: every pair.
bool valid_by_pairs(const std::vector<Buffer>& buffers, const Placement& placement) {
  int64_t top = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    const int64_t x = placement.offsets[i];
    if (x < 0 || x % a.alignment != 0) return false;
    if (a.size > 0) top = std::max(top, x + a.size);
    for (size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const int64_t y = placement.offsets[j];
      const bool in_time = a.lower < b.upper && b.lower < a.upper;
      const bool in_space = std::max(x, y) < std::min(x + a.size, y + b.size);
      if (in_time && in_space) return false;
    }
  }
  return top == placement.height;
}

TEST(Validator, AgreesWithEveryPairOnRandomPlacements) {
  int64_t num_valid = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Buffer> buffers = random_buffers(seed, pick(random, 1, 6), 8, 4);
    Placement placement;
    for (Buffer& b : buffers) {
      if (random() % 8 == 0) b.size = 0;
      b.alignment = pick(random, 1, 2);
      placement.offsets.push_back(pick(random, 0, 8));
      if (b.size > 0) placement.height = std::max(placement.height, placement.offsets.back() + b.size);
    }
    const bool expected = valid_by_pairs(buffers, placement);
    num_valid += expected;
    ASSERT_EQ(validate(buffers, placement).ok(), expected) << "seed " << seed;
  }
  EXPECT_GT(num_valid, 200);  // both answers occur
  EXPECT_LT(num_valid, 3800);
}

TEST(Validator, NamesEachFault) {
  const std::vector<Buffer> buffers{{0, 4, 10}, {2, 6, 10, 8}};
  const auto fault = [&](Placement placement) {
    const Status status = validate(buffers, placement);
    return status.ok() ? std::string("valid") : status.error().message();
  };
  EXPECT_EQ(fault({.offsets = {0, 16}, .height = 26}), "valid");
  EXPECT_EQ(fault({.offsets = {16, 0}, .height = 26, .lower_bound = 20}), "valid");
  EXPECT_EQ(fault({.offsets = {0}, .height = 10}), "1 offsets for 2 buffers");
  EXPECT_EQ(fault({.offsets = {-1, 16}, .height = 26}), "offset -1 is negative: buffer 0");
  EXPECT_EQ(fault({.offsets = {0, 12}, .height = 22}),
            "offset 12 is not a multiple of its alignment 8: buffer 1");
  EXPECT_EQ(fault({.offsets = {0, 16}, .height = 30}), "height 30 stated, 26 found");
  EXPECT_EQ(fault({.offsets = {0, 16}, .height = 26, .lower_bound = 27}),
            "height 26 below its lower bound 27");
  EXPECT_NE(fault({.offsets = {0, 8}, .height = 18}).find("overlaps buffer 0"), std::string::npos);
  EXPECT_NE(fault({.offsets = {INT64_MAX, 16}, .height = 26}).find("overflows"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::memory
