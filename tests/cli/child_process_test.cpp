#include "cli/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <new>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/thread.h"
#include "cli/signals.h"
#include "sanitizer.h"

namespace plimsoll::cli {
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

TEST(InChildProcess, BringsBackAllOfTheError) {
  const std::string odd("a\0b", 3);
  const auto result = in_child_process([&]() -> Result<std::string> {
    Error error{ErrorCode::kBadData, odd, std::string(100'000, 'w'), "hint"};
    error.more = {{ErrorCode::kIo, "second", "there", ""}, {ErrorCode::kDiverged, "third"}};
    error.more[0].more = {{ErrorCode::kInvalidArgument, "within"}};
    return error;
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, odd);
  EXPECT_EQ(result.error().where.size(), 100'000U);
  ASSERT_EQ(result.error().more.size(), 2U);
  EXPECT_EQ(result.error().more[0].where, "there");
  EXPECT_EQ(result.error().more[0].more.at(0).what, "within");
  EXPECT_EQ(result.error().more[1].code, ErrorCode::kDiverged);
}

TEST(InChildProcess, TurnsWhatIsThrownIntoAnError) {
  const auto result = in_child_process([]() -> Result<std::string> { throw std::bad_alloc(); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_NE(result.error().what.find("memory"), std::string::npos);
}

TEST(InChildProcess, ATornAnswerIsNone) {
  const auto result = in_child_process([]() -> Result<std::string> {
    for (int fd = 3; fd < 64; ++fd) ::close(fd);  // the pipe as well: nothing can be told
    return std::string("lost");
  });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  const auto ended = in_child_process([]() -> Result<std::string> { ::_exit(0); });
  ASSERT_FALSE(ended) << "success without an answer";
}

// A child has its parent's locks as they were held when it was begun, and nobody to release them.
TEST(InChildProcess, StaysInThisProcessBesideThreads) {
  const auto id = [] {
    return *in_child_process([]() -> Result<std::string> { return std::to_string(::getpid()); });
  };
  EXPECT_NE(id(), std::to_string(::getpid()));
  std::atomic<bool> stop{false};
  auto thread = Thread::start("waiting", [&] { stop.wait(false); });
  ASSERT_TRUE(thread);
  EXPECT_EQ(id(), std::to_string(::getpid()));
  EXPECT_FALSE(in_child_process([]() -> Result<std::string> { throw std::bad_alloc(); }));
  stop = true;
  stop.notify_all();
  thread->join();
  EXPECT_NE(id(), std::to_string(::getpid()));
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
}  // namespace plimsoll::cli
