#include "backends/cpu/cpu_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <vector>

#include "backends/cpu/thread_pool.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kBytes = 6 << 20;

/// Pages of `memory` that are resident.
int64_t resident_pages(const runtime::Memory& memory) {
  std::vector<unsigned char> resident(static_cast<size_t>(kBytes / 4096));
  EXPECT_EQ(mincore(memory.address(), kBytes, resident.data()), 0);
  int64_t count = 0;
  for (const unsigned char page : resident) count += page & 1;
  return count;
}

TEST(CpuMemory, IsResidentFromTheStart) {
  ThreadPool pool(2);
  const auto memory = allocate_memory(ir::MemorySpace::kDevice, Bytes(kBytes), pool);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(resident_pages(**memory), kBytes / 4096);
}

TEST(CpuMemory, IsLeftUntouchedWhereWrittenPagesAreCounted) {
  ASSERT_EQ(setenv("PLIMSOLL_UNTOUCHED", "1", 1), 0);
  ThreadPool pool(2);
  const auto memory = allocate_memory(ir::MemorySpace::kDevice, Bytes(kBytes), pool);
  unsetenv("PLIMSOLL_UNTOUCHED");
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(resident_pages(**memory), 0);
  (*memory)->host()[5 * 4096] = std::byte{1};
  EXPECT_EQ(resident_pages(**memory), 1);
}

}  // namespace
}  // namespace plimsoll::cpu
