// What a run tells of its steps, evaluations and its end, and that the counts are of what they say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

std::vector<io::Tree> events_named(const std::string& out, const std::string& name) {
  std::vector<io::Tree> found;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    auto event = io::parse_json(line);
    EXPECT_TRUE(event) << line;
    if (event && event->find("event")->text == name) found.push_back(std::move(*event));
  }
  return found;
}

class RunEvents : public testing::Test {
 protected:
  RunEvents() {
    folder_.write("train.txt", some_text(20'000));
    folder_.write("eval.txt", some_text(700));
    folder_.write("run.yaml",
                  run_file("training: {global_batch_size: 2, max_steps: 7, learning_rate: 1.0e-2}\n"));
  }
  [[nodiscard]] Outcome train(const std::string& overrides) const {
    Outcome outcome = folder_.run("train run.yaml " + overrides);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
  const Folder folder_;
};

TEST_F(RunEvents, AStepHasItsLossAndTheMeanSinceTheLast) {
  const auto each = events_named(train("--json --resume never").out, "step"),
             some = events_named(train("--json --resume never logging_steps=3").out, "step");
  ASSERT_EQ(each.size(), 7U);
  ASSERT_EQ(some.size(), 3U);  // 3, 6, 7
  const auto mean = [&](size_t from, size_t to) {
    double sum = 0;
    for (size_t i = from; i < to; ++i) sum += each[i].find("loss")->number;
    return sum / static_cast<double>(to - from);
  };
  for (const io::Tree& e : each) EXPECT_EQ(e.find("loss_mean")->number, e.find("loss")->number);
  EXPECT_EQ(some[1].find("loss")->number, each[5].find("loss")->number);
  EXPECT_DOUBLE_EQ(some[0].find("loss_mean")->number, mean(0, 3));
  EXPECT_DOUBLE_EQ(some[1].find("loss_mean")->number, mean(3, 6));
  EXPECT_DOUBLE_EQ(some[2].find("loss_mean")->number, mean(6, 7));
  char line[40];
  std::snprintf(line, sizeof(line), "step 6/7  loss %.4f", mean(3, 6));
  EXPECT_THAT(train("--resume never logging_steps=3").err, HasSubstr(line));
}

TEST_F(RunEvents, TheSummaryIsOfOneStretch) {
  (void)train("--resume never training.max_steps=4 output.save_steps=4");
  const Outcome rest = train("--json");
  const auto steps = events_named(rest.out, "step"), summaries = events_named(rest.out, "summary");
  ASSERT_EQ(steps.size(), 3U);
  ASSERT_EQ(summaries.size(), 1U);
  int64_t tokens = 0;
  for (const io::Tree& e : steps) tokens += e.find("tokens")->integer;
  const io::Tree& s = summaries[0];
  EXPECT_EQ(s.find("steps")->integer, 3);
  EXPECT_EQ(s.find("tokens")->integer, tokens);
  EXPECT_EQ(s.find("run_steps")->integer, 7);
  EXPECT_EQ(s.find("run_tokens")->integer, 7 * tokens / 3);
  const double rate = static_cast<double>(tokens) / s.find("seconds")->number;
  EXPECT_NEAR(s.find("tokens_per_second")->number, rate, 1e-3 * rate);
}

TEST_F(RunEvents, AnEvaluationSaysTokensAndTargets) {
  const auto evals = events_named(folder_.run("eval run.yaml --json").out, "eval");
  ASSERT_EQ(evals.size(), 1U);
  // Three sequences of at most 300 tokens; the first of each is no target.
  EXPECT_EQ(evals[0].find("tokens")->integer, 700);
  EXPECT_EQ(evals[0].find("targets")->integer, 697);
  EXPECT_THAT(folder_.run("eval run.yaml").out, HasSubstr(" over 697 loss tokens of 700, "));
  EXPECT_THAT(train("--resume never").err, HasSubstr(" over 697 loss tokens of 700\n"));
}

/// Also of a run that diverges, and before anything else where it cannot be written.
TEST_F(RunEvents, ASnapshotCostsARunNothing) {
  const Outcome plain = train("--json --resume never"),
                with = train("--json --resume never --snapshot ran.pickle");
  EXPECT_EQ(events_of(plain.out), events_of(with.out));
  EXPECT_EQ(events_named(with.out, "summary").at(0).find("allocations_after_first_step")->integer, 0);
  EXPECT_THAT(with.err, HasSubstr("wrote ran.pickle: open it at pytorch.org/memory_viz"));
  EXPECT_GT(folder_.read("ran.pickle").size(), 10'000U);
  const Outcome diverged = folder_.run(
      "train run.yaml --resume never --snapshot bad.pickle learning_rate=1e6 lr_scheduler=constant "
      "max_steps=20 "
      "max_grad_norm=null");
  EXPECT_EQ(diverged.exit_code, 76) << diverged.err;
  EXPECT_GT(folder_.read("bad.pickle").size(), 10'000U);
  const auto state =
      io::parse_json(folder_.read("out/trainer_state.json"));  // of this run, not of the last one
  ASSERT_TRUE(state);
  EXPECT_EQ(state->find("max_steps")->integer, 20);
  EXPECT_FALSE(state->find("log_history")->items.empty());
  const Outcome nowhere = folder_.run("train run.yaml --resume never --snapshot no/such/folder.pickle");
  EXPECT_EQ(nowhere.exit_code, 74);
  EXPECT_EQ(nowhere.out, "");
}

/// What the folder holds is what stdout said, also where a run goes on and where a line was torn.
TEST_F(RunEvents, TheFolderHasThemWholeOverAResume) {
  const Outcome first = train("--json --resume never output.save_steps=2 report_to=tensorboard");
  EXPECT_EQ(folder_.read("out/events.jsonl"), first.out);
  for (const char* later : {"final", "checkpoint-6", "checkpoint-7"})
    std::filesystem::remove_all(folder_.path(std::string("out/") + later));
  folder_.write("out/events.jsonl", first.out + "{\"event\": \"st");
  const Outcome second = train("--json output.save_steps=2 report_to=tensorboard");
  const std::string whole = folder_.read("out/events.jsonl");
  EXPECT_TRUE(whole.ends_with(second.out));
  EXPECT_EQ(events_of(whole), events_of(first.out));
  const auto state = io::parse_json(folder_.read("out/trainer_state.json")),
             early = io::parse_json(folder_.read("out/checkpoint-4/trainer_state.json"));
  ASSERT_TRUE(state && early);
  EXPECT_EQ(state->find("log_history")->items.size(), 9U);  // seven steps, an evaluation, the end
  EXPECT_EQ(early->find("log_history")->items.size(), 4U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("out/runs")), {}), 2);
  EXPECT_TRUE(io::parse_json(folder_.read("out/environment.json")));
}

/// A log that cannot be written is told once and costs nothing else.
TEST_F(RunEvents, ALogThatCannotBeWrittenEndsNoRun) {
  std::filesystem::create_directories(folder_.path("out/events.jsonl"));
  const Outcome outcome = train("--json --resume never logging_first_step=true logging_steps=5");
  EXPECT_EQ(events_named(outcome.out, "step").size(), 3U);  // 1, 5, 7
  const size_t warning = outcome.err.find("warning: ");
  EXPECT_NE(warning, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning: ", warning + 1), std::string::npos) << outcome.err;
}

/// Its operations are the plan's, its ops make up its steps, and the run's folder is left alone.
TEST_F(RunEvents, AProfileIsOfThePlansWork) {
  const Outcome outcome = folder_.run("profile run.yaml --json --active 2 --output profile");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  const auto ops = io::parse_json(folder_.read("profile/ops.json")),
             trace = io::parse_json(folder_.read("profile/trace.json"));
  ASSERT_TRUE(ops && trace);
  double flops = 0, op_time = 0, step_time = 0;
  for (const io::Tree& row : ops->items) flops += row.find("flops")->number;
  for (const io::Tree& e : trace->find("traceEvents")->items) {
    const io::Tree* category = e.find("cat");
    if (category != nullptr && category->text != "user_annotation") op_time += e.find("dur")->number;
    if (e.find("name")->text.starts_with("ProfilerStep#")) step_time += e.find("dur")->number;
  }
  const auto plans = events_named(outcome.out, "plan");
  ASSERT_EQ(plans.size(), 1U);
  const io::Tree* step = plans[0].find("step");
  ASSERT_NE(step, nullptr);
  EXPECT_DOUBLE_EQ(flops, step->find("flops")->number + step->find("recompute_flops")->number);
  EXPECT_LE(op_time, step_time);
  // What no event explains is what a machine that does other things beside takes away.
  const io::Tree verdict = events_named(outcome.out, "verdict").at(0);
  const io::Tree* parts = verdict.find("parts");
  ASSERT_NE(parts, nullptr);
  double parts_seconds = 0;
  for (const auto& [name, seconds] : parts->members) parts_seconds += seconds.number;
  EXPECT_NEAR(parts_seconds, verdict.find("step_seconds")->number, 1e-9);
  EXPECT_NEAR(parts->find("ops")->number, 1e-6 * op_time / 2, 1e-6);
  EXPECT_LT(parts->find("in no event")->number, 0.1 * parts_seconds);
  const auto verdicts = events_named(outcome.out, "verdict");
  ASSERT_EQ(verdicts.size(), 1U);
  double share = 0;
  for (const io::Tree& finding : verdicts[0].find("findings")->items) share += finding.find("share")->number;
  EXPECT_NEAR(share, 1, 1e-6);
  EXPECT_EQ(folder_.run("profile run.yaml --active 0").exit_code, 2);
  EXPECT_EQ(folder_.run("profile run.yaml --output run.yaml").exit_code, 74);
}

TEST_F(RunEvents, AProfileLaysWhatWasMeasuredOverThePlan) {
  const Outcome outcome =
      folder_.run("profile run.yaml --memory --json --output profile output.save_steps=2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto memory = io::parse_json(folder_.read("profile/memory.json"));
  ASSERT_TRUE(memory);
  const auto plans = events_named(outcome.out, "plan");
  ASSERT_EQ(plans.size(), 1U);
  const auto& points = memory->find("points")->items;
  EXPECT_GT(points.size(), 10U);
  for (const io::Tree& point : points) {
    EXPECT_GT(point.find("measured_bytes")->integer, 0);
    EXPECT_LE(point.find("measured_bytes")->integer, plans[0].find("process_peak_bytes")->integer);
  }
  EXPECT_THAT(folder_.read("profile/memory.svg"), HasSubstr("class=\"measured\""));
  const std::string trace = folder_.read("profile/trace.json");
  for (const char* event : {"write a checkpoint", "load a batch", "wait for data", "\"ph\": \"C\""})
    EXPECT_THAT(trace, HasSubstr(event));
}

TEST_F(RunEvents, ALadderMeasuresEachRungAndHoldsItsNumbers) {
  const Outcome outcome = folder_.run("profile run.yaml --ladder --json --active 2 --output profile");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
  const auto ladders = events_named(outcome.out, "ladder");
  ASSERT_EQ(ladders.size(), 1U);
  const auto& rungs = ladders[0].find("rungs")->items;
  ASSERT_GT(rungs.size(), 2U);
  EXPECT_TRUE(rungs[0].find("settings")->items.empty());
  size_t measured = 0;
  for (size_t i = 1; i < rungs.size(); ++i) {
    EXPECT_FALSE(rungs[i].find("settings")->items.empty());
    if (rungs[i].find("refused") != nullptr) continue;
    ++measured;
    EXPECT_GT(rungs[i].find("step_seconds")->number, 0);
    EXPECT_EQ(rungs[i].find("numbers")->text, "bit-identical") << io::to_json(rungs[i]);
  }
  EXPECT_GT(measured, 0U);
}

/// What the run left of its plan is drawn without planning, run.yaml or not.
TEST_F(RunEvents, AReportDrawsThePlanThatTheRunLeft) {
  ASSERT_EQ(train("").exit_code, 0);
  EXPECT_TRUE(io::parse_json(folder_.read("out/plan.json")));
  std::filesystem::remove(folder_.path("out/run.yaml"));
  ASSERT_EQ(folder_.run("report out --output page.html").exit_code, 0);
  EXPECT_THAT(folder_.read("page.html"), HasSubstr("id=\"timeline0\""));
  folder_.write("out/plan.json", "{\"points\": 3}");
  ASSERT_EQ(folder_.run("report out --output page.html").exit_code, 0);
  EXPECT_THAT(folder_.read("page.html"), HasSubstr("this is no plan of a run"));
}

}  // namespace
}  // namespace plimsoll::e2e
