// The nearest known name.
#include "io/suggest.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll {
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
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), names), "cosine");
}

}  // namespace
}  // namespace plimsoll
