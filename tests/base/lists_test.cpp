#include "base/lists.h"

#include <gmock/gmock.h>

#include <array>
#include <utility>

namespace plimsoll {
namespace {

using testing::ElementsAre;

TEST(Lists, KeepTheOrderOfTheirItems) {
  const Lists<int> lists(3, [](const auto& add) {
    for (const auto& [list, item] : std::array<std::pair<size_t, int>, 4>{{{2, 7}, {0, 5}, {2, 3}, {0, 6}}})
      add(list, item);
  });
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_THAT(lists[0], ElementsAre(5, 6));
  EXPECT_TRUE(lists[1].empty());
  EXPECT_THAT(lists[2], ElementsAre(7, 3));
}

TEST(Lists, GrowOneByOne) {
  Lists<int> lists;
  EXPECT_EQ(lists.size(), 0U);
  lists.push_back(std::array{1, 2});
  lists.push_back({});
  lists.push_back(std::array{3});
  ASSERT_EQ(lists.size(), 3U);
  EXPECT_THAT(lists[0], ElementsAre(1, 2));
  EXPECT_TRUE(lists[1].empty());
  EXPECT_THAT(lists[2], ElementsAre(3));
}

}  // namespace
}  // namespace plimsoll
