#include "train/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "planner/budget.h"
#include "train/memory_at_start.h"
#include "train/run_device.h"

namespace plimsoll::train {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 128, intermediate_size: 256, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 2, max_steps: 2}\nruntime: {threads: 1}\n";

struct Case {
  explicit Case(std::vector<std::string> overrides) {
    auto read = parse_run_config(kRun, "run.yaml", overrides);
    EXPECT_TRUE(read) << read.error().what;
    config = *read;
    target = make_target(config, 1);
    auto planned = prepare(config, *target, {});
    EXPECT_TRUE(planned);
    planned_.emplace(std::move(*planned));
    add_remedies(config, *target, {}, *planned_);
  }
  Prepared& prepared() { return *planned_; }
  RunConfig config;
  std::unique_ptr<runtime::Target> target;

 private:
  std::optional<Prepared> planned_;
};

int64_t least(const std::vector<std::string>& overrides) {
  std::vector<std::string> all = overrides;
  all.emplace_back("memory.budget=1");
  return Case(all).prepared().report.process_peak_bytes();
}

std::string texts(const Prepared& prepared) {
  std::string all;
  for (const planner::Remedy& remedy : prepared.report.remedies) all += remedy.text() + "\n";
  return all;
}

TEST(Remedies, EachFitsByItself) {
  Case c({"memory.budget=" + std::to_string(least({}) - 20'000)});
  ASSERT_FALSE(c.prepared().report.fits);
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    const auto report = Variants(c.config, *c.target, {}).plan(remedy.settings);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->fits) << remedy.text();
    EXPECT_EQ(report->process_peak_bytes(), remedy.peak_bytes) << remedy.text();
  }
}

TEST(Remedies, PutTogetherNothingIsLeftInThatDoesNothing) {
  const std::vector<std::string> run = {"training.optimizer=adamw_8bit", "training.state.moments=fp32"};
  const int64_t needs = least(run);
  const int64_t floor =
      least({"training.precision=bf16", "training.state.weights=bf16", "training.state.master_weights=false",
             "training.state.gradients=bf16", "training.state.moments=bf16", "training.optimizer=adamw_8bit",
             "data.sequence_length=64"});
  std::vector<std::string> tight = run;
  tight.push_back("memory.budget=" + std::to_string(floor + (needs - floor) / 10));
  Case c(tight);
  ASSERT_EQ(c.prepared().report.remedies.size(), 1u) << texts(c.prepared());
  const planner::Remedy& remedy = c.prepared().report.remedies.front();
  EXPECT_THAT(remedy.note, HasSubstr("together"));
  EXPECT_LE(remedy.peak_bytes, c.prepared().report.budget_bytes);
  // None of its settings could be left out.
  for (size_t i = 0; i < remedy.settings.size(); ++i) {
    SettingTexts fewer = remedy.settings;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const auto report = Variants(c.config, *c.target, {}).plan(fewer, /*finds_least=*/false);
    EXPECT_FALSE(report && report->fits) << remedy.text() << " without " << remedy.settings[i].first;
  }
}

TEST(Remedies, PeaksAreThoseOfThePoolThatIsBound) {
  const std::vector<std::string> run = {"runtime.device=discrete", "memory.budget=4GiB",
                                        "memory.offload=none"};
  const int64_t device = Case(run).prepared().report.device_peak_bytes();
  std::vector<std::string> tight = run;
  tight.push_back("memory.recompute=none");
  tight.push_back("memory.device_budget=" + std::to_string(device - 10'000));
  Case c(tight);
  ASSERT_FALSE(c.prepared().report.fits);
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    EXPECT_LT(remedy.peak_bytes, device) << remedy.text();
    const auto report = Variants(c.config, *c.target, {}).plan(remedy.settings);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->device_peak_bytes(), remedy.peak_bytes) << remedy.text();
  }
}

TEST(Remedies, AnEvaluationIsTrainedNothing) {
  auto config = *parse_run_config(kRun, "run.yaml", std::vector<std::string>{"memory.budget=1"});
  const auto target = make_target(config, 1);
  auto needs = prepare(config, *target, {.purpose = Purpose::kEvaluate});
  ASSERT_TRUE(needs);
  config = *parse_run_config(
      kRun, "run.yaml",
      std::vector<std::string>{"memory.budget=" + std::to_string(needs->report.process_peak_bytes() - 1)});
  auto prepared = prepare(config, *target, {.purpose = Purpose::kEvaluate});
  ASSERT_TRUE(prepared);
  add_remedies(config, *target, {.purpose = Purpose::kEvaluate}, *prepared);
  EXPECT_FALSE(prepared->report.remedies.empty());
  EXPECT_THAT(texts(*prepared), Not(HasSubstr("optimizer")));
  EXPECT_THAT(texts(*prepared), Not(HasSubstr("moments")));
}

/// Another process took the memory while the data was made ready.
TEST(MemoryAtStart, WhatIsNoLongerThereIsSaidWithWhatWouldFit) {
  Case c({"memory.budget=4GiB"});
  Events events(/*json=*/true);
  const planner::PlanReport& report = c.prepared().report;
  const int64_t peak = report.process_peak_bytes(),
                held = peak - report.persistent_bytes - report.arena_bytes;
  EXPECT_TRUE(check_memory_at_start(c.config, *c.target, {}, {held, peak, ""}, c.prepared(), events));
  EXPECT_TRUE(c.prepared().report.fits);
  const int64_t left = c.prepared().report.persistent_bytes + c.prepared().report.arena_bytes - (1 << 20);
  testing::internal::CaptureStdout();
  const Status status = check_memory_at_start(
      c.config, *c.target, {}, {held, left, "/sys/fs/cgroup/memory.max"}, c.prepared(), events);
  const std::string out = testing::internal::GetCapturedStdout();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(status.error().where, "/sys/fs/cgroup/memory.max");
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    EXPECT_LE(remedy.peak_bytes, held + left) << remedy.text();
    EXPECT_EQ(remedy.settings.front().first, "memory.budget");
    EXPECT_EQ(Variants(c.config, *c.target, {}).plan(remedy.settings)->process_peak_bytes(),
              remedy.peak_bytes);
  }
  EXPECT_THAT(status.error().hint, HasSubstr(c.prepared().report.remedies.front().text()));
  EXPECT_THAT(out, HasSubstr("\"fits\": false"));
}

}  // namespace
}  // namespace plimsoll::train
