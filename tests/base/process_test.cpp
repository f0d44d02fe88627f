// What the kernel says of this process, and the count of what it asks of the heap.
#include "base/process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sanitizer.h"

namespace plimsoll {
namespace {

constexpr bool kCounts = !kSanitizer;

TEST(Process, KnowsItsMemory) {
  EXPECT_GT(peak_resident_bytes(), 0);
  EXPECT_GE(virtual_bytes(), peak_resident_bytes() / 2);
}

/// What `ask` asks of the heap: all requests, and the large ones.
template <typename Ask>
std::pair<int64_t, int64_t> requests(Ask ask) {
  const int64_t all = num_allocations(), large = num_large_allocations();
  ask();
  return {num_allocations() - all, num_large_allocations() - large};
}

TEST(Process, CountsWhatIsAskedOfTheHeap) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  using Counts = std::pair<int64_t, int64_t>;
  EXPECT_EQ(requests([] {}), Counts(0, 0));
  EXPECT_EQ(requests([] {
              char* volatile large = new char[kLargeAllocation];
              delete[] large;
            }),
            Counts(1, 1));
  EXPECT_EQ(requests([] {
              char* volatile small = new char[kLargeAllocation - 1];
              delete[] small;
            }),
            Counts(1, 0));
  EXPECT_EQ(requests([] {
              void* volatile p = std::calloc(10, 7);
              p = std::realloc(p, kLargeAllocation);
              std::free(p);
              p = std::aligned_alloc(64, 128);
              std::free(p);
              void* q = nullptr;
              EXPECT_EQ(posix_memalign(&q, 4096, 8192), 0);
              EXPECT_EQ(reinterpret_cast<std::uintptr_t>(q) % 4096, 0U);
              std::free(q);
              EXPECT_NE(posix_memalign(&q, 3, 8), 0);
            }),
            Counts(4, 1));
}

TEST(Process, CountsEachThreadsRequestsBehindTheLastThreadWithACounterOfItsOwnToo) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  constexpr int kThreads = 80, kRequests = 200;
  std::atomic<int> phase{0}, done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      phase.wait(0);
      for (int i = 0; i < kRequests; ++i) {
        char* volatile small = new char[8];
        delete[] small;
      }
      ++done;
      phase.wait(1);
    });
  const int64_t asked = requests([&] {
                          phase = 1;
                          phase.notify_all();
                          while (done < kThreads) std::this_thread::yield();
                        }).first;
  phase = 2;
  phase.notify_all();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(asked, kThreads * kRequests);
}

TEST(Process, CountsOnEveryThread) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's malloc is not counted";
  constexpr int kThreads = 4, kEach = 1000;
  const auto [all, large] = requests([] {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < kEach; ++i) {
          int* volatile p = new int(i);
          delete p;
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_GE(all, kThreads * kEach);
  EXPECT_LE(all, kThreads * kEach + 20 * kThreads) << "but for starting threads";
  EXPECT_EQ(large, 0);
}

}  // namespace
}  // namespace plimsoll
