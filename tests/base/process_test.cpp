// What the kernel says of this process, and the count of what it asks of the heap.
#include "base/process.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
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
  if (!kCounts) GTEST_SKIP() << "beside a sanitizer nothing is counted";
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
              struct alignas(4096) Page {
                char bytes[kLargeAllocation];
              };
              Page* volatile page = new Page;
              EXPECT_EQ(reinterpret_cast<std::uintptr_t>(page) % 4096, 0U);
              delete page;
            }),
            Counts(1, 1));
  EXPECT_EQ(requests([] {
              int* volatile none = new (std::nothrow) int[100];
              delete[] none;
            }),
            Counts(1, 0));
}

// It is a library's part to count, the program's to have its heap: whatever is preloaded stays whole.
TEST(Process, ReplacesNoAllocator) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer brings its own";
  for (const char* name :
       {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "memalign", "free"}) {
    Dl_info info = {};
    ASSERT_NE(::dladdr(::dlsym(RTLD_DEFAULT, name), &info), 0) << name;
    EXPECT_STRNE(info.dli_fname, executable_path().c_str()) << name;
    EXPECT_EQ(std::string(info.dli_fname).find("test_base"), std::string::npos) << name;
  }
}

TEST(Process, CountsEachThreadsRequestsBehindTheLastThreadWithACounterOfItsOwnToo) {
  if (!kCounts) GTEST_SKIP() << "beside a sanitizer nothing is counted";
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
  if (!kCounts) GTEST_SKIP() << "beside a sanitizer nothing is counted";
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
