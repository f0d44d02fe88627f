// Ranks that share the optimizer's state (ZeRO) train as ranks that each have all of it do, bit for bit.
#include <gmock/gmock.h>

#include "e2e/ranks.h"
#include "e2e/tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// What a run leaves: weights, the state of its last checkpoint, losses and norms.
struct Left {
  std::string model, state, events;
};

class Zero : public Ranks {
 protected:
  Left left(int ranks, const std::string& mode, const std::string& more = "") {
    std::filesystem::remove_all(folder_.path("run"));
    Left run;
    run.model = trained(ranks, "run", kThreeSteps + " distributed.mode=" + mode + " " + more);
    run.state = folder_.read("run/checkpoint-3/optimizer.safetensors");
    run.events = events_of(out_);
    EXPECT_FALSE(run.model.empty() || run.state.empty()) << mode << " " << more;
    return run;
  }
  void expect_same(int ranks, const std::string& more, const std::string& mode = "zero1") {
    const Left ddp = left(ranks, "ddp", more), zero = left(ranks, mode, more);
    EXPECT_TRUE(zero.model == ddp.model) << ranks << " ranks " << more;
    EXPECT_TRUE(read_tensors(zero.state) == read_tensors(ddp.state)) << ranks << " ranks " << more;
    EXPECT_EQ(zero.events, ddp.events) << more;
  }

  const std::string kThreeSteps =
      "training.max_steps=3 output.save_steps=3 training.eval_strategy=no training.max_grad_norm=0.1";
};

TEST_F(Zero, GivesTheBitsOfDdp) {
  for (const int ranks : {2, 3}) expect_same(ranks, "");
}

/// In one micro-batch; several are added in another order.
TEST_F(Zero, GivesThemWhereGradientsAreSharedToo) {
  for (const int ranks : {2, 3}) expect_same(ranks, "", "zero2");
  expect_same(2, "training.precision=bf16 training.state.weights=bf16 memory.recompute=full", "zero2");
  const Left ddp = left(2, "ddp", "training.micro_batch_size=1");
  const std::vector<double> expected = losses();
  const Left zero = left(2, "zero2", "training.micro_batch_size=1");
  const std::vector<double> found = losses();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5 * expected[i]);
  EXPECT_TRUE(left(2, "zero2", "training.micro_batch_size=1").model == zero.model) << "deterministic";
}

TEST_F(Zero, GivesThemInEveryPrecision) {
  for (const char* precision :
       {"training.precision=bf16",                                                //
        "training.precision=bf16 training.state.weights=bf16",                    // with masters
        "training.precision=bf16 training.state.weights=bf16 output.dtype=fp32",  // written to final/
        "training.precision=bf16 training.state.weights=bf16 training.state.master_weights=false",  // drawn
        "training.precision=bf16 training.state.moments=bf16",                                      // drawn
        "training.precision=fp16 training.loss_scale.init_scale=1.0e6"})  // some steps are skipped
    expect_same(2, precision);
}

TEST_F(Zero, GivesThemWithEveryOptimizer) {
  // The matrices of this model are small: they have owners from 16,384 elements on.
  for (const char* optimizer : {"adamw_8bit", "muon", "adafactor", "lion", "sgd training.momentum=0.9"})
    expect_same(2, std::string("model.config.intermediate_size=300 training.optimizer=") + optimizer);
}

TEST_F(Zero, GivesThemHoweverAStepIsCarriedOut) {
  const Left ddp = left(2, "ddp");
  for (const char* how : {"training.micro_batch_size=1", "memory.recompute=full runtime.threads=2",
                          "runtime.device=discrete runtime.discrete.seed=7 runtime.discrete.check=true"}) {
    const Left zero = left(2, "zero1", how);
    EXPECT_TRUE(zero.model == ddp.model && zero.state == ddp.state) << how;
  }
}

TEST_F(Zero, GivesThemForAverages) { expect_same(2, "training.ema_decay=0.9"); }

TEST_F(Zero, ResumesFromAnyModeAndNumberOfRanks) {
  const std::string run = "training.eval_strategy=no output.save_steps=3 output.dir=";
  const auto go_on = [&](int ranks, const std::string& mode, const std::string& dir, int steps) {
    const Outcome outcome = train(ranks, " " + run + dir + " distributed.mode=" + mode +
                                             " training.max_steps=" + std::to_string(steps));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return folder_.read(dir + "/final/model.safetensors");
  };
  const auto through = [&](const std::string& before, const std::string& after) {
    const std::string dir = before + "-" + after;
    (void)go_on(2, before, dir, 3);
    std::filesystem::remove_all(folder_.path(dir + "/final"));
    std::filesystem::remove_all(folder_.path(dir + "/finished"));
    return go_on(2, after, dir, 6);
  };
  const std::string expected = through("ddp", "ddp");
  EXPECT_FALSE(expected.empty());
  EXPECT_TRUE(through("zero1", "ddp") == expected);
  EXPECT_TRUE(through("ddp", "zero1") == expected);
  (void)go_on(3, "zero1", "three", 3);
  std::filesystem::remove_all(folder_.path("three/final"));
  std::filesystem::remove_all(folder_.path("three/finished"));
  EXPECT_FALSE(go_on(1, "ddp", "three", 6).empty());
}

TEST_F(Zero, ThePlanShowsWhatItSaves) {
  const auto state_bytes = [&](const std::string& mode) {
    const Outcome plan = folder_.run("plan run.yaml --json distributed.ranks=2 distributed.mode=" + mode);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
    return number(plan.out, "optimizer_state");
  };
  const double whole = state_bytes("ddp"), piece = state_bytes("zero1");
  EXPECT_LT(piece, 0.8 * whole);
  EXPECT_GT(piece, 0.5 * whole);
}

}  // namespace
}  // namespace plimsoll::e2e
