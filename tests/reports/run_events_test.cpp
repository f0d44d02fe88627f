#include "reports/run_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/file.h"

namespace plimsoll::reports {
namespace {

using testing::ElementsAre;

RunEvents read(std::initializer_list<std::string_view> lines) {
  EventsReader reader;
  for (const std::string_view line : lines) reader.line(line);
  return reader.finish();
}

TEST(RunEvents, ReadsStepsAsRunsWriteThem) {
  StepRow row;
  ASSERT_TRUE(read_step_line(
      R"({"event": "step", "step": 7, "loss": 2.5, "grad_norm": null, "learning_rate": 1e-05, "tokens": 64, )"
      R"("loss_scale": 65536, "skipped": false, "step_seconds": 0.5, "tokens_per_second": 128, )"
      R"("samples_per_second": 2, "data_wait_seconds": 0.25, "loss_mean": 2.5})",
      row));
  EXPECT_EQ(row.step, 7);
  EXPECT_EQ(row[Figure::kLoss], 2.5);
  EXPECT_TRUE(std::isnan(row[Figure::kGradNorm]));
  EXPECT_EQ(row[Figure::kLearningRate], 1e-5);
  EXPECT_EQ(row[Figure::kLossScale], 65536);
  EXPECT_EQ(row[Figure::kDataWait], 0.25);
}

TEST(RunEvents, TheQuickWayTakesNothingThatIsNoJson) {
  StepRow row;
  for (const char* end : {"NaN}", "01}", "1.}", ".5}", "+1}", "1e}", "inf}", "1e999}", "1} ", "1", "\"1\"}",
                          "1, \"loss\": 2}", "1, \"\": 2}"})
    EXPECT_FALSE(read_step_line(std::string(R"({"event": "step", "step": 1, "loss": )") + end, row)) << end;
}

TEST(RunEvents, TheLastOfAStepToldTwiceCounts) {
  const RunEvents events =
      read({R"({"event": "step", "step": 1, "loss": 4})", R"({"event": "step", "step": 2, "loss": 3})",
            R"({"step": 1, "event": "step", "loss": 5})"});
  ASSERT_EQ(events.steps.size(), 2U);
  EXPECT_EQ(events.steps[0][Figure::kLoss], 5);
  EXPECT_EQ(events.steps[1][Figure::kLoss], 3);
  EXPECT_EQ(events.repeated, 1);
}

TEST(RunEvents, WhatIsNoEventIsCountedAndLeftOut) {
  const RunEvents events = read(
      {"", "[]", "{}", R"({"event": 3})", R"({"event": "step", "step": "4"})",
       R"({"event": "step", "step": -1})", R"({"event": "step", "step": 1e99, "loss": 1})",
       R"({"event": "step", "step": 3, "loss": NaN})", R"({"event": "st)", R"({"event": "later", "x": 1})",
       R"({"event": "step", "step": 5, "loss": {"a": 1}, "tokens": [2]})"});
  EXPECT_EQ(events.bad_lines, 9);
  ASSERT_EQ(events.steps.size(), 1U);
  EXPECT_EQ(events.steps[0].step, 5);
  EXPECT_EQ(events.not_finite, 1);
}

TEST(RunEvents, TakesEvaluationsWithTheirSources) {
  const RunEvents events = read(
      {R"({"event": "eval", "step": 2, "loss": 1.5, "perplexity": 4.5, "metrics": {"accuracy": 0.5, "f1": null}, )"
       R"("sources": {"a": {"loss": 1}}})",
       R"({"event": "checkpoint", "step": 2, "path": "out/checkpoint-2", "seconds": 0.5})",
       R"({"event": "warning", "message": "swap"})"});
  ASSERT_EQ(events.evals.size(), 2U);
  EXPECT_THAT(events.evals[0].metrics, ElementsAre(std::pair<std::string, double>("perplexity", 4.5),
                                                   std::pair<std::string, double>("accuracy", 0.5)));
  EXPECT_EQ(events.evals[1].name, "a");
  ASSERT_EQ(events.checkpoints.size(), 1U);
  EXPECT_EQ(events.checkpoints[0].path, "out/checkpoint-2");
  EXPECT_THAT(events.warnings, ElementsAre("swap"));
}

TEST(RunEvents, TheLastLineMayBeHalfThere) {
  const std::string path = testing::TempDir() + "half.jsonl";
  ASSERT_TRUE(io::write_file_atomically(
      path, "{\"event\": \"step\", \"step\": 1, \"loss\": 2}\n{\"event\": \"step\", \"st"));
  const auto events = read_run_events(path);
  ASSERT_TRUE(events);
  EXPECT_EQ(events->steps.size(), 1U);
  EXPECT_EQ(events->bad_lines, 0);
}

}  // namespace
}  // namespace plimsoll::reports
