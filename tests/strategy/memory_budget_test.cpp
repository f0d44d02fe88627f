#include "strategy/memory_budget.h"

#include <gmock/gmock.h>

namespace plimsoll::strategy {
namespace {

constexpr int64_t kMiB = 1 << 20;

settings::MemoryBudget of_bytes(int64_t bytes) {
  return {.kind = settings::MemoryBudget::Kind::kBytes, .bytes = bytes};
}

TEST(MemoryBudgetTest, AutoLeavesAReserveOfATenthAtMost) {
  const auto automatic = [](int64_t mib) { return budget_bytes({}, {.available_bytes = mib * kMiB}) / kMiB; };
  EXPECT_EQ(automatic(16384), 16384 - 256);
  EXPECT_EQ(automatic(2560), 2560 - 256);
  EXPECT_EQ(automatic(1000), 900);
  EXPECT_EQ(automatic(160), 144);
  EXPECT_EQ(automatic(0), 0);
}

TEST(MemoryBudgetTest, AShareIsOfTheLimitAndBytesAreBytes) {
  const MachineMemory memory{16384 * kMiB, 160 * kMiB, 100 * kMiB, "/g/memory.max"};
  EXPECT_EQ(budget_bytes({.kind = settings::MemoryBudget::Kind::kShare, .share = 0.5}, memory), 80 * kMiB);
  EXPECT_EQ(budget_bytes(of_bytes(5), memory), 5);
}

TEST(MemoryBudgetTest, WhatIsGivenAboveTheLimitIsSaid) {
  const MachineMemory machine{1024 * kMiB, 1024 * kMiB, 512 * kMiB, ""},
      group{1024 * kMiB, 160 * kMiB, 512 * kMiB, "/g/memory.max"};
  settings::RunConfig config;
  EXPECT_THAT(budget_notes(config, group), testing::IsEmpty());
  config.memory.budget = of_bytes(160 * kMiB);
  EXPECT_THAT(budget_notes(config, group), testing::IsEmpty());
  config.memory.budget = of_bytes(2048 * kMiB);
  EXPECT_THAT(budget_notes(config, group),
              testing::ElementsAre("memory.budget is 2.00 GiB, and /g/memory.max allows 160.0 MiB"));
  config.memory.host_budget = of_bytes(1025 * kMiB);
  EXPECT_THAT(budget_notes(config, machine),
              testing::ElementsAre("memory.budget is 2.00 GiB, and this machine has 1.00 GiB",
                                   testing::StartsWith("memory.host_budget is ")));
}

}  // namespace
}  // namespace plimsoll::strategy
