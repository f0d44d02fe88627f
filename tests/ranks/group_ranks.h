// Ranks as threads of one process: they meet, talk and read each other's memory as processes do.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ranks/group.h"

namespace plimsoll::ranks::fixtures {

/// A job of its own for each test.
inline std::string some_job() {
  static int number = 0;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return std::string(test->name()) + "." + std::to_string(::getpid()) + "." + std::to_string(++number);
}

inline Launch launch_of(const std::string& job, int rank, int ranks) {
  return {
      .rank = rank, .ranks = ranks, .local_rank = rank, .local_ranks = ranks, .source = "test", .job = job};
}

/// Runs `rank` on a thread each, with its group, watched and ready to exchange.
inline void with_ranks(int ranks, const std::function<void(Group&)>& rank,
                       const std::function<GroupOptions(int rank)>& options_of) {
  const std::string job = some_job();
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      auto group = Group::join(launch_of(job, r, ranks), options_of(r));
      ASSERT_TRUE(group) << group.error().message();
      ASSERT_TRUE((*group)->start_watching());
      const Status way = (*group)->open_communicator();
      ASSERT_TRUE(way) << way.error().message();
      rank(**group);
    });
  for (std::thread& thread : threads) thread.join();
}
inline void with_ranks(int ranks, const std::function<void(Group&)>& rank, const GroupOptions& options = {}) {
  with_ranks(ranks, rank, [&](int /*rank*/) { return options; });
}

}  // namespace plimsoll::ranks::fixtures
