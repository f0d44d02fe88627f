// calibrate --from as its user calls it: a profile in the cache, a profiled run, the profile corrected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/cpu/kernels/isa.h"
#include "cli/run_plimsoll.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "planner/cost/known_profiles.h"
#include "strategy/machine_rates.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

class CalibrateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME"); before != nullptr) before_ = before;
    setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

  /// A profile of this machine, as if it had been measured.
  void keep_profile() {
    planner::MachineProfile profile = planner::generic_cpu(cpu::isa_name(cpu::current_isa()));
    profile.name = strategy::machine_name();
    profile.rates = "calibrated";
    std::filesystem::create_directories(folder_.path() + "/plimsoll");
    ASSERT_TRUE(io::write_file_atomically(strategy::calibrated_path(), planner::profile_json(profile)));
  }

  io::TemporaryFolder folder_;
  std::string before_;
};

TEST_F(CalibrateTest, AProfiledRunCorrectsTheProfileItWasEstimatedBy) {
  keep_profile();
  const std::string run = folder_.path() + "/run.yaml", out = folder_.path() + "/out";
  ASSERT_TRUE(io::write_file_atomically(
      run,
      "model: {preset: gpt2, init: random, overrides: {n_layer: 1, n_embd: 48, vocab_size: 97}}\n"
      "data: {sequence_length: 16}\ntraining: {global_batch_size: 4, max_steps: 2}\nruntime: {threads: "
      "1}\n"));
  const Outcome profiled =
      run_plimsoll({"profile", run, "--wait", "0", "--warmup", "1", "--active", "1", "--output", out});
  ASSERT_EQ(profiled.code, 0) << profiled.err;
  const Outcome corrected = run_plimsoll({"calibrate", "--from", out});
  ASSERT_EQ(corrected.code, 0) << corrected.err;
  EXPECT_THAT(corrected.out, HasSubstr("linear_dw"));
  const auto profile = planner::load_profile(strategy::calibrated_path());
  ASSERT_TRUE(profile);
  EXPECT_GT(profile->factors.size(), 5u);
  const Outcome again = run_plimsoll({"calibrate", "--from", out});
  EXPECT_EQ(again.code, 2) << "its estimates were by the profile before";
  EXPECT_THAT(again.err, HasSubstr("another profile"));
}

TEST_F(CalibrateTest, WhatIsNoMeasuredRunIsRefused) {
  const Outcome without = run_plimsoll({"calibrate", "--from", folder_.path()});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("run 'plimsoll calibrate' first"));
  keep_profile();
  EXPECT_EQ(run_plimsoll({"calibrate", "--from", folder_.path() + "/nothing"}).code, 65);
  const std::string log = folder_.path() + "/events.jsonl";
  ASSERT_TRUE(io::write_file_atomically(log, "{\"event\": \"step\"}\n"));
  const Outcome none = run_plimsoll({"calibrate", "--from", folder_.path()});
  EXPECT_EQ(none.code, 65);
  EXPECT_THAT(none.err, HasSubstr("no measured step"));
  for (const char* bad : {"{\"event\": \"estimate\"", "{\"event\": \"estimate\", \"ops\": 7}\n",
                          "[[[[[[[[[[[\"estimate\"]]]]]]]]]]]\n"}) {
    ASSERT_TRUE(io::write_file_atomically(log, bad));
    EXPECT_EQ(run_plimsoll({"calibrate", "--from", folder_.path()}).code, 65) << bad;
  }
}

}  // namespace
}  // namespace plimsoll::cli
