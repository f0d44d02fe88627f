#include "measuring/quiet.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "base/process.h"

namespace plimsoll::measuring {
namespace {

void compute(double seconds) {
  for (const double start = now_seconds(); now_seconds() - start < seconds;) {
  }
}

TEST(Quiet, IsBySecondsOfCpuTime) {
  EXPECT_TRUE(is_quiet(2, 60));
  EXPECT_FALSE(is_quiet(2, 200));
  EXPECT_TRUE(is_quiet(20, 600));
  EXPECT_TRUE(is_quiet(0.2, 200)) << "too little to judge by";
}

TEST(Quiet, IsOverWhereOthersComputeOnEveryProcessor) {
  std::vector<pid_t> others;
  for (int i = 0; i < num_available_cpus(); ++i) {
    const pid_t other = fork();
    if (other == 0)
      for (;;) {
      }
    others.push_back(other);
  }
  const Quiet quiet;
  compute(1.5);
  EXPECT_FALSE(quiet.holds()) << quiet.interruptions();
  for (const pid_t other : others) {
    kill(other, SIGKILL);
    waitpid(other, nullptr, 0);
  }
}

}  // namespace
}  // namespace plimsoll::measuring
