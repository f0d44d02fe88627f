// Whoever waits for a number is let through when it is reached, and not before; none sleeps on.
#include "backends/discrete/counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace plimsoll::discrete {
namespace {

using std::chrono::milliseconds;

TEST(Counter, RisesAndNeverFalls) {
  Counter counter;
  EXPECT_EQ(counter.value(), 0U);
  counter.raise(5);
  counter.raise(3);
  EXPECT_EQ(counter.value(), 5U);
  counter.wait(5);  // is reached: returns
}

TEST(Counter, ADeadlineEndsTheWait) {
  Counter counter;
  counter.raise(1);
  const auto begin = Counter::Clock::now();
  EXPECT_FALSE(counter.wait_until(2, begin + milliseconds(3)));
  EXPECT_GE(Counter::Clock::now() - begin, milliseconds(3));
  EXPECT_TRUE(counter.wait_until(1, begin));
}

TEST(Counter, ManyWaitersForManyNumbers) {
  constexpr uint64_t kMost = 3000;
  Counter counter;
  std::vector<uint64_t> written(kMost + 1, 0);
  std::vector<std::thread> waiters;
  std::atomic<int> wrong{0};
  for (uint64_t step : {1, 7, 40, 999})
    waiters.emplace_back([&, step] {
      for (uint64_t at = step; at <= kMost; at += step) {
        counter.wait(at);
        if (counter.value() < at || written[at] != at) ++wrong;
      }
    });
  for (uint64_t at = 1; at <= kMost; ++at) {
    written[at] = at;  // seen by whom the counter lets through
    counter.raise(at);
    if (at % 100 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  for (auto& waiter : waiters) waiter.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Counter, AWaiterWithADeadlineDoesNotTakeAnothersWakeUp) {
  for (int round = 0; round < 50; ++round) {
    Counter counter;
    std::thread patient([&] { counter.wait(10); });
    std::thread hasty([&] { counter.wait_until(5, Counter::Clock::now() + std::chrono::microseconds(100)); });
    std::this_thread::sleep_for(std::chrono::microseconds(80));
    counter.raise(5);
    counter.raise(10);
    patient.join();
    hasty.join();
  }
}

}  // namespace
}  // namespace plimsoll::discrete
