// What the loop decides, as an observer sees it: the order of calls, and how a run ends.
#include "training/run_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/final_record.h"
#include "training/tiny_run.h"

namespace plimsoll::training {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Recorder : public Observer {
 public:
  void step_begins() override { calls.emplace_back("begin"); }
  void step_ran(const StepEvent& event, bool logged) override {
    calls.push_back("ran " + std::to_string(event.step) + (logged ? "" : " unlogged"));
    means.push_back(event.loss_mean);
    losses.push_back(event.loss);
  }
  void step_ended() override { calls.emplace_back("end"); }
  void evaluated(int64_t step, const EvalEvent* event) override {
    calls.push_back("evaluated " + std::to_string(step) + (event == nullptr ? " in part" : ""));
  }
  void checkpoint_begins() override { calls.emplace_back("save"); }
  void checkpoint_saved(const checkpoints::SaveReport& saved) override {
    calls.push_back("saved " + std::to_string(saved.step));
  }
  void final_saved(const checkpoints::SaveReport& saved) override {
    calls.push_back("final " + std::to_string(saved.step));
  }
  void note(const std::string& text) override { notes += text + "\n"; }
  void warning(const std::string& text) override { notes += "warning: " + text + "\n"; }

  [[nodiscard]] bool has(const std::string& call) const {
    return std::find(calls.begin(), calls.end(), call) != calls.end();
  }
  std::vector<std::string> calls;
  std::vector<double> losses, means;
  std::string notes;
};

class RunLoopTest : public testing::Test {
 protected:
  Status run(const TinyTrainer& trainer, const Stop& stop = {}) {
    EXPECT_FALSE(trainer.error) << trainer.error->message();
    return RunLoop(*trainer, seen_, "auto", stop)();
  }
  /// Where the checkpoint of a step would go lies another program's folder.
  void block(int64_t step) const {
    std::filesystem::create_directories(run_.path("out/checkpoint-" + std::to_string(step)) + "/theirs");
  }
  const TinyRun run_;
  Recorder seen_;
};

TEST_F(RunLoopTest, EvaluatesAfterTheStepAndInTheEnd) {
  ASSERT_TRUE(run(TinyTrainer(run_.config({run_.held_out(), "training.eval_steps=1"}))));
  EXPECT_THAT(seen_.calls, ElementsAre("begin", "ran 1", "evaluated 1", "end", "begin", "ran 2",
                                       "evaluated 2", "end", "final 2"));
}

TEST_F(RunLoopTest, ASaveIsReportedBeforeTheNextOneBegins) {
  ASSERT_TRUE(run(TinyTrainer(run_.config({"output.save_steps=1"}))));
  EXPECT_THAT(seen_.calls, ElementsAre("begin", "ran 1", "save", "end", "begin", "ran 2", "saved 1", "save",
                                       "end", "saved 2", "final 2"));
}

TEST_F(RunLoopTest, MeansAreOverTheStepsSinceTheLastLoggedOne) {
  ASSERT_TRUE(run(TinyTrainer(run_.config({"training.max_steps=5", "training.logging_steps=2"}))));
  EXPECT_THAT(seen_.calls,
              testing::IsSupersetOf({"ran 1 unlogged", "ran 2", "ran 3 unlogged", "ran 4", "ran 5"}));
  EXPECT_DOUBLE_EQ(seen_.means[1], (seen_.losses[0] + seen_.losses[1]) / 2);
  EXPECT_DOUBLE_EQ(seen_.means[3], (seen_.losses[2] + seen_.losses[3]) / 2);
  EXPECT_DOUBLE_EQ(seen_.means[4], seen_.losses[4]) << "the last step is logged by itself";
}

TEST_F(RunLoopTest, ASaveThatFailsOnTheWayEndsTheRun) {
  const TinyTrainer trainer(run_.config({"output.save_steps=1", "training.max_steps=4"}));
  block(1);
  const Status ended = run(trainer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kIo);
  EXPECT_FALSE(seen_.has("final 4"));
  EXPECT_FALSE(run_.exists("out/final"));
}

TEST_F(RunLoopTest, TheModelIsWrittenThoughTheLastStepsSaveFails) {
  const TinyTrainer trainer(run_.config({"output.save_steps=1"}));
  block(2);
  const Status ended = run(trainer);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kIo);
  EXPECT_TRUE(seen_.has("final 2"));
  EXPECT_FALSE(seen_.has("saved 2"));
  EXPECT_TRUE(run_.exists("out/final/model.safetensors"));
}

TEST_F(RunLoopTest, StopsEarlyWhereEvaluationsGetNoBetter) {
  const TinyTrainer trainer(
      run_.config({run_.held_out(), "training.eval_steps=1", "training.max_steps=9",
                   "training.learning_rate=1e-30", "training.early_stopping_patience=2"}));
  ASSERT_TRUE(run(trainer));
  EXPECT_EQ(trainer->steps_done(), 3);
  EXPECT_THAT(seen_.notes, HasSubstr("stopped early after step 3: eval_loss has not improved on"));
  EXPECT_THAT(seen_.notes, HasSubstr("for 2 evaluations in a row"));
  EXPECT_TRUE(seen_.has("final 3"));
}

TEST_F(RunLoopTest, ARequestToStopBeforeTheFirstStepSavesNothing) {
  const Status ended = run(TinyTrainer(run_.config()), [] { return "SIGTERM"; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(ended.error().what, "stopped by SIGTERM before the first step");
  EXPECT_TRUE(seen_.calls.empty());
}

TEST_F(RunLoopTest, ARequestToStopSavesTheStepsDone) {
  const TinyTrainer trainer(run_.config({"training.max_steps=9"}));
  const Status ended = run(trainer, [&] { return seen_.has("ran 3") ? "SIGUSR1" : ""; });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(ended.error().what, "stopped by SIGUSR1 after step 3, saved in " + run_.path("out/checkpoint-3"));
  EXPECT_THAT(ended.error().hint, HasSubstr("to resume from there"));
  EXPECT_THAT(seen_.calls, testing::IsSupersetOf({"save", "saved 3"}));
  EXPECT_FALSE(run_.exists("out/final"));
}

TEST_F(RunLoopTest, GoesOnWhereItWasStoppedAndMakesUpForTheEvaluation) {
  const std::vector<std::string> settings = {run_.held_out(), "training.eval_steps=2",
                                             "training.max_steps=3"};
  ASSERT_FALSE(run(TinyTrainer(run_.config(settings)), [&] { return seen_.has("ran 2") ? "SIGINT" : ""; }));
  EXPECT_FALSE(seen_.has("evaluated 2"));
  seen_.calls.clear();
  ASSERT_TRUE(run(TinyTrainer(run_.config(settings))));
  EXPECT_THAT(seen_.calls, ElementsAre("evaluated 2", "begin", "ran 3", "evaluated 3", "end", "final 3"));
}

TEST_F(RunLoopTest, NothingIsLeftOfARunThatIsDone) {
  const auto config = run_.config({"output.save_steps=1"});
  ASSERT_TRUE(run(TinyTrainer(config)));
  seen_.calls.clear();
  const TinyTrainer again(config);
  ASSERT_TRUE(run(again));
  EXPECT_TRUE(seen_.calls.empty());
  EXPECT_THAT(seen_.notes, HasSubstr("nothing is left to do: all 2 steps are done"));
}

}  // namespace
}  // namespace plimsoll::training
