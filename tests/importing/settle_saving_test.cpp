// What a Trainer saves, evaluates and reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "imported.h"

namespace plimsoll::importing {
namespace {

Result<Imported> import_arguments(const std::string& text) { return import_text(text, "transformers"); }

TEST(SettleSaving, EventFilesOfTensorBoard) {
  for (const char* to : {"tensorboard", "[tensorboard]", "[wandb, tensorboard]"}) {
    const auto imported =
        import_arguments(std::string("output_dir: x\nlogging_dir: events\nreport_to: ") + to + "\n");
    EXPECT_EQ(setting_of(imported, "training.report_to"), "[tensorboard]") << to;
    EXPECT_EQ(setting_of(imported, "training.logging_dir"), "events");
    ASSERT_NE(report_of(*imported, "report_to"), nullptr);
    EXPECT_EQ(report_of(*imported, "report_to")->fate, Fate::kMapped) << to;
  }
  const auto wandb = import_arguments("output_dir: x\nlogging_dir: events\nreport_to: wandb\n");
  EXPECT_EQ(report_of(*wandb, "report_to")->fate, Fate::kNoEqual);
  EXPECT_EQ(report_of(*wandb, "logging_dir")->fate, Fate::kHarmless);
  for (const char* to : {"none", "[none]", "[]", "null"})
    EXPECT_EQ(report_of(*import_arguments(std::string("output_dir: x\nreport_to: ") + to + "\n"), "report_to")
                  ->fate,
              Fate::kHarmless)
        << to;
}

/// The setting is there: no note says that it is not.
TEST(SettleSaving, TheBestModel) {
  const auto imported = import_arguments(
      "output_dir: x\nvalidation_file: e.jsonl\neval_strategy: steps\neval_steps: 10\nsave_steps: 20\n"
      "load_best_model_at_end: true\nmetric_for_best_model: loss\ngreater_is_better: false\n");
  EXPECT_EQ(setting_of(imported, "training.load_best_model_at_end"), "true");
  EXPECT_EQ(setting_of(imported, "training.greater_is_better"), "false");
  for (const char* key : {"load_best_model_at_end", "metric_for_best_model", "greater_is_better"}) {
    ASSERT_NE(report_of(*imported, key), nullptr);
    EXPECT_EQ(report_of(*imported, key)->fate, Fate::kMapped);
    EXPECT_EQ(report_of(*imported, key)->note, "");
  }
}

/// PyYAML, which the programs read their files with, knows more words than YAML 1.2.
TEST(SettleSaving, YesAndNo) {
  const auto imported = import_arguments(
      "output_dir: x\nbf16: yes\nlogging_first_step: on\ngradient_checkpointing: No\npush_to_hub: off\n");
  EXPECT_EQ(setting_of(imported, "training.precision"), "bf16");
  EXPECT_EQ(setting_of(imported, "training.logging_first_step"), "true");
  EXPECT_EQ(report_of(*imported, "gradient_checkpointing")->fate, Fate::kHarmless);
  EXPECT_EQ(report_of(*imported, "push_to_hub")->fate, Fate::kHarmless);
  EXPECT_FALSE(import_arguments("output_dir: x\nbf16: maybe\n"));
}

TEST(SettleSaving, LionsBetasAreTheTrainers) {
  EXPECT_EQ(setting_of(import_arguments("output_dir: x\noptim: lion_32bit\n"), "training.adam_beta2"),
            "0.999");
  EXPECT_EQ(setting_of(import_arguments("output_dir: x\noptim: lion_32bit\nadam_beta2: 0.95\n"),
                       "training.adam_beta2"),
            "0.95");
}

}  // namespace
}  // namespace plimsoll::importing
