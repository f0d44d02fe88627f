#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace plimsoll {
namespace {

using testing::HasSubstr;

// What a temporary Result holds outlives the statement it is named in: `for (x : *f())` reads no freed
// memory.
static_assert(std::is_same_v<decltype(*std::declval<Result<std::string>>()), std::string>);
static_assert(std::is_same_v<decltype(std::declval<Result<std::string>>().value()), std::string>);
static_assert(std::is_same_v<decltype(*std::declval<Result<std::string>&>()), std::string&>);
static_assert(std::is_same_v<decltype(*std::declval<const Result<std::string>&>()), const std::string&>);

Result<std::vector<int>> numbers(int count) {
  if (count < 0) return Error{ErrorCode::kInvalidArgument, "less than none", "count", "give more"};
  std::vector<int> found(static_cast<size_t>(count));
  std::iota(found.begin(), found.end(), 1);
  return found;
}

Result<int> sum(int count) {
  PLIMSOLL_ASSIGN(const std::vector<int> all, numbers(count));
  return std::accumulate(all.begin(), all.end(), 0);
}

TEST(Result, AValueOfATemporaryMayBeWalked) {
  int total = 0;
  for (const int number : *numbers(100)) total += number;
  EXPECT_EQ(total, 5050);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> held = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(held);
  EXPECT_EQ(*taken, 3);
}

TEST(Result, ErrorsPassThroughWithTheirPlace) {
  EXPECT_EQ(*sum(3), 6);
  const auto failed = sum(-1);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "less than none: count");
  Error outer = failed.error();
  outer.more = {failed.error()};
  outer = std::move(outer).at("run.yaml");
  EXPECT_EQ(outer.message(), "less than none: run.yaml: count");
  EXPECT_EQ(outer.more[0].where, "run.yaml: count");
}

TEST(ResultDeathTest, TheValueOfAFailureIsABug) {
  EXPECT_DEATH(static_cast<void>(numbers(-1).value()), HasSubstr("less than none: count"));
}

}  // namespace
}  // namespace plimsoll
