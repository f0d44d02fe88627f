#include "base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/process.h"
#include "base/signals.h"
#include "sanitizer.h"

namespace plimsoll {
namespace {

TEST(InChildProcess, BringsBackTheResult) {
  for (const std::string& text : {std::string(), std::string("one\ntwo"), std::string(300'000, 'x')}) {
    const auto result = in_child_process([&]() -> Result<std::string> { return text; });
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_EQ(*result, text);
  }
}

TEST(InChildProcess, BringsBackTheError) {
  const auto result = in_child_process([]() -> Result<std::string> {
    return Error{ErrorCode::kDoesNotFit, "what", "where", ""};
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(result.error().message(), "what: where");
  EXPECT_EQ(result.error().hint, "");
}

TEST(InChildProcess, KeepsItsMemoryToItself) {
  if (kSanitizer) GTEST_SKIP();
  const int64_t before = peak_resident_bytes();
  const auto result = in_child_process([]() -> Result<std::string> {
    const std::vector<char> large(size_t{256} << 20, 'x');
    return std::string(1, large.back());
  });
  ASSERT_TRUE(result);
  EXPECT_EQ(*result, "x");
  EXPECT_LT(peak_resident_bytes() - before, 64 << 20);
}

TEST(InChildProcess, ToldWhenItIsKilled) {
  const auto result = in_child_process([]() -> Result<std::string> {
    ::kill(::getpid(), SIGKILL);
    return std::string();
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
}

TEST(InChildProcess, HandsASignalOn) {
  const StopSignals signals(false);
  const auto result = in_child_process([]() -> Result<std::string> {
    ::kill(::getppid(), SIGTERM);
    for (int i = 0; i < 1000 && stop_requested() == 0; ++i) ::usleep(10'000);
    return Error{ErrorCode::kInterrupted, stop_requested() == SIGTERM ? "stopped" : "not told"};
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "stopped");
}

}  // namespace
}  // namespace plimsoll
