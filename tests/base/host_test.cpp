#include "base/host.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace plimsoll {
namespace {

class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    noted().clear();
    trims() = 0;
  }
  void TearDown() override { set_host({}); }
  static std::string& noted() {
    static std::string text;
    return text;
  }
  static int& trims() {
    static int count = 0;
    return count;
  }
};

TEST_F(HostTest, WithoutOneNothingIsPrintedAndWorkRunsHere) {
  testing::internal::CaptureStderr();
  note("nobody sees this");
  trim_heap();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  int runs = 0;
  const auto result = run_apart([&]() -> Result<std::string> {
    ++runs;
    return std::string("done");
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "done");
  EXPECT_EQ(runs, 1);
}

TEST_F(HostTest, WorkThatThrowsIsAnError) {
  const auto result = run_apart([]() -> Result<std::string> { throw std::runtime_error("unforeseen"); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kBadData);
}

TEST_F(HostTest, AHostDoesWhatItIsAskedFor) {
  set_host({.note = [](const std::string& text) { noted() += text; },
            .trim_heap = [] { ++trims(); },
            .run_apart = [](const Work&) -> Result<std::string> { return std::string("elsewhere"); }});
  note("remark");
  trim_heap();
  EXPECT_EQ(noted(), "remark");
  EXPECT_EQ(trims(), 1);
  const auto result = run_apart([]() -> Result<std::string> { return std::string("here"); });
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "elsewhere");
}

}  // namespace
}  // namespace plimsoll
