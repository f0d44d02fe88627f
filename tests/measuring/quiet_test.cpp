#include "measuring/quiet.h"

#include <gtest/gtest.h>

#include "base/resource_use.h"

namespace plimsoll::measuring {
namespace {

TEST(Quiet, IsBySecondsOfCpuTime) {
  EXPECT_TRUE(is_quiet(2, 60));
  EXPECT_FALSE(is_quiet(2, 200));
  EXPECT_TRUE(is_quiet(20, 600));
  EXPECT_TRUE(is_quiet(0.2, 200)) << "too little to judge by";
}

rusage counted(long cpu_seconds, long interruptions) {
  rusage use = {};
  use.ru_utime.tv_sec = cpu_seconds;
  use.ru_nivcsw = interruptions;
  return use;
}

/// Of the time since it was made, whatever the machine that tests has to do.
TEST(Quiet, IsOverWhereOthersComputeOnEveryProcessor) {
  rusage now = counted(10, 5000);
  const Quiet quiet([&] { return now; });
  EXPECT_TRUE(quiet.holds()) << "what was before does not count";
  now = counted(12, 5060);
  EXPECT_TRUE(quiet.holds());
  EXPECT_EQ(quiet.interruptions(), 30);
  now = counted(12, 5740);
  EXPECT_FALSE(quiet.holds());
  EXPECT_EQ(quiet.interruptions(), 370);
}

/// The kernel's own count goes up with the work that is done.
TEST(Quiet, CountsThisProcess) {
  const double before = cpu_seconds(resource_use());
  const Quiet quiet;
  while (cpu_seconds(resource_use()) - before < 0.05) {
  }
  EXPECT_GE(quiet.interruptions(), 0);
  EXPECT_TRUE(quiet.holds()) << "too little to judge by";
}

}  // namespace
}  // namespace plimsoll::measuring
