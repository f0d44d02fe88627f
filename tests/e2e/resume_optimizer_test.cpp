// A checkpoint of another optimizer, or of another rule of the same one, is refused with what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kRun =
    "model: {config: {model_type: llama, vocab_size: 259, hidden_size: 24, intermediate_size: 36, "
    "num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, "
    "max_position_embeddings: 64, rms_norm_eps: 1.0e-5, tie_word_embeddings: true}, init: random}\n"
    "data: {train: train.txt, sequence_length: 32}\n"
    "output: {dir: out, save_steps: 1}\n"
    "training: {global_batch_size: 1, max_steps: 1}\n";

struct Pair {
  const char* then;  ///< overrides of the run that saved
  const char* now;
  const char* says;
};

class OtherOptimizer : public testing::TestWithParam<Pair> {};

TEST_P(OtherOptimizer, IsRefusedWithWhatToDo) {
  const Folder folder;
  folder.write("train.txt", std::string(200, 'a'));
  folder.write("run.yaml", kRun);
  const std::string train = "train run.yaml --json runtime.threads=1 ";
  const Outcome first = folder.run(train + GetParam().then);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string manifest = folder.read("out/checkpoint-1/checkpoint.json");
  const Outcome outcome = folder.run(train + "training.max_steps=2 " + GetParam().now);
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().says));
  EXPECT_THAT(outcome.err, HasSubstr("out/checkpoint-1"));
  EXPECT_THAT(outcome.err, HasSubstr("hint: set it back, or start a new run with --resume never"));
  EXPECT_EQ(folder.read("out/checkpoint-1/checkpoint.json"), manifest);
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-2")));
}

INSTANTIATE_TEST_SUITE_P(
    All, OtherOptimizer,
    testing::Values(Pair{"", "training.optimizer=lion",
                         "training.optimizer is lion, but the checkpoint was made with adamw"},
                    Pair{"training.optimizer=adafactor", "",
                         "training.optimizer is adamw, but the checkpoint was made with adafactor"},
                    Pair{"", "training.optimizer=adamw_8bit",
                         "training.optimizer is adamw_8bit, but the checkpoint was made with adamw"},
                    Pair{"training.optimizer=muon", "training.optimizer=sgd",
                         "training.optimizer is sgd, but the checkpoint was made with muon"},
                    Pair{"training.optimizer=adafactor",
                         "training.optimizer=adafactor training.adafactor.beta1=0.9",
                         "training.adafactor.beta1 is 0.9, but the checkpoint was made with null"},
                    Pair{"training.optimizer=muon", "training.optimizer=muon training.muon.momentum=0.9",
                         "training.muon.momentum is 0.9, but the checkpoint was made with 0.95"},
                    Pair{"training.optimizer=sgd", "training.optimizer=sgd training.momentum=0.9",
                         "training.momentum is 0.9, but the checkpoint was made with 0"}));

/// The recorded run says what the run went by: a rate that follows from the step is not in it.
TEST(RecordedRun, IsStartedAndGoneOnWith) {
  const Folder folder;
  folder.write("train.txt", std::string(200, 'a'));
  folder.write("run.yaml", kRun);
  const std::string rule = " training.optimizer=adafactor training.adafactor.relative_step=true";
  ASSERT_EQ(folder.run("train run.yaml runtime.threads=1" + rule).exit_code, 0);
  for (const std::string file : {"out/run.yaml", "out/checkpoint-1/run.yaml"}) {
    const Outcome plan = folder.run("plan " + file);
    EXPECT_EQ(plan.exit_code, 0) << plan.err;
  }
  const Outcome on = folder.run("train out/run.yaml training.max_steps=2");
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_TRUE(std::filesystem::exists(folder.path("out/checkpoint-2"))) << on.err;
}

}  // namespace
}  // namespace plimsoll::e2e
