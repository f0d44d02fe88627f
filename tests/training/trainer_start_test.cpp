// How a run begins: the output folder, the checkpoint it goes on from, what it is told on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/checkpoint.h"
#include "io/file.h"
#include "training/tiny_run.h"

namespace plimsoll::training {
namespace {

using testing::HasSubstr;

class TrainerStart : public testing::Test {
 protected:
  TrainerOptions options(const std::string& resume = "auto") {
    TrainerOptions options;
    options.resume = resume;
    options.note = [this](const std::string& text) { notes_ += text + "\n"; };
    return options;
  }
  /// Steps with a checkpoint after each; final/ is not written.
  void train(const settings::RunConfig& config, int64_t steps) {
    const TinyTrainer t(config, options());
    ASSERT_TRUE(t.trainer) << t.error->message();
    while (t->steps_done() < steps) {
      ASSERT_TRUE(t->step());
      ASSERT_TRUE(t->start_checkpoint());
      ASSERT_TRUE(t->next_saved(/*wait=*/true));
    }
  }
  void damage(const std::string& checkpoint) const {
    std::ofstream(run_.path(checkpoint) + "/checkpoint.json", std::ios::app) << " ";
  }
  const TinyRun run_;
  std::string notes_;
};

TEST_F(TrainerStart, BeginsWhereThereIsNothing) {
  TrainerOptions given = options();
  given.resume_with = {"training.learning_rate"};
  const TinyTrainer t(run_.config(), given);
  ASSERT_TRUE(t.trainer) << t.error->message();
  EXPECT_EQ(t->steps_done(), 0);
  EXPECT_FALSE(t->loaded()) << "random weights";
  EXPECT_TRUE(run_.exists("out/run.yaml"));
  EXPECT_THAT(notes_, HasSubstr("there is no checkpoint to resume from: --resume-with applies"));
}

TEST_F(TrainerStart, OneRunHasTheFolder) {
  const TinyTrainer first(run_.config());
  ASSERT_TRUE(first.trainer);
  const TinyTrainer second(run_.config());
  ASSERT_FALSE(second.trainer);
}

TEST_F(TrainerStart, GoesOnFromTheNewestIntactCheckpoint) {
  const auto config = run_.config({"output.save_steps=1", "training.max_steps=4"});
  train(config, 3);
  damage("out/checkpoint-3");
  const TinyTrainer t(config, options());
  ASSERT_TRUE(t.trainer) << t.error->message();
  EXPECT_EQ(t->steps_done(), 2);
  EXPECT_TRUE(t->is_checkpointed());
  EXPECT_THAT(notes_, HasSubstr("skipped, because it is damaged"));
  EXPECT_THAT(notes_, HasSubstr("resuming after step 2 from " + run_.path("out/checkpoint-2")));
  EXPECT_THAT(notes_, HasSubstr("1 earlier checkpoint in"));
}

TEST_F(TrainerStart, NeverBeginsAnewAndKeepsTheOldUntilItHasSaved) {
  const auto config = run_.config({"output.save_steps=1", "training.max_steps=4"});
  train(config, 2);
  const TinyTrainer t(config, options("never"));
  ASSERT_TRUE(t.trainer) << t.error->message();
  EXPECT_EQ(t->steps_done(), 0);
  EXPECT_THAT(notes_, HasSubstr("2 earlier checkpoints in"));
  EXPECT_TRUE(run_.exists("out/checkpoint-1") && run_.exists("out/checkpoint-2"));
  ASSERT_TRUE(t->step());
  ASSERT_TRUE(t->start_checkpoint());
  ASSERT_TRUE(t->next_saved(/*wait=*/true));
  EXPECT_TRUE(run_.exists("out/checkpoint-1"));
  EXPECT_FALSE(run_.exists("out/checkpoint-2"));
}

TEST_F(TrainerStart, EveryCheckpointDamagedIsAnError) {
  const auto config = run_.config({"output.save_steps=1"});
  train(config, 1);
  damage("out/checkpoint-1");
  const TinyTrainer t(config, options());
  ASSERT_FALSE(t.trainer);
  EXPECT_EQ(t.error->code, ErrorCode::kBadData);
}

TEST_F(TrainerStart, AnotherRunsCheckpointIsRefused) {
  train(run_.config({"output.save_steps=1"}), 1);
  const TinyTrainer t(run_.config({"output.save_steps=1", "training.seed=7"}), options());
  ASSERT_FALSE(t.trainer);
  EXPECT_EQ(t.error->code, ErrorCode::kInvalidArgument);
}

/// Of accumulators in bf16 each micro-batch's gradients are rounded onto the sum.
TEST_F(TrainerStart, AnotherMicroBatchIsAnotherRunWhereResultsDependOnIt) {
  const auto split = [&](const char* accumulators, int size) {
    return run_.config({"output.save_steps=1", std::string("training.state.accumulators=") + accumulators,
                        "training.micro_batch_size=" + std::to_string(size)},
                       accumulators);
  };
  train(split("fp32", 2), 1);
  EXPECT_TRUE(TinyTrainer(split("fp32", 1), options()).trainer);
  train(split("bf16", 2), 1);
  EXPECT_TRUE(TinyTrainer(split("bf16", 2), options()).trainer);
  const TinyTrainer other(split("bf16", 1), options());
  ASSERT_FALSE(other.trainer);
  EXPECT_EQ(other.error->code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(other.error->message(), HasSubstr("training.micro_batch_size is 1, but the checkpoint"));
}

TEST_F(TrainerStart, AFolderInTheWayOfALaterCheckpointIsSaidAtOnce) {
  std::filesystem::create_directories(run_.path("out/checkpoint-2/theirs"));
  const TinyTrainer t(run_.config({"output.save_steps=1"}), options("never"));
  ASSERT_FALSE(t.trainer);
  EXPECT_EQ(t.error->code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(t.error->message(), HasSubstr("the path of a checkpoint is occupied by "));
  std::filesystem::remove_all(run_.path("out"));
  std::filesystem::create_directories(run_.path("out/checkpoint-7/theirs"));
  EXPECT_TRUE(TinyTrainer(run_.config({"output.save_steps=1"}), options("never")).trainer)
      << "beyond the run";
}

TEST_F(TrainerStart, AFinishedModelIsNotReplacedUnasked) {
  {
    const TinyTrainer t(run_.config());
    ASSERT_TRUE(t.trainer);
    while (!t->is_finished()) ASSERT_TRUE(t->step());
    ASSERT_TRUE(t->save_final());
  }
  {
    const TinyTrainer again(run_.config(), options());
    ASSERT_TRUE(again.trainer) << again.error->message();
    EXPECT_TRUE(again->was_finished());
  }
  {
    const TinyTrainer other(run_.config({"training.seed=7"}), options());
    ASSERT_FALSE(other.trainer);
    EXPECT_EQ(other.error->code, ErrorCode::kInvalidArgument);
  }
  const TinyTrainer anew(run_.config({"training.seed=7"}), options("never"));
  ASSERT_TRUE(anew.trainer) << anew.error->message();
  EXPECT_FALSE(anew->was_finished());
  EXPECT_THAT(notes_, HasSubstr("final stays until this run is finished"));
}

}  // namespace
}  // namespace plimsoll::training
