// Ranks that exchange bytes while they compute train as those do that wait, bit for bit; and end as they do.
#include <gmock/gmock.h>

#include <array>
#include <cstdlib>

#include "e2e/ranks.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// Over which an exchange takes long enough to be worth hiding, as far as the plan knows.
const std::string kSlowNetwork = " 'distributed.topology={intra: 50MB/s}'";
/// Matrices of a block that are large enough to be cut.
const std::string kCutMatrices =
    " model.config.intermediate_size=600 training.max_steps=3 training.eval_strategy=no "
    "training.max_grad_norm=0.1";

class Overlap : public Ranks {
 protected:
  /// Weights and events.
  std::string left(int ranks, const std::string& more) {
    std::filesystem::remove_all(folder_.path("run"));
    const std::string model = trained(ranks, "run", kCutMatrices + more);
    return model + events_of(out_);
  }
  /// Of what was trained last, as the plan has it.
  [[nodiscard]] double hidden_seconds() const {
    const size_t at = out_.find("\"hidden_seconds\": ");
    return at == std::string::npos ? -1 : std::strtod(out_.c_str() + at + 18, nullptr);
  }
};

TEST_F(Overlap, ChangesNoBit) {
  const std::string whole = " training.micro_batch_size=4 distributed.mode=";
  const std::string expected = left(2, whole + "ddp");
  EXPECT_LT(hidden_seconds(), 1e-9) << "the processor itself moves the bytes";
  const std::string device = " runtime.device=discrete runtime.discrete.seed=3 runtime.discrete.check=true";
  for (const std::string& how : part_of<std::string>({"ddp", "zero1", "zero2", "zero3", "ddp" + device,
                                                      "zero1" + device, "zero2" + device, "zero3" + device},
                                                     3)) {
    EXPECT_TRUE(left(2, kSlowNetwork + whole + how) == expected) << how;
    EXPECT_GT(hidden_seconds(), 1e-6) << how;
  }
}

/// Two to four of a rank: the last one's backward hides what ranks sum.
TEST_F(Overlap, OfTheLastMicroBatchChangesNoBit) {
  for (const int ranks : {2, 3})
    for (const std::string micro : {" training.micro_batch_size=1", " training.micro_batch_size=2"}) {
      const std::string expected = left(ranks, micro + " distributed.mode=ddp");
      for (const std::string mode : {"ddp", "zero1"})
        for (const char* device :
             {"", " runtime.device=discrete runtime.discrete.seed=3 runtime.discrete.check=true"}) {
          EXPECT_TRUE(left(ranks, kSlowNetwork + micro + " distributed.mode=" + mode + device) == expected)
              << ranks << micro << mode << device;
          EXPECT_NE(out_.find("\"micro_last\""), std::string::npos) << ranks << micro << mode << device;
        }
    }
}

/// Where the optimizer, the precision or the table's uses differ, and where programs run twice.
TEST_F(Overlap, OfTheLastMicroBatchTakesEveryRun) {
  for (const char* how : part_of<const char*>(
           {"model.config.tie_word_embeddings=false memory.recompute=full",
            "training.precision=bf16 training.state.weights=bf16 training.state.gradients=fp32",
            "training.precision=fp16 training.loss_scale.init_scale=1.0e6", "training.optimizer=muon",
            "training.optimizer=adafactor training.ema_decay=0.9", "debug.verify_steps=1",
            "training.precision=fp8 data.sequence_length=256"},
           3)) {
    const std::string micro = std::string(" training.micro_batch_size=1 ") + how;
    const std::string expected = left(2, micro + " distributed.mode=ddp");
    for (const std::string mode : {"ddp", "zero1"}) {
      EXPECT_TRUE(left(2, kSlowNetwork + micro + " distributed.mode=" + mode) == expected) << how << mode;
      EXPECT_NE(out_.find("\"micro_last\""), std::string::npos) << how << mode;
    }
  }
}

/// The sum over a tied table's uses is rounded to 16 bits before ranks add it, in whichever program they do.
TEST_F(Overlap, OfTheLastMicroBatchTakesAccumulatorsOf16Bits) {
  const std::string micro =
      " training.micro_batch_size=1 training.precision=bf16 training.state.accumulators=bf16 "
      "distributed.mode=";
  const std::string expected = left(2, micro + "ddp");
  EXPECT_TRUE(left(2, kSlowNetwork + micro + "zero1") == expected);
  EXPECT_TRUE(left(2, kSlowNetwork + micro + "ddp") == expected);
  EXPECT_NE(out_.find("\"micro_last\""), std::string::npos);
}

TEST_F(Overlap, ChangesNoneOfSeveralMicroBatches) {
  for (const char* mode : part_of<const char*>({"ddp", "zero1", "zero3"}, 2)) {
    const std::string how =
        std::string(" training.micro_batch_size=1 memory.recompute=full distributed.mode=") + mode;
    const std::string expected = left(3, how);
    EXPECT_TRUE(left(3, kSlowNetwork + how) == expected) << mode;
  }
}

/// Evaluations, checkpoints and the best model have the parameters whole, whichever step gathers them.
TEST_F(Overlap, WhatReadsParametersBetweenStepsFindsThemWhole) {
  const std::string read =
      " training.max_steps=6 training.eval_strategy=steps training.eval_steps=1 output.save_steps=3 "
      "training.load_best_model_at_end=true training.metric_for_best_model=eval_loss "
      "training.greater_is_better=true output.save_total_limit=5";
  const auto run = [&](const std::string& how) {
    std::string all = left(2, read + how);
    for (const char* file : {"model", "optimizer"})
      all += folder_.read(std::string("run/checkpoint-3/") + file + ".safetensors");
    return all;
  };
  const std::string whole = " training.micro_batch_size=4";
  for (const auto& [how, mode] :
       part_of<std::pair<std::string, const char*>>({{whole, "zero1"},
                                                     {whole, "zero2"},
                                                     {" training.micro_batch_size=1", "zero1"},
                                                     {whole + " training.optimizer=sgd", "zero1"}},
                                                    2))
    EXPECT_TRUE(run(how + kSlowNetwork + " distributed.mode=" + mode) == run(how + " distributed.mode=ddp"))
        << how << mode;
}

TEST_F(Overlap, ARunGoesOnFromWhatItGathered) {
  const std::string how = kSlowNetwork + " distributed.mode=zero1 training.micro_batch_size=4" +
                          kCutMatrices +
                          " training.max_steps=4 output.save_steps=2 training.lr_scheduler=constant";
  const std::string expected = trained(2, "whole", how);
  ASSERT_FALSE(trained(2, "run", how + " training.max_steps=2").empty());
  for (const char* ended : {"run/final", "run/finished"}) std::filesystem::remove_all(folder_.path(ended));
  EXPECT_TRUE(trained(2, "run", how) == expected);
}

TEST_F(RunningRanks, ALostRankIsNamedWhileOthersOverlap) {
  start(2, "", kSlowNetwork + " distributed.mode=zero3");
  const std::array<pid_t, 2> pids = {rank(0), rank(1)};
  ::kill(pids[1], SIGKILL);
  const auto [code, seconds] = wait();
  EXPECT_EQ(code, 74);
  EXPECT_LT(seconds, 4) << "two seconds, on a busy machine";
  EXPECT_THAT(folder_.read("err.txt"), HasSubstr("rank 1 (host "));
  for (const pid_t pid : pids) EXPECT_TRUE(is_gone(pid)) << "rank left behind";
}

}  // namespace
}  // namespace plimsoll::e2e
