#include "telemetry/run_record.h"

#include <gtest/gtest.h>

#include "base/process.h"
#include "training/tiny_run.h"

namespace plimsoll::telemetry {
namespace {

training::StepEvent a_step(double seconds) {
  training::StepEvent e;
  e.seconds = seconds;
  e.units = 64;
  return e;
}

TEST(RunRecord, TheMedianIsOfAllSteps) {
  RunRecord record(now_seconds());
  EXPECT_EQ(record.median_seconds(), 0);
  for (const double seconds : {3.0, 1.0, 2.0}) record.add(a_step(seconds));
  EXPECT_EQ(record.median_seconds(), 2);
}

TEST(RunRecord, SumsWhatThisProcessDidBesideWhatTheRunHas) {
  const training::TinyRun run;
  const training::TinyTrainer trainer(run.config());
  ASSERT_TRUE(trainer.trainer) << trainer.error->message();
  RunRecord record(now_seconds() - 100);
  ASSERT_TRUE(trainer->step());
  ASSERT_TRUE(trainer->step());
  record.add(a_step(1));  // as if the first step had been another process's
  const Summary s = record.summary(*trainer);
  EXPECT_EQ(s.steps, 1);
  EXPECT_EQ(s.units, 64);
  EXPECT_EQ(s.run_steps, 2);
  EXPECT_EQ(s.run_units, 2 * 4 * 16);
  EXPECT_EQ(s.seconds, 1);
  EXPECT_NEAR(s.startup_seconds, 99, 1);
  EXPECT_EQ(s.planned_peak_bytes, trainer->prepared().report.process_peak_bytes());
  EXPECT_GT(s.measured_peak_bytes, 0);
  EXPECT_FALSE(s.host_planned_peak_bytes) << "the device's memory is the process's";
  EXPECT_FALSE(s.best) << "nothing is compared";
}

TEST(RunRecord, NamesTheBestEvaluation) {
  const training::TinyRun run;
  const training::TinyTrainer trainer(
      run.config({run.held_out(), "training.eval_steps=1", "training.max_steps=9",
                  "training.early_stopping_patience=1", "training.learning_rate=1e-30"}));
  ASSERT_TRUE(trainer.trainer) << trainer.error->message();
  while (!trainer->is_finished()) {
    ASSERT_TRUE(trainer->step());
    ASSERT_TRUE(trainer->evaluate());
  }
  const Summary s = RunRecord(now_seconds()).summary(*trainer);
  ASSERT_TRUE(s.best);
  EXPECT_EQ(s.best->metric, "eval_loss");
  EXPECT_EQ(s.best->step, 1);
  EXPECT_TRUE(s.best->stopped_early);
}

}  // namespace
}  // namespace plimsoll::telemetry
