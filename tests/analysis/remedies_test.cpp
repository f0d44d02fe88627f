#include "analysis/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/planned_run.h"
#include "analysis/techniques.h"
#include "planner/report/budget.h"
#include "planner/report/headline.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

using testing::HasSubstr;
using testing::Not;

int64_t least(const std::vector<std::string>& overrides, const char* text = kPlannedRun) {
  std::vector<std::string> all = overrides;
  all.emplace_back("memory.budget=1");
  return PlannedRun(all, text).prepared().report.process_peak_bytes();
}

std::string texts(const strategy::Prepared& prepared) {
  std::string all;
  for (const planner::Remedy& remedy : prepared.report.remedies) all += remedy.text() + "\n";
  return all;
}

TEST(Remedies, EachFitsByItself) {
  PlannedRun c({"memory.budget=" + std::to_string(least({}) - 20'000)});
  ASSERT_FALSE(c.prepared().report.fits);
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    const auto report = strategy::Variants(c.config, *c.target, {}).plan(remedy.settings);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->fits) << remedy.text();
    EXPECT_EQ(report->process_peak_bytes(), remedy.peak_bytes) << remedy.text();
  }
}

TEST(Remedies, RanksMayShareWhatEachOfThemHolds) {
  const std::vector<std::string> run = {"distributed.ranks=4", "distributed.mode=ddp",
                                        "model.config.vocab_size=16384"};
  std::vector<std::string> tight = run;
  tight.push_back("memory.budget=" + std::to_string(least(run) - 20'000));
  PlannedRun c(tight);
  EXPECT_THAT(texts(c.prepared()), HasSubstr("distributed.mode=zero1"));
  EXPECT_THAT(texts(c.prepared()), HasSubstr("distributed.mode=zero3"));
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
  PlannedRun c(tight);
  ASSERT_EQ(c.prepared().report.remedies.size(), 1u) << texts(c.prepared());
  const planner::Remedy& remedy = c.prepared().report.remedies.front();
  EXPECT_THAT(remedy.note, HasSubstr("together"));
  EXPECT_LE(remedy.peak_bytes, c.prepared().report.budget_bytes);
  // None of its settings could be left out.
  for (size_t i = 0; i < remedy.settings.size(); ++i) {
    strategy::SettingTexts fewer = remedy.settings;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    const auto report = strategy::Variants(c.config, *c.target, {}).plan(fewer, /*finds_least=*/false);
    EXPECT_FALSE(report && report->fits) << remedy.text() << " without " << remedy.settings[i].first;
  }
}

TEST(Remedies, PeaksAreThoseOfThePoolThatIsBound) {
  const std::vector<std::string> run = {"runtime.device=discrete", "memory.budget=4GiB",
                                        "memory.offload=none"};
  const int64_t device = PlannedRun(run).prepared().report.device_peak_bytes();
  std::vector<std::string> tight = run;
  tight.push_back("memory.recompute=none");
  tight.push_back("memory.device_budget=" + std::to_string(device - 10'000));
  PlannedRun c(tight);
  ASSERT_FALSE(c.prepared().report.fits);
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    EXPECT_LT(remedy.peak_bytes, device) << remedy.text();
    const auto report = strategy::Variants(c.config, *c.target, {}).plan(remedy.settings);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->device_peak_bytes(), remedy.peak_bytes) << remedy.text();
  }
}

TEST(Remedies, AnEvaluationIsTrainedNothing) {
  auto config =
      *settings::parse_run_config(kPlannedRun, "run.yaml", std::vector<std::string>{"memory.budget=1"});
  const auto target = strategy::make_target(config, 1);
  auto needs = strategy::prepare(config, *target, {.purpose = strategy::Purpose::kEvaluate});
  ASSERT_TRUE(needs);
  config = *settings::parse_run_config(
      kPlannedRun, "run.yaml",
      std::vector<std::string>{"memory.budget=" + std::to_string(needs->report.process_peak_bytes() - 1)});
  auto prepared = strategy::prepare(config, *target, {.purpose = strategy::Purpose::kEvaluate});
  ASSERT_TRUE(prepared);
  add_remedies(config, *target, {.purpose = strategy::Purpose::kEvaluate}, *prepared);
  EXPECT_FALSE(prepared->report.remedies.empty());
  EXPECT_THAT(texts(*prepared), Not(HasSubstr("optimizer")));
  EXPECT_THAT(texts(*prepared), Not(HasSubstr("moments")));
}

TEST(Remedies, WithoutAnyTheReportSaysWhatWasTried) {
  PlannedRun c({"memory.budget=1MiB"});
  const planner::PlanReport& report = c.prepared().report;
  ASSERT_TRUE(report.remedies.empty()) << texts(c.prepared());
  EXPECT_THAT(report.tried, testing::Contains("training.precision=bf16"));
  EXPECT_THAT(report.tried_excess, HasSubstr("memory.budget is 1.00 MiB"));
  EXPECT_NE(report.tried_excess, planner::excess_text(report)) << "together they need less";
  PlannedRun fits({"memory.budget=" + std::to_string(least({}) - 20'000)});
  EXPECT_TRUE(fits.prepared().report.tried.empty());
}

TEST(Remedies, ImagesHaveNoLength) {
  const char* images =
      "model: {config: {model_type: vit, image_size: 32, patch_size: 4, hidden_size: 32, intermediate_size: "
      "64, "
      "num_hidden_layers: 4, num_attention_heads: 2}}\n"
      "training: {global_batch_size: 8, max_steps: 2}\nruntime: {threads: 1}\n";
  PlannedRun c({"memory.budget=" + std::to_string(least({}, images) - 20'000)}, images);
  ASSERT_FALSE(c.prepared().report.fits);
  EXPECT_THAT(texts(c.prepared()), HasSubstr("training.precision=bf16"));
  EXPECT_THAT(texts(c.prepared()), Not(HasSubstr("data.")));
  for (const Technique& technique : known_techniques(c.config, c.prepared()))
    EXPECT_NE(technique.group, TechniqueGroup::kData) << technique.name;
}

}  // namespace
}  // namespace plimsoll::analysis
