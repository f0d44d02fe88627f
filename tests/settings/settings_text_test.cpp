// The recorded run: whatever valid settings a run has, every command takes the file that it wrote, and reads
// the same run in it. PLIMSOLL_WHOLE_CAMPAIGN draws 3,000 runs, PLIMSOLL_FUZZ_SECONDS goes on for so long,
// PLIMSOLL_FUZZ_SEED says where the seeds begin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "random_runs.h"
#include "settings/run_paths.h"

namespace plimsoll::settings {
namespace {

/// All that two runs say, as lines, where they differ.
std::string difference(const RunConfig& a, const RunConfig& b) {
  std::string lines;
  for (const Setting& setting : settings()) {
    const std::string of_a = setting_text(setting, a), of_b = setting_text(setting, b);
    if (of_a != of_b) lines += setting.path + ": " + of_a + " became " + of_b + "\n";
  }
  if (a.lora.enabled != b.lora.enabled) lines += "lora is switched\n";
  if (a.quantization.enabled != b.quantization.enabled) lines += "quantization is switched\n";
  for (const std::string& path : changed_what(a, b)) lines += path + " counts as changed\n";
  return lines;
}

using Read = std::function<Result<RunConfig>()>;

/// That `read` gives `run` and records the same again.
void expect_same(const RunConfig& run, const std::string& recorded, const char* how, const Read& read) {
  const auto again = read();
  ASSERT_TRUE(again) << how << ": " << again.error().message() << "\n" << recorded;
  EXPECT_EQ(difference(run, *again), "") << how << "\n" << recorded;
  EXPECT_EQ(run_config_yaml(*again), recorded) << how;
}

void check_recorded(const std::string& file) {
  for (const RunUse use : {RunUse::kPlan, RunUse::kTraining, RunUse::kEvaluation}) {
    const auto run = parse_run_config(file, "run.yaml", {}, use);
    if (!run) continue;
    const std::string recorded = run_config_yaml(*run);
    expect_same(*run, recorded, "a command", [&] { return parse_run_config(recorded, "run.yaml", {}, use); });
    expect_same(*run, recorded, "a resume", [&] { return parse_recorded_run(recorded, "run.yaml"); });
    RunConfig alone = *run;
    alone.source = nullptr;
    expect_same(*run, recorded, "more overrides", [&] { return with_overrides(alone, {}); });
    // Paths of a saved file start from it.
    const auto normal = [](RunConfig config) {
      resolve_paths(config = with_paths_from(config, "runs/one"), "runs/one");
      config.paths = PathBase::kWorkingFolder;
      return config;
    };
    const RunConfig moved = normal(*run);
    expect_same(moved, run_config_yaml(moved), "the saved file", [&] {
      return parse_run_config(run_config_yaml(*run, "runs/one"), "runs/one/run.yaml", {}, use);
    });
  }
}

TEST(RecordedRun, IsTakenAgainByEveryCommand) {
  const char* seconds = std::getenv("PLIMSOLL_FUZZ_SECONDS");
  const char* first = std::getenv("PLIMSOLL_FUZZ_SEED");
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const bool whole = std::getenv("PLIMSOLL_WHOLE_CAMPAIGN") != nullptr;  // make campaign
  const uint64_t last = seed + (whole ? 3000 : 60);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 0);
  int64_t runs = 0;
  for (; seed < last || std::chrono::steady_clock::now() < end; ++seed) {
    RandomRuns random(seed);
    const auto file = random.valid(random.draw());
    if (!file) continue;
    ++runs;
    check_recorded(*file);
    if (testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed << ": " << *file;
      return;
    }
  }
  EXPECT_GE(runs, 48);
  testing::Test::RecordProperty("runs", std::to_string(runs));
}

/// The generator reaches what the table declares: each value of a setting alone is taken, where that does not
/// take another.
TEST(RecordedRun, EachSettingIsDrawn) {
  std::map<std::string, int> taken;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    RandomRuns random(seed);
    const auto file = random.valid(random.draw());
    if (!file) continue;
    const auto run = parse_run_config(*file, "run.yaml");
    ASSERT_TRUE(run);
    for (const Setting& setting : settings())
      if (setting_text(setting, *run) != setting_text(setting, RunConfig{})) ++taken[setting.path];
  }
  for (const Setting& setting : settings()) {
    if (setting.field == nullptr) continue;
    if (setting.path == "paths") continue;
    EXPECT_GT(taken[setting.path], 0) << setting.path << " is never other than its default";
  }
}

/// Runs that recorded a rate which they did not go by could not be started again.
TEST(RecordedRun, HasNoRateWhereAdafactorTakesItsOwn) {
  const std::string file =
      "{model: {preset: gpt2}, training: {optimizer: adafactor, adafactor: {relative_step: true}}}";
  const auto run = parse_run_config(file, "run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  const std::string recorded = run_config_yaml(*run);
  EXPECT_THAT(recorded, testing::Not(testing::HasSubstr("learning_rate")));
  check_recorded(file);
  // As versions before wrote it.
  const auto old = parse_recorded_run(recorded + "learning_rate: 0.0003\n", "run.yaml");
  ASSERT_TRUE(old) << old.error().message();
  EXPECT_EQ(difference(*run, *old), "");
}

}  // namespace
}  // namespace plimsoll::settings
