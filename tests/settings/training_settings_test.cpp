// Settings of training beside each other: optimizers with their defaults, the loss scale, the warm-up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/run_text.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(TrainingSettings, ALaterLossScaleTakesAStaticOneBack) {
  for (const char* later : {"training.loss_scale={init_scale: 4}", "training.loss_scale.init_scale=4",
                            "training.loss_scale=null"}) {
    const auto run = parse_run(kRun, {"training.precision=fp16", "training.loss_scale=128", later});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_FALSE(run->training.loss_scale.fixed) << later;
  }
  const auto fixed = parse_run(
      kRun, {"training.precision=fp16", "training.loss_scale={init_scale: 4}", "training.loss_scale=128"});
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->training.loss_scale.fixed, 128);
}

TEST(TrainingSettings, ALossScaleDoesNotBeginBelowItsLeast) {
  const auto run = parse_run(kRun, {"training.precision=fp16", "training.loss_scale.init_scale=0.5"});
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().what, HasSubstr("init_scale (0.5) is below its min_scale (1)"));
  EXPECT_FALSE(parse_run(kRun, {"training.precision=fp16", "training.loss_scale=1e-60"}));
}

TEST(TrainingSettings, DefaultsOfOptimizers) {
  struct Row {
    const char* optimizer;
    double beta2, decay;
  };
  for (const Row& row : {Row{"adamw", 0.999, 0.01}, Row{"adam", 0.999, 0}, Row{"adam_l2", 0.999, 0},
                         Row{"sgd", 0.999, 0}, Row{"lion", 0.99, 0.01}, Row{"adamw_8bit", 0.999, 0.01},
                         Row{"adafactor", 0.999, 0}, Row{"muon", 0.999, 0.01}}) {
    const std::string optimizer = std::string("training.optimizer=") + row.optimizer;
    const auto run = parse_run(kRun, {optimizer});
    ASSERT_TRUE(run) << run.error().message();
    EXPECT_EQ(run->training.adam_beta2, row.beta2) << row.optimizer;
    EXPECT_EQ(run->training.weight_decay, row.decay) << row.optimizer;
  }
  const auto given =
      parse_run(kRun, {"training.optimizer=lion", "training.adam_beta2=0.95", "weight_decay=0.5"});
  EXPECT_EQ(given->training.adam_beta2, 0.95);
  EXPECT_EQ(given->training.weight_decay, 0.5);
  EXPECT_EQ(parse_run(kRun, {"training.optimizer=muon"})->training.muon.adjust_lr_fn, "original");
}

TEST(TrainingSettings, AdafactorsEps) {
  using Pair = std::array<double, 2>;
  const auto eps = [](std::initializer_list<std::string> overrides, const std::string& file = "") {
    std::vector<std::string> all = {"training.optimizer=adafactor"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    const auto run = parse_run_config(std::string(kRun) + file, "run.yaml", all);
    return run ? run->training.adafactor.eps : Pair{};
  };
  EXPECT_EQ(eps({}), (Pair{1e-30, 1e-3}));
  EXPECT_EQ(eps({"training.adafactor.eps=[1e-20, 0.5]"}), (Pair{1e-20, 0.5}));
  // The names of earlier versions, one for each number.
  EXPECT_EQ(eps({"training.adafactor.epsilon1=1e-20"}), (Pair{1e-20, 1e-3}));
  EXPECT_EQ(eps({"training.adafactor.epsilon1=1e-20", "training.adafactor.epsilon2=0.25"}),
            (Pair{1e-20, 0.25}));
  EXPECT_EQ(eps({"training.adafactor={epsilon2: 0.25, epsilon1: 1e-20}"}), (Pair{1e-20, 0.25}));
  EXPECT_EQ(eps({"training.adafactor.eps=[1e-20, 0.5]", "training.adafactor.epsilon2=0.25"}),
            (Pair{1e-20, 0.25}));
  for (const char* wrong : {"[0, 1e-3]", "[1e-30]", "[1e-30, 1, 1]", "1e-30", "[1e-30, 2]", "[]"})
    EXPECT_TRUE(eps({std::string("training.adafactor.eps=") + wrong}) == Pair{}) << wrong;
}

/// The rate follows from the step: one that is given says something else.
TEST(TrainingSettings, ARelativeStepTakesNoRate) {
  const auto refused = [](std::initializer_list<std::string> more) {
    std::vector<std::string> all = {"training.optimizer=adafactor", "training.adafactor.relative_step=true"};
    all.insert(all.end(), more.begin(), more.end());
    const auto run = parse_run_config("{model: {preset: gpt2}, data: {train: a.txt}}", "run.yaml", all);
    return run ? std::string() : run.error().message();
  };
  EXPECT_EQ(refused({}), "");
  EXPECT_EQ(refused({"training.warmup_steps=0"}), "");
  EXPECT_EQ(refused({"training.lr_scheduler=linear"}), "");
  EXPECT_THAT(refused({"training.learning_rate=0.001"}), HasSubstr("training.learning_rate"));
  EXPECT_THAT(refused({"training.learning_rate=0.0003"}), HasSubstr("training.learning_rate"));
  EXPECT_THAT(refused({"training.warmup_steps=5"}), HasSubstr("training.warmup_steps"));
  EXPECT_THAT(refused({"training.warmup_ratio=0.1"}), HasSubstr("training.warmup_ratio"));
}

TEST(TrainingSettings, AdamHasNoDecay) {
  EXPECT_EQ(parse_run(kRun, {"training.optimizer=adam"})->training.weight_decay, 0.0);
  EXPECT_FALSE(parse_run(kRun, {"training.optimizer=adam", "training.weight_decay=0.1"}));
}

TEST(TrainingSettings, SgdDecaysOnlyWhereAsked) {
  EXPECT_EQ(parse_run(kRun, {"training.optimizer=sgd"})->training.weight_decay, 0.0);
  EXPECT_EQ(parse_run(kRun, {"optim=sgd", "training.weight_decay=0.1"})->training.weight_decay, 0.1);
  const auto run = parse_run(kRun, {"training.optimizer=sgd", "momentum=0.9", "training.nesterov=true"});
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->training.momentum, 0.9);
  EXPECT_TRUE(run->training.nesterov);
}

TEST(TrainingSettings, TellsOfAWarmUpThatOutlivesTheRun) {
  EXPECT_THAT(parse_run(kRun, {"warmup_steps=30"})->notes,
              ElementsAre(HasSubstr("warm-up is 30 steps and the run 20")));
  EXPECT_THAT(parse_run(kRun, {"warmup_ratio=1"})->notes,
              ElementsAre(HasSubstr("warm-up is 20 steps and the run 20")));
  EXPECT_THAT(parse_run(kRun, {"warmup_steps=19"})->notes, IsEmpty());
}

}  // namespace
}  // namespace plimsoll::settings
