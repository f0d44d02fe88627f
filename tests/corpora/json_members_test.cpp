// What is kept of objects and lists, however many members they have.
#include "corpora/json_members.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> items(std::string_view list) {
  std::vector<std::string> result;
  ListItems walk(list);
  for (std::string_view item; walk.next(item);) result.emplace_back(item);
  return result;
}

TEST(JsonMembers, KeepsWhatIsAskedFor) {
  constexpr std::string_view kKeys[] = {"a", "b\n"};
  const Members members =
      members_of(R"({"x": {"a": 0}, "\u0061": [1, {"a": 2}], "b\n": null, "c": 3})", kKeys);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].key, "a");
  EXPECT_EQ(members[0].value, R"([1, {"a": 2}])");
  EXPECT_EQ(members[1].key, "b\n");
  EXPECT_EQ(find(members, "b\n"), "") << "null is as absent";
  EXPECT_THAT(members_of("{}", kKeys), IsEmpty());
}

TEST(JsonMembers, KeepsTheFirstAndTheLastOfAKey) {
  constexpr std::string_view kKeys[] = {"a", "b"};
  std::string object = R"({"a": 1, "b": 2)";
  for (int i = 0; i < 100'000; ++i) object += R"(, "a": 3, "": 4)";
  object += R"(, "a": 5})";  // members point into it
  const Members members = members_of(object, kKeys);
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(find(members, "a"), "1");
  EXPECT_EQ(members.back().value, "5");
  EXPECT_LE(members.capacity(), 8U);
}

TEST(JsonMembers, ScansAllOfAnObject) {
  Members members;
  JsonScanner broken(R"({"a": 1, "b": })");
  EXPECT_FALSE(scan_object(broken, {}, members));
  EXPECT_THAT(broken.error(), testing::HasSubstr("expected a value"));
  JsonScanner good(R"( {"a": 1, "b": 2} x)");
  EXPECT_TRUE(scan_object(good, {}, members));
  EXPECT_FALSE(good.expect_end());
}

TEST(JsonMembers, NamesTheFirstKeys) {
  EXPECT_THAT(first_keys(R"({"a": {"b": 1}, "\n": 2, "c": 3})", 2), ElementsAre("a", "\n"));
  EXPECT_THAT(first_keys(R"({"a": 1})", 2), ElementsAre("a"));
  EXPECT_THAT(first_keys("{ }", 2), IsEmpty());
}

TEST(JsonMembers, WalksLists) {
  EXPECT_THAT(items(R"( [1, [2, 3] , {"a": [4]},"x,]"])"),
              ElementsAre("1", "[2, 3]", R"({"a": [4]})", R"("x,]")"));
  EXPECT_THAT(items("[ ]"), IsEmpty());
  EXPECT_THAT(items("[[]]"), ElementsAre("[]"));
  EXPECT_THAT(items(""), IsEmpty());
}

}  // namespace
}  // namespace plimsoll::corpora
