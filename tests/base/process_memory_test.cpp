#include "base/process_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/process.h"
#include "sanitizer.h"

namespace plimsoll {
namespace {

TEST(ProcessMemory, WhatIsResident) {
  EXPECT_GT(resident_bytes(), int64_t{1} << 20);
  EXPECT_LE(resident_bytes(), peak_resident_bytes() + (int64_t{1} << 20));
  EXPECT_GE(swapped_bytes(), 0);
}

TEST(ProcessMemory, WhatCouldBeReserved) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs the address space";
  constexpr int64_t kMib = int64_t{1} << 20;
  EXPECT_EQ(reservable_bytes(64 * kMib), 64 * kMib);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(virtual_bytes() + 40 * kMib);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const int64_t reservable = reservable_bytes(64 * kMib);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_GT(reservable, 36 * kMib);
  EXPECT_LE(reservable, 40 * kMib);
}

}  // namespace
}  // namespace plimsoll
