#include "io/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace plimsoll::io {
namespace {

TEST(InParallel, DoesEachPieceOnce) {
  for (const int threads : {-1, 1, 2, 7}) {
    std::vector<std::atomic<int>> done(100);
    ASSERT_TRUE(in_parallel(done.size(), threads, [&](size_t i, size_t) -> Status {
      ++done[i];
      return Ok{};
    }));
    for (const auto& times : done) EXPECT_EQ(times, 1);
  }
  EXPECT_TRUE(in_parallel(0, 4, [](size_t, size_t) { return Status(Error{}); }));
}

TEST(InParallel, ReturnsTheFirstFailureOfTheList) {
  // Pieces 10 and 11 are both begun before either fails; in time, once the one is first and once the other.
  for (const size_t early : {size_t{10}, size_t{11}}) {
    std::atomic<int> begun = 0;
    std::atomic<bool> other_begun = false, early_done = false;
    const Status status = in_parallel(1000, 2, [&](size_t i, size_t) -> Status {
      ++begun;
      if (i < 10) return Ok{};
      if (i == early) {
        while (!other_begun) std::this_thread::yield();
        early_done = true;
      } else {
        other_begun = true;
        while (!early_done) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      return Error{ErrorCode::kBadData, std::to_string(i)};
    });
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().what, "10");
    EXPECT_EQ(begun, 12) << "nothing is begun after a failure";
  }
}

}  // namespace
}  // namespace plimsoll::io
