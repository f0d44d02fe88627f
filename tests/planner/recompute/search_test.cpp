#include "planner/recompute/search.h"

#include <gtest/gtest.h>

#include "planner/report/report.h"

namespace plimsoll::planner {
namespace {

struct PlannedStep {
  size_t candidate = 0;
  PlanReport report;
};

/// Candidates whose memory is `bytes`, planned against a budget; counts the plans.
struct Rig {
  std::vector<int64_t> bytes;
  int64_t budget = 0;
  int plans = 0;

  size_t search() {
    std::vector<double> sizes;
    for (size_t i = 0; i < bytes.size(); ++i) sizes.push_back(static_cast<double>(bytes.size() - i));
    const auto plan = [&](size_t i) -> Result<PlannedStep> {
      ++plans;
      if (bytes[i] < 0) return Error{ErrorCode::kInvalidArgument, "too large to count"};
      PlannedStep planned{i, {}};
      planned.report.arena_bytes = bytes[i];
      planned.report.fits = bytes[i] <= budget;
      return planned;
    };
    const auto found = first_that_fits(sizes, budget, plan);
    return found ? found->candidate : bytes.size();
  }
};

TEST(Search, FindsTheFirstThatFitsWhateverTheBudget) {
  std::vector<int64_t> bytes = {500};
  for (int64_t i = 1; i < 40; ++i) bytes.push_back(1000 - 20 * i);
  for (int64_t budget = 0; budget < 1100; budget += 7) {
    size_t expected = bytes.size();
    for (size_t i = bytes.size(); i-- > 0;)
      if (bytes[i] <= budget) expected = i;
    Rig rig{bytes, budget};
    if (expected == bytes.size()) expected = 39;  // none: the one that needs least
    EXPECT_EQ(rig.search(), expected) << budget;
    EXPECT_LE(rig.plans, 6) << budget;  // a line needs few looks
  }
}

TEST(Search, MemoryThatIsNoLineIsFoundAllTheSame) {
  std::vector<int64_t> bytes = {900};
  for (int64_t i = 1; i < 30; ++i) bytes.push_back(900 - i * i);
  for (int64_t budget = 59; budget < 900; budget += 11) {
    Rig rig{bytes, budget};
    const size_t found = rig.search();
    EXPECT_LE(bytes[found], budget);
    EXPECT_TRUE(found == 0 || bytes[found - 1] > budget) << budget;
  }
}

TEST(Search, ACandidateTooLargeToPlanIsNoReasonNotToTryLess) {
  Rig rig{{-1, -1, 800, 400, 200}, 500};
  EXPECT_EQ(rig.search(), 3U);
}

TEST(Search, WhereNothingFitsTheLeastIsNamed) {
  Rig whole{{300, 800, 400}, 100}, smallest{{700, 800, 400}, 100};
  EXPECT_EQ(whole.search(), 0U);
  EXPECT_EQ(smallest.search(), 2U);
}

}  // namespace
}  // namespace plimsoll::planner
