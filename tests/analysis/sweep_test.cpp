#include "analysis/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/json.h"
#include "planner/report/report_parts.h"
#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSweptRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 128, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 4096, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 6, max_steps: 2}\nruntime: {threads: 1}\n"
    "memory: {budget: 40MiB}\n";

struct SweepCase {
  explicit SweepCase(std::vector<std::string> overrides = {}, const char* instruction_set = "avx2")
      : rates(planner::generic_cpu(instruction_set)) {
    overrides.push_back(rates.setting());
    config = *settings::parse_run_config(kSweptRun, "run.yaml", overrides);
    target = strategy::make_target(config, 1);
  }
  [[nodiscard]] Result<Sweep> sweep(const std::vector<std::string>& texts) const {
    std::vector<SweepAxis> axes;
    for (const std::string& text : texts) {
      PLIMSOLL_ASSIGN(SweepAxis axis, parse_sweep(text, config));
      axes.push_back(std::move(axis));
    }
    return plan_sweep(strategy::Variants(config, *target, {}), std::move(axes));
  }
  [[nodiscard]] planner::PlanReport plan(const strategy::SettingTexts& settings) const {
    const auto changed = strategy::with_settings(config, settings);
    EXPECT_TRUE(changed);
    return strategy::prepare(*changed, *target, {})->report;
  }
  strategy::RatesFile rates;
  settings::RunConfig config;
  std::unique_ptr<runtime::Target> target;
};

class SweepEachInstructionSet : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Sweep, SweepEachInstructionSet, testing::ValuesIn(strategy::some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

TEST_P(SweepEachInstructionSet, EachRowIsThePlanOfItsSettings) {
  const SweepCase c({}, GetParam());
  const auto sweep = c.sweep({"data.sequence_length=64,4096", "training.optimizer=sgd, adamw"});
  ASSERT_TRUE(sweep);
  std::vector<std::string> values;
  for (const SweepRow& row : sweep->rows) {
    values.push_back(row.values[0] + " " + row.values[1]);
    ASSERT_TRUE(row.report);
    const planner::PlanReport alone = c.plan(row.settings);
    EXPECT_EQ(alone.fits, row.report->fits) << values.back();
    EXPECT_EQ(alone.process_peak_bytes(), row.peak_bytes) << values.back();
    EXPECT_EQ(alone.seconds_estimated, row.report->seconds_estimated) << values.back();
    strategy::SettingTexts least = row.settings;
    least.emplace_back("memory.budget", std::to_string(row.least_bytes));
    EXPECT_TRUE(c.plan(least).fits) << values.back();
    least.back().second = std::to_string(row.least_bytes - 1);
    EXPECT_FALSE(c.plan(least).fits) << values.back();
  }
  EXPECT_THAT(values, ElementsAre("64 sgd", "64 adamw", "4096 sgd", "4096 adamw"));
}

TEST(Sweep, TheLargestFitsAndTheNextDoesNot) {
  const SweepCase c({"memory.budget=32MiB"});
  for (const char* key : {"data.sequence_length", "training.global_batch_size"}) {
    const auto sweep = c.sweep({std::string(key) + "=max"});
    ASSERT_TRUE(sweep);
    ASSERT_EQ(sweep->rows.size(), 1u);
    const SweepRow& row = sweep->rows[0];
    ASSERT_TRUE(row.report) << row.note;
    EXPECT_TRUE(c.plan(row.settings).fits);
    strategy::SettingTexts next = row.settings;
    for (auto& [path, value] : next)
      if (value == row.values[0]) value = std::to_string(std::stoll(value) + 1);
    EXPECT_FALSE(c.plan(next).fits) << key << " " << row.values[0];
    EXPECT_THAT(sweep_table(*sweep), HasSubstr("that fits: " + row.values[0]));
    EXPECT_EQ(sweep_event(*sweep).find("largest")->text, row.values[0]);
  }
}

TEST(Sweep, OverBudgetsNamesThemAll) {
  const SweepCase c;
  const auto sweep = c.sweep({"memory.budget=1MiB,36MiB,48MiB"});
  ASSERT_TRUE(sweep);
  const std::string table = sweep_table(*sweep);
  EXPECT_THAT(table, HasSubstr("Planned within memory.budget = 1.00 MiB to 48.0 MiB (by row)\n"));
  EXPECT_THAT(table, HasSubstr("The smallest memory.budget of these that fits: 36MiB\n"));
  const auto one = c.sweep({"data.sequence_length=64,128"});
  ASSERT_TRUE(one);
  EXPECT_THAT(sweep_table(*one), HasSubstr("Planned within memory.budget = 40.0 MiB\n"));
}

TEST(Sweep, OverRanksTellsWhatEachDoesAndWaits) {
  const SweepCase c({"memory.budget=1GiB", "training.global_batch_size=8", "distributed.mode=zero1",
                     "distributed.topology={per_node: 2, intra: 10GB/s, inter: 1GB/s}"});
  const auto sweep = c.sweep({"distributed.ranks=1,2,8"});
  ASSERT_TRUE(sweep);
  ASSERT_EQ(sweep->rows.size(), 3u);
  double before = 0;
  for (const SweepRow& row : sweep->rows) {
    ASSERT_TRUE(row.report) << row.note;
    const double exposed = planner::exposed_seconds(*row.report);
    EXPECT_EQ(exposed > 0, row.report->ranks > 1);
    EXPECT_GE(exposed, before) << "more ranks, and from 4 on a slower link";
    before = exposed;
  }
  EXPECT_LT(sweep->rows[2].peak_bytes, sweep->rows[1].peak_bytes) << "a smaller share";
  const std::string table = sweep_table(*sweep);
  EXPECT_THAT(table, HasSubstr(" each rank   exposed\n"));
  EXPECT_THAT(table, HasSubstr("The fewest ranks of these that fit: 1\n"));
  EXPECT_THAT(table, HasSubstr("not a prediction"));
  EXPECT_THAT(io::to_json(sweep_event(*sweep)), HasSubstr("\"described\": true"));
}

TEST(Sweep, TheModelBoundsTheLengthToo) {
  const auto sweep = SweepCase({"memory.budget=1GiB"}).sweep({"data.sequence_length=max"});
  ASSERT_TRUE(sweep);
  EXPECT_EQ(sweep->rows[0].values[0], "4096");
  EXPECT_THAT(sweep->rows[0].note, HasSubstr("4096 positions"));
}

TEST(Sweep, AllAreTheDivisorsOfTheBatch) {
  const auto sweep = SweepCase().sweep({"training.micro_batch_size=all"});
  ASSERT_TRUE(sweep);
  EXPECT_THAT(sweep->axes[0].values, ElementsAre("1", "2", "3", "6"));
}

TEST(Sweep, WhatCannotBePlannedIsARow) {
  const SweepCase c;
  const auto sweep = c.sweep({"training.micro_batch_size=4,6"});
  ASSERT_TRUE(sweep);
  EXPECT_FALSE(sweep->rows[0].report);
  EXPECT_THAT(sweep->rows[0].note, HasSubstr("micro_batch_size"));
  EXPECT_TRUE(sweep->rows[1].report);
  EXPECT_FALSE(c.sweep({"training.micro_batch_size=4"}));  // where nothing can, it is an error
}

TEST(Sweep, ValuesMayHoldCommasOfTheirOwn) {
  const SweepCase c;
  const auto axis = parse_sweep("memory.recompute={layers: [layers.0, layers.1]}, full ,\"a,b\"", c.config);
  ASSERT_TRUE(axis);
  EXPECT_THAT(axis->values, ElementsAre("{layers: [layers.0, layers.1]}", "full ", "\"a,b\""));
}

TEST(Sweep, RefusesWhatIsNoSweep) {
  const SweepCase c;
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"data.sequence_length", "a setting and its values"},
           {"data.sequence_lenght=1,2", "sequence_lenght"},
           {"training.learning_rate=max", "a whole number"},
           {"training.learning_rate=all", "no list"},
           {"data.sequence_length=64,max", "must be the only value"},
           {"data.sequence_length=64,,128", "missing"}}) {
    const auto axis = parse_sweep(text, c.config);
    ASSERT_FALSE(axis) << text;
    EXPECT_EQ(axis.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(axis.error().message(), HasSubstr(what));
  }
}

}  // namespace
}  // namespace plimsoll::analysis
