// The nearest known name.
#include "io/suggest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace plimsoll::io {
namespace {

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("learning_rtae", "learning_rate"), 1);
}

TEST(NearestName, PrefersTheFirstOfEquals) {
  const std::vector<std::string> names = {"cosine", "linear", "constant"};
  EXPECT_EQ(nearest_name("cosnie", names), "cosine");
  EXPECT_EQ(nearest_name("liner", names), "linear");
  EXPECT_EQ(nearest_name("x", {}), "");
}

TEST(NearestName, IsEmptyWhereNoneIsNear) {
  const std::vector<std::string> names = {"recompute", "recipe", "num_epochs", "bf16", "global_batch_size"};
  for (const char* far : {"", "x", "use_cpu", "report_to", "remove_unused_columns", "b6", "size", "h"})
    EXPECT_EQ(nearest_name(far, names), "") << far;
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), names), "");
  EXPECT_EQ(nearest_name("recompte", names), "recompute");
  EXPECT_EQ(nearest_name("epochs", names), "num_epochs");
  EXPECT_EQ(nearest_name("batch_size", names), "global_batch_size");
  EXPECT_EQ(nearest_name("bfloat16", names), "bf16");
}

TEST(NearestHint, ListsWhatThereIsWhereNoneIsNear) {
  const std::vector<std::string> names = {"cosine", "linear"};
  EXPECT_EQ(nearest_hint("cosin", names), "the nearest is cosine");
  EXPECT_EQ(nearest_hint("triangle", names), "one of cosine, linear");
  EXPECT_THAT(nearest_hint("x", std::vector<std::string>(1000, "a name")), testing::EndsWith(", …"));
  EXPECT_EQ(did_you_mean("cosin", names), "did you mean cosine?");
  EXPECT_EQ(did_you_mean("triangle", names), "");
}

}  // namespace
}  // namespace plimsoll::io
