// Every tile once, whatever the number of threads; calls that follow one another at once; sleep and wake.
#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace plimsoll::cpu {
namespace {

TEST(ThreadPool, EachTileOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (const int64_t tiles : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(tiles));
      std::atomic<bool> bad{false};
      pool.run(tiles, [&](int64_t tile, int thread) {
        if (tile < 0 || tile >= tiles || thread < 0 || thread >= threads) bad = true;
        ++done[static_cast<size_t>(tile)];
      });
      EXPECT_FALSE(bad);
      for (const auto& d : done) EXPECT_EQ(d, 1);
    }
  }
}

// What run() wrote before and read after needs no atomics: a call is a barrier. (The sanitizers watch this
// one.)
TEST(ThreadPool, CallsInARowSeeEachOthersPlainWrites) {
  ThreadPool pool(4);
  std::vector<int64_t> x(64, 0);
  int64_t expected = 0;
  for (int call = 0; call < 3000; ++call) {
    const auto tiles = static_cast<int64_t>(2 + call % 63);
    pool.run(tiles, [&](int64_t tile, int) { x[static_cast<size_t>(tile)] += call; });
    if (tiles > 20) expected += call;
    ASSERT_EQ(x[20], expected);
  }
}

TEST(ThreadPool, PrivateScratchIsPrivate) {
  constexpr int kThreads = 8;
  ThreadPool pool(kThreads);
  std::vector<int> scratch(kThreads * 64);
  std::atomic<int> clashes{0};
  pool.run(2000, [&](int64_t tile, int thread) {
    int& mine = scratch[static_cast<size_t>(thread) * 64];
    mine = static_cast<int>(tile);
    std::this_thread::yield();
    if (mine != tile) ++clashes;
  });
  EXPECT_EQ(clashes, 0);
}

TEST(ThreadPool, WakesAfterSleep) {
  ThreadPool pool(2);
  for (int call = 0; call < 20; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // well past the spinning
    std::atomic<int> others{0};
    // The caller cannot finish its tile alone.
    pool.run(2, [&](int64_t, int) {
      ++others;
      while (others < 2) std::this_thread::yield();
    });
    EXPECT_EQ(others, 2);
  }
}

TEST(ThreadPool, TilesAreClaimedInRisingOrder) {
  ThreadPool pool(3);
  std::atomic<int64_t> last[3] = {-1, -1, -1};
  std::atomic<bool> fell{false};
  pool.run(500, [&](int64_t tile, int thread) {
    if (last[thread].exchange(tile) >= tile) fell = true;
  });
  EXPECT_FALSE(fell);
}

TEST(ThreadPool, CountsEachThreadsSecondsInTiles) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    const auto nap = [](int64_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
    pool.run(4, nap);
    EXPECT_TRUE(pool.take_seconds().empty());
    pool.count_seconds(true);
    pool.run(6, nap);
    double sum = 0;
    for (const double seconds : pool.take_seconds()) sum += seconds;
    EXPECT_EQ(pool.take_seconds().size(), static_cast<size_t>(threads));
    EXPECT_GE(sum, 6 * 0.002);
    for (const double seconds : pool.take_seconds()) EXPECT_EQ(seconds, 0);
    pool.run(1, nap);
    EXPECT_GE(pool.take_seconds()[0], 0.002) << "a single tile is the caller's";
    pool.count_seconds(false);
    pool.run(2, nap);
    EXPECT_TRUE(pool.take_seconds().empty());
  }
}

TEST(ThreadPool, ComesAndGoes) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    std::atomic<int> sum{0};
    if (i % 2) pool.run(5, [&](int64_t tile, int) { sum += static_cast<int>(tile); });
    EXPECT_EQ(sum, i % 2 ? 10 : 0);
  }
}

// Two pools may work at the same time, each with its own caller.
TEST(ThreadPool, PoolsAreIndependent) {
  std::atomic<int64_t> total{0};
  auto caller = [&] {
    ThreadPool pool(3);
    for (int call = 0; call < 200; ++call) pool.run(10, [&](int64_t, int) { ++total; });
  };
  std::thread a(caller), b(caller);
  a.join();
  b.join();
  EXPECT_EQ(total, 4000);
}

TEST(ThreadPool, ThrowsWhatATileHasThrown) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::atomic<int> done{0};
    const auto body = [&](int64_t tile, int) {
      ++done;
      if (tile % 2 == 1) throw std::runtime_error("tile");
    };
    EXPECT_THROW(pool.run(8, body), std::runtime_error);
    EXPECT_EQ(done, 8) << "all tiles are run";
    pool.run(8, [&](int64_t, int) { ++done; });  // and the pool goes on
    EXPECT_EQ(done, 16);
  }
}

}  // namespace
}  // namespace plimsoll::cpu
