#include "planner/programs/place_updates.h"

#include <gtest/gtest.h>

#include "base/result.h"

namespace plimsoll::planner {
namespace {

struct Placed {
  bool in_backward = false;
  int programs = 0;
  PlanReport report = {};
};

/// Which place is taken where the plans need so much.
bool in_backward(int64_t behind, int64_t in, int64_t budget) {
  const auto planned = place_updates([&](bool in_backward) -> Result<Placed> {
    const int64_t bytes = in_backward ? in : behind;
    if (bytes < 0) return Error{ErrorCode::kInvalidArgument, "cannot be planned"};
    Placed plan{in_backward};
    plan.report.arena_bytes = bytes;
    plan.report.fits = bytes <= budget;
    return plan;
  });
  return planned && planned->in_backward;
}

TEST(PlaceUpdates, InBackwardOnlyWhereItDoesNotFitBehind) {
  EXPECT_FALSE(in_backward(100, 80, 100));
  EXPECT_TRUE(in_backward(101, 80, 100));
  EXPECT_TRUE(in_backward(120, 110, 100)) << "less is to be computed again then";
  EXPECT_TRUE(in_backward(120, 120, 100)) << "the peak may move to backward's end by computing again";
  EXPECT_FALSE(in_backward(120, 121, 100));
  EXPECT_FALSE(in_backward(120, -1, 100));
}

}  // namespace
}  // namespace plimsoll::planner
