// What becomes an object, what becomes a line for people, and what nobody is told.
#include "telemetry/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/recording_sink.h"

namespace plimsoll::telemetry {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

training::StepEvent a_step(int64_t step, double loss) {
  training::StepEvent e;
  e.step = step;
  e.loss = e.loss_mean = loss;
  e.grad_norm = 2;
  e.learning_rate = 1e-3;
  e.units = 100;
  e.samples = 4;
  e.seconds = 0.5;
  return e;
}

TEST(Events, AStepIsALineForPeople) {
  RecordingSink sink;
  Events events(sink);
  events.set_total_steps(10);
  events.step(a_step(1, 5.5));
  EXPECT_THAT(sink.lines, IsEmpty());
  ASSERT_EQ(sink.shown.size(), 1U);
  EXPECT_THAT(sink.shown[0], HasSubstr("step  1/10  loss 5.5000  norm 2  lr 1.00e-03  200 tok/s  ETA "));
  EXPECT_THAT(sink.shown[0], testing::Not(HasSubstr("[#"))) << "the bar is for lines that are rewritten";
}

TEST(Events, ALineThatIsRewrittenHasABarAndTheWait) {
  RecordingSink sink({.watches = true, .rewrites_progress = true});
  Events events(sink);
  events.set_total_steps(2);
  events.step(a_step(1, 1));
  EXPECT_THAT(sink.shown[0], HasSubstr("[####....]"));
  EXPECT_THAT(sink.shown[0], HasSubstr("wait 0.0%"));
}

TEST(Events, AStepIsAnObjectWhereObjectsAreTaken) {
  RecordingSink sink({.events = true});
  Events events(sink);
  training::StepEvent step = a_step(3, 0.25);
  step.loss_scale = 1024;
  step.skipped = true;
  events.step(step);
  ASSERT_EQ(sink.names, std::vector<std::string>{"step"});
  EXPECT_THAT(sink.lines[0], HasSubstr(R"("event": "step", "step": 3, "loss": 0.25,)"));
  EXPECT_THAT(sink.lines[0], HasSubstr(R"("loss_scale": 1024, "skipped": true)"));
  EXPECT_THAT(sink.shown, IsEmpty()) << "nobody watches";
}

TEST(Events, LinesAreKeptForTheLogUntilItIsThere) {
  RecordingSink sink;
  Events events(sink);
  events.keep_lines();
  events.step(a_step(1, 1));
  std::vector<std::string> log;
  events.log_to([&](const std::string& line) { log.push_back(line); });
  events.step(a_step(2, 1));
  ASSERT_EQ(log.size(), 2U);
  EXPECT_THAT(log[0], HasSubstr("\"step\": 1,"));
  EXPECT_THAT(log[1], HasSubstr("\"step\": 2,"));
  EXPECT_THAT(sink.lines, IsEmpty());
}

TEST(Events, AnEvaluationEndsItsProgressAndTellsItsParts) {
  RecordingSink sink({.events = true, .watches = true});
  Events events(sink);
  events.eval_progress(1, 4);
  EXPECT_THAT(sink.shown, IsEmpty()) << "too soon for a line";
  training::EvalEvent eval{.step = 7, .loss = 2, .units = 20, .targets = 19};
  eval.parts = {{.name = "held", .step = 7, .loss = 3, .units = 10, .targets = 9}};
  events.eval(eval);
  EXPECT_THAT(sink.ended, ElementsAre(true, false)) << "the line of steps stays, that of the evaluation goes";
  EXPECT_THAT(sink.names, ElementsAre("eval", "eval"));
  ASSERT_EQ(sink.messages.size(), 2U);
  EXPECT_EQ(sink.messages[0],
            "eval of held at step 7: loss 3.0000, perplexity 20.09 over 9 loss tokens of 10");
}

TEST(Events, WarningsReachPeopleInAnyCase) {
  RecordingSink sink({.events = true});
  Events events(sink);
  events.swapping(4, 1 << 20);
  EXPECT_THAT(sink.names, ElementsAre("warning"));
  ASSERT_EQ(sink.messages.size(), 1U);
  EXPECT_THAT(sink.messages[0], HasSubstr("warning: 1.00 MiB of this run were moved to swap"));
  events.note("a remark");
  EXPECT_EQ(sink.messages[1], "note: a remark");
  EXPECT_EQ(sink.names.size(), 1U) << "a note is for people alone";
}

TEST(Events, TheSummaryHasTheCourseOfTheLoss) {
  RecordingSink sink;
  Events events(sink);
  events.step(a_step(1, 5));
  events.step(a_step(2, 3));
  events.summary({.steps = 2,
                  .units = 200,
                  .run_steps = 5,
                  .seconds = 2,
                  .planned_peak_bytes = 100,
                  .measured_peak_bytes = 50});
  EXPECT_THAT(sink.texts, HasSubstr("2 steps, 200 tokens in 2.0 s: 100 tokens/s"));
  EXPECT_THAT(sink.texts, HasSubstr("loss: 5.0000 at step 1, 3.0000 at step 2\n"));
  EXPECT_THAT(sink.texts, HasSubstr("so far: 5 steps"));
  EXPECT_THAT(sink.texts, HasSubstr("(50.0 % of the plan)"));
}

TEST(Events, TheSummaryOfARunWithABestEvaluationNamesIt) {
  RecordingSink sink({.events = true});
  Events events(sink);
  Summary summary{.steps = 1, .seconds = 1};
  summary.best = Summary::Best{"eval_loss", 3, 0.5, true};
  events.summary(summary);
  EXPECT_THAT(
      sink.lines.back(),
      HasSubstr(R"("best_metric": "eval_loss", "best_value": 0.5, "best_step": 3, "stopped_early": true)"));
  EXPECT_EQ(sink.texts, "");
}

TEST(Events, ATaskOfAnotherUnitCountsInIt) {
  RecordingSink sink({.events = true});
  Events events(sink);
  training::StepEvent step = a_step(1, 2);
  step.unit = "images";
  events.step(step);
  EXPECT_THAT(sink.lines[0], HasSubstr(R"("images": 100, "unit": "images")"));
  EXPECT_THAT(sink.lines[0], HasSubstr(R"("images_per_second": 200, "samples_per_second": 8)"));
  events.summary({.steps = 2, .units = 10, .run_units = 30, .unit = "images", .seconds = 2});
  EXPECT_THAT(sink.lines.back(), HasSubstr(R"("run_images": 30)"));
  EXPECT_THAT(sink.lines.back(), HasSubstr(R"("images_per_second": 5)"));
  for (const std::string& line : sink.lines) EXPECT_THAT(line, testing::Not(HasSubstr("tokens")));
}

TEST(Events, AnEvaluationSaysWhatItsLossIsAMeanOver) {
  training::EvalEvent e;
  e.units = 700;
  e.targets = 699;
  EXPECT_EQ(e.counts(), "over 699 loss tokens of 700");
  e.loss_unit = "examples";
  EXPECT_EQ(e.counts(), "over 699 examples of 700 tokens");
  e.unit = "examples";
  EXPECT_EQ(e.counts(), "over 699 examples");
}

}  // namespace
}  // namespace plimsoll::telemetry
