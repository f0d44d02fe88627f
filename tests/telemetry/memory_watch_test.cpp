#include "telemetry/memory_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::telemetry {
namespace {

using testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

class Memory {
 public:
  MemorySources sources() {
    return {[this] { return resident; }, [this] { return peak; },
            [this] {
              return MachineMemory{.physical_bytes = 64 * kMebibyte,
                                   .limit_bytes = 64 * kMebibyte,
                                   .available_bytes = available,
                                   .limited_by = "/group/memory.max"};
            },
            [this] { return seconds; }};
  }
  int64_t resident = 5 * kMebibyte, peak = 6 * kMebibyte, available = 40 * kMebibyte;
  double seconds = 100;
};

TEST(MemoryWatch, KnowsWhatEachPhaseHadAtMost) {
  Memory memory;
  MemoryWatch watch(0, memory.sources());
  watch.look("start");
  memory.peak = 9 * kMebibyte;  // between two looks, and given back
  watch.look("step");
  memory.seconds += 0.01, memory.resident = 20 * kMebibyte;
  watch.look("step");  // too soon to ask again
  memory.resident = 7 * kMebibyte;
  watch.look("eval");
  const std::vector<std::pair<std::string, int64_t>> phases = {
      {"start", 5 * kMebibyte}, {"step", 9 * kMebibyte}, {"eval", 7 * kMebibyte}};
  EXPECT_EQ(watch.phases(), phases);
  EXPECT_EQ(watch.recent_bytes(), 9 * kMebibyte);
  watch.reset();
  EXPECT_EQ(watch.recent_bytes(), 7 * kMebibyte);
}

TEST(MemoryWatch, SaysOnceThatTheProcessGrowsPastItsPlan) {
  Memory memory;
  MemoryWatch watch(8 * kMebibyte, memory.sources());
  EXPECT_TRUE(watch.look("step").empty());
  memory.resident = 8 * kMebibyte + 4096, memory.seconds += 1;
  const auto warnings = watch.look("step");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].kind, "over_plan");
  EXPECT_THAT(warnings[0].text, HasSubstr("4.00 KiB more than its plan of 8.00 MiB"));
  memory.seconds += 1, memory.resident *= 2;
  EXPECT_TRUE(watch.look("step").empty());
}

TEST(MemoryWatch, SaysOnceThatOthersTakeTheMemory) {
  Memory memory;
  MemoryWatch watch(8 * kMebibyte, memory.sources());
  memory.available = kMebibyte;
  EXPECT_TRUE(watch.look("step").empty());  // not asked yet
  memory.seconds += 3;
  const auto warnings = watch.look("step");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].kind, "memory_low");
  EXPECT_THAT(warnings[0].text, HasSubstr("1.00 MiB of memory are left under /group/memory.max"));
  memory.seconds += 3;
  EXPECT_TRUE(watch.look("step").empty());
}

TEST(MemoryWatch, WhatWasLittleFromTheStartIsTheRunsOwn) {
  Memory memory;
  memory.available = kMebibyte;
  MemoryWatch watch(8 * kMebibyte, memory.sources());
  memory.seconds += 3;
  EXPECT_TRUE(watch.look("step").empty());
}

}  // namespace
}  // namespace plimsoll::telemetry
