#include "memory/problem.h"

#include <gtest/gtest.h>

#include "instances.h"
#include "memory/live.h"

namespace plimsoll::memory {
namespace {

TEST(Problem, SectionsAreTheLargestSetsAliveTogether) {
  const std::vector<Buffer> buffers{{0, 5, 2}, {3, 9, 4}, {5, 9, 6}};
  const Problem problem = make_problem(buffers);
  ASSERT_EQ(problem.num_sections(), 2);
  EXPECT_EQ(problem.items[0].last, 1);
  EXPECT_EQ(problem.items[1].last, 2);
  EXPECT_EQ(problem.items[2].first, 1);
  EXPECT_EQ(problem.unit, 2);
  EXPECT_EQ(problem.load, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(problem.bound_bytes, 10);
}

TEST(Problem, SharedSectionsAreSharedTime) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<Buffer> buffers = random_buffers(seed, 25, 15, 10);
    const Problem problem = make_problem(buffers);
    for (size_t i = 0; i < buffers.size(); ++i)
      for (size_t j = 0; j < buffers.size(); ++j) {
        const Item& a = problem.items[i];
        const Item& b = problem.items[j];
        ASSERT_EQ(a.first < b.last && b.first < a.last,
                  buffers[i].lower < buffers[j].upper && buffers[j].lower < buffers[i].upper)
            << "seed " << seed;
      }
    EXPECT_EQ(problem.bound_bytes, live_profile(buffers).peak_bytes);
  }
}

TEST(Problem, UnitsFollowSizesAndAlignments) {
  const auto unit = [](std::vector<Buffer> buffers) { return make_problem(buffers).unit; };
  EXPECT_EQ(unit({{0, 1, 1024}, {0, 1, 4096}}), 1024);
  EXPECT_EQ(unit({{0, 1, 1024, 256}, {0, 1, 4096, 4096}}), 1024);  // 256 asks for nothing
  EXPECT_EQ(unit({{0, 1, 100, 64}, {0, 1, 20, 64}}), 64);          // sizes are rounded up
  EXPECT_EQ(unit({{0, 1, 6, 4}, {0, 1, 6, 3}}), 1);
  EXPECT_EQ(unit({{0, 1, 0}}), 1);
}

}  // namespace
}  // namespace plimsoll::memory
