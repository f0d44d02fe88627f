// A thread that the system refuses is an error, and those that were started before end.
#include "base/thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <vector>

#include "base/process.h"
#include "sanitizer.h"

namespace plimsoll {
namespace {

TEST(ThreadTest, RunsItsBodyAndIsWaitedFor) {
  std::atomic<int> done{0};
  {
    auto first = Thread::start("counting", [&] { ++done; });
    ASSERT_TRUE(first);
    EXPECT_TRUE(first->joinable());
    EXPECT_EQ(Thread::num_running(), 1);
    auto second = Thread::start("counting", [&] { ++done; });
    ASSERT_TRUE(second);
    *first = std::move(*second);  // waits for the first
    EXPECT_GE(done, 1);
    EXPECT_EQ(Thread::num_running(), 1);
  }
  EXPECT_EQ(done, 2);
  EXPECT_EQ(Thread::num_running(), 0);
}

TEST(ThreadTest, ARefusedOneIsAnError) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's own memory needs the room that is taken away here";
  std::atomic<bool> stop{false};
  std::vector<Thread> threads;
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight = {static_cast<rlim_t>(virtual_bytes() + (64 << 20)), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);  // no room for the stacks of 100 threads
  Status refused = Ok{};
  for (int i = 0; i < 100 && refused; ++i) {
    auto thread = Thread::start("waiting", [&] { stop.wait(false); });
    if (thread)
      threads.push_back(std::move(*thread));
    else
      refused = std::move(thread).error();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  stop = true;
  stop.notify_all();
  EXPECT_EQ(Thread::num_running(), static_cast<int>(threads.size()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(refused.error().where, "waiting");
  EXPECT_NE(refused.error().what.find("cannot be started"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll
