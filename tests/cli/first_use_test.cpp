// Measured once, in another process, and kept: by a stand-in that takes no time.
#include "cli/first_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu/kernels/isa.h"
#include "base/process.h"
#include "cli/host.h"
#include "cli/run_plimsoll.h"
#include "devices/devices.h"
#include "io/file.h"
#include "io/temporary_folder.h"
#include "planner/cost/known_profiles.h"
#include "strategy/machine_rates.h"

namespace plimsoll::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FirstUseTest : public testing::Test {
 protected:
  void SetUp() override {
    be_host();
    if (const char* before = std::getenv("XDG_CACHE_HOME"); before != nullptr) before_ = before;
    use_cache(folder_.path() + "/cache");
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      use_cache(before_);
  }
  static void use_cache(const std::string& path) { setenv("XDG_CACHE_HOME", path.c_str(), 1); }

  /// As if measured; each time it is, a file gets a letter, from whatever process.
  planner::MachineProfile measured() const {
    std::ofstream(folder_.path() + "/times", std::ios::app) << 'x';
    planner::MachineProfile p = planner::generic_cpu(isa());
    p.rates = "measured";
    p.threads = num_available_cpus();
    p.launch_seconds = 0.125;
    return p;
  }
  [[nodiscard]] size_t times() const {
    std::error_code code;
    const auto size = fs::file_size(folder_.path() + "/times", code);
    return code ? 0 : size;
  }
  /// What is said on stderr.
  std::string plan(const settings::RunConfig& config = {}) {
    testing::internal::CaptureStderr();
    measure_at_first_use(config, [this] { return measured(); });
    return testing::internal::GetCapturedStderr();
  }
  static std::string isa() { return std::string(cpu::isa_name(cpu::current_isa())); }
  static planner::MachineProfile profile_in_use(const settings::RunConfig& config = {}) {
    const auto target = devices::make_target({.num_threads = 1});
    const auto profile = strategy::run_profile(config, *target);
    EXPECT_TRUE(profile);
    return profile ? *profile : planner::MachineProfile();
  }

  io::TemporaryFolder folder_;
  std::string before_;
};

TEST_F(FirstUseTest, MeasuresOnceAndSaysSoOnce) {
  EXPECT_EQ(profile_in_use().rates, "uncalibrated");
  const std::string said = plan();
  EXPECT_THAT(said, HasSubstr("measured this machine"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_EQ(profile_in_use().rates, "measured");
  EXPECT_EQ(profile_in_use().launch_seconds, 0.125);
  EXPECT_EQ(profile_in_use().threads, num_available_cpus());
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(times(), 1u);
}

TEST_F(FirstUseTest, ADamagedFileIsMeasuredAnew) {
  plan();
  const std::string path = strategy::first_rates_path(isa());
  ASSERT_TRUE(io::write_file_atomically(path, "{\"plimsoll_machine_profile\": 4"));
  EXPECT_EQ(profile_in_use().rates, "uncalibrated") << "never half";
  EXPECT_THAT(plan(), HasSubstr("damaged"));
  EXPECT_EQ(profile_in_use().rates, "measured");
  planner::MachineProfile other = measured();  // whole, and of another machine
  other.name = "elsewhere";
  ASSERT_TRUE(io::write_file_atomically(path, planner::profile_json(other)));
  EXPECT_EQ(profile_in_use().rates, "uncalibrated");
  EXPECT_THAT(plan(), HasSubstr("damaged"));
  EXPECT_EQ(plan(), "");
}

TEST_F(FirstUseTest, WhereNothingCanBeKeptNothingIsMeasured) {
  use_cache("/dev/null");
  EXPECT_EQ(plan(), "");
  EXPECT_EQ(times(), 0u);
  EXPECT_EQ(profile_in_use().rates, "uncalibrated");
}

TEST_F(FirstUseTest, ACalibratedProfileWins) {
  plan();
  planner::MachineProfile p = measured();
  p.rates = "calibrated", p.name = strategy::machine_name(), p.launch_seconds = 0.25;
  ASSERT_TRUE(io::write_file_atomically(strategy::calibrated_path(), planner::profile_json(p)));
  EXPECT_EQ(profile_in_use().rates, "calibrated");
  fs::remove(strategy::first_rates_path(isa()));
  const size_t before = times();
  EXPECT_EQ(plan(), "") << "nothing is left to measure";
  EXPECT_EQ(times(), before);
}

TEST_F(FirstUseTest, WhoNamesAProfileMeasuresNothing) {
  settings::RunConfig config;
  config.runtime.profile = "built-in";
  EXPECT_EQ(plan(config), "");
  plan();
  EXPECT_EQ(profile_in_use(config).rates, "uncalibrated") << "though it is there";
  config.runtime.profile = "h100";
  EXPECT_EQ(plan(config), "");
  config.runtime.profile = "auto", config.runtime.device = "cuda:1";
  EXPECT_EQ(plan(config), "");
  EXPECT_EQ(times(), 1u);
}

TEST_F(FirstUseTest, ThisProcessPeakDoesNotKnowOfIt) {
  plan();
  fs::remove(strategy::first_rates_path(isa()));
  const int64_t before = peak_resident_bytes();
  measure_at_first_use({}, [this] {
    const std::vector<char> large(size_t{256} << 20, 'x');
    planner::MachineProfile p = measured();
    p.context_bytes = large[large.size() / 2] == 'x' ? 0 : 1;
    return p;
  });
  EXPECT_EQ(profile_in_use().rates, "measured");
  EXPECT_LT(peak_resident_bytes() - before, int64_t{4} << 20);
}

TEST_F(FirstUseTest, WhatFailsIsToldAndPlansGoOn) {
  testing::internal::CaptureStderr();
  measure_at_first_use({}, []() -> Result<planner::MachineProfile> { std::_Exit(3); });
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("not measured"));
  EXPECT_EQ(profile_in_use().rates, "uncalibrated");
  EXPECT_FALSE(fs::exists(folder_.path() + "/cache")) << "an empty folder";
}

/// Rates of a busy moment are kept and marked; ten minutes later they are measured again, once.
TEST_F(FirstUseTest, WhatIsNotQuietIsKeptMarkedAndMeasuredAgain) {
  int64_t time = 1'800'000'000;
  int64_t is_busy = 1;
  double product = 1e9;
  const auto plan_at = [&](int64_t later) {
    testing::internal::CaptureStderr();
    measure_at_first_use(
        {},
        [&] {
          planner::MachineProfile p = measured();
          p.is_busy = is_busy, p.product_flops[0] = product;
          return p;
        },
        [&] { return time + later; });
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(plan_at(0), HasSubstr("while other processes used"));
  EXPECT_EQ(profile_in_use().rates, "measured");
  EXPECT_EQ(profile_in_use().is_busy, 1);
  EXPECT_EQ(plan_at(599), "") << "no command measures anew";
  EXPECT_EQ(times(), 1u);
  product = 0.5e9;
  EXPECT_THAT(plan_at(600), HasSubstr("while other processes used"));
  EXPECT_EQ(profile_in_use().product_flops[0], 1e9) << "less was taken from the first";
  EXPECT_EQ(plan_at(1199), "") << "and that is the last try";
  is_busy = 0;
  EXPECT_THAT(plan_at(1200), HasSubstr("measured this machine once in"));
  EXPECT_EQ(profile_in_use().is_busy, 0);
  EXPECT_EQ(profile_in_use().product_flops[0], 0.5e9) << "a quiet moment's are the machine's";
  EXPECT_EQ(plan_at(1'000'000), "");
  EXPECT_EQ(times(), 3u);
}

TEST_F(FirstUseTest, ABudgetThatMeasuringWouldExceedLeavesItOut) {
  settings::RunConfig config;
  config.memory.budget = {settings::MemoryBudget::Kind::kBytes, int64_t{30} << 20};
  EXPECT_EQ(plan(config), "");
  EXPECT_EQ(times(), 0u);
  EXPECT_EQ(profile_in_use(config).rates, "uncalibrated");
  config.memory.budget.bytes = int64_t{4} << 30;
  config.memory.host_budget = {settings::MemoryBudget::Kind::kBytes, int64_t{30} << 20};
  EXPECT_EQ(plan(config), "");
  config.memory.host_budget.bytes = int64_t{4} << 30;
  EXPECT_THAT(plan(config), HasSubstr("measured this machine"));
}

/// Measured for real, within seconds.
TEST_F(FirstUseTest, PlansAreTheSameFromRunToRun) {
  const std::string run = folder_.path() + "/run.yaml";
  ASSERT_TRUE(io::write_file_atomically(
      run,
      "model: {preset: gpt2, init: random, overrides: {n_layer: 1, n_embd: 48, vocab_size: 97}}\n"
      "data: {sequence_length: 16}\ntraining: {global_batch_size: 4, max_steps: 2}\n"));
  const auto plan_event = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"plan", run, "--json"});
    const Outcome outcome = run_plimsoll(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const std::vector<io::Tree> events = objects(outcome.out);
    EXPECT_FALSE(events.empty());
    return std::pair(events.empty() ? io::Tree() : events[0], outcome.err);
  };
  const auto seconds = [](const io::Tree& plan) {
    return plan.find("step")->find("seconds_estimated")->number;
  };
  const auto rates = [](const io::Tree& plan) { return plan.find("choices")->find("rates")->text; };
  const auto [first, told] = plan_event({});  // of a busy moment's rates too
  const auto [second, told_again] = plan_event({});
  const auto [plain, told_of_it] = plan_event({"runtime.profile=built-in"});
  EXPECT_THAT(told, HasSubstr("measured this machine"));
  EXPECT_THAT(told_again, testing::Not(HasSubstr("measured")));
  EXPECT_EQ(rates(first), "measured");
  EXPECT_EQ(seconds(first), seconds(second));
  EXPECT_EQ(rates(plain), "uncalibrated");
}

TEST_F(FirstUseTest, ManyAtOnceMeasureOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      measure_at_first_use({}, [this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        return measured();
      });
      _exit(strategy::first_rates(isa()) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(times(), 1u);
}

}  // namespace
}  // namespace plimsoll::cli
