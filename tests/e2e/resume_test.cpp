// A run that was interrupted goes on with the bits of one that was not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ten_steps.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Steps 1 to 3 under one set of overrides, to step 6 under the next, … in turn; the last goes to the end.
void expect_same_bits(const Reference& expected, const std::string& model,
                      const std::vector<std::string>& overrides, const std::string& always = "") {
  const Folder folder;
  prepare_ten_steps(folder, model);
  std::map<std::string, std::string> said;
  for (size_t part = 0; part < overrides.size(); ++part) {
    const bool last = part + 1 == overrides.size();
    const Outcome outcome = folder.run("train run.yaml --json " + overrides[part] + " " + always);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    said.merge(events_by_step(outcome));
    if (last) break;
    // As if it had been killed right after the save of step 3 (part + 1).
    const auto kept = static_cast<int>(3 * (part + 1));
    std::filesystem::remove_all(folder.path("out/final"));
    for (int step = kept + 1; step <= 10; ++step)
      std::filesystem::remove_all(folder.path("out/checkpoint-" + std::to_string(step)));
    ASSERT_TRUE(std::filesystem::exists(folder.path("out/checkpoint-" + std::to_string(kept))));
  }
  EXPECT_EQ(said, expected.said);
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == expected.model);
}

TEST(Resume, GivesTheBitsOfARunThatWasNeverStopped) {
  ASSERT_GT(reference().model.size(), 10'000U);
  expect_same_bits(reference(), kLlama, {"runtime.threads=2", "runtime.threads=2"});
}

TEST(Resume, GivesThemWithOtherThreadsAndMicroBatches) {
  expect_same_bits(
      reference(), kLlama,
      {"runtime.threads=1 training.micro_batch_size=4", "runtime.threads=3 training.micro_batch_size=1",
       "runtime.threads=2 training.micro_batch_size=2", "runtime.threads=1"});
}

TEST(Resume, GivesThemWithPoisonAndSeparateBuffers) {
  expect_same_bits(
      reference(), kLlama,
      {"debug.poison=true training.micro_batch_size=2", "debug.plan=separate debug.poison=true"});
}

/// States are read for the save of a step until the next one begins to update, which is early in it.
TEST(Resume, GivesThemWithTheOptimizerInBackward) {
  const std::string unclipped = "training.max_grad_norm=0 output.save_steps=1 ";
  expect_same_bits(undisturbed(kLlama, "training.max_grad_norm=0"), kLlama,
                   {"memory.optimizer_in_backward=true output.save_total_limit=9", "runtime.threads=2"},
                   unclipped);
}

TEST(Resume, GivesThemForGpt2) {
  expect_same_bits(undisturbed(kGpt2), kGpt2,
                   {"runtime.threads=2", "training.micro_batch_size=2", "runtime.threads=3"});
}

class Optimizers : public testing::TestWithParam<const char*> {};
TEST_P(Optimizers, AreTakenUpWithTheirState) {
  expect_same_bits(undisturbed(kLlama, GetParam()), kLlama,
                   {"runtime.threads=2", "training.micro_batch_size=1"}, GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    All, Optimizers,
    testing::Values("training.optimizer=adam training.max_grad_norm=null", "training.optimizer=sgd",
                    "training.optimizer=sgd training.momentum=0.9 training.dampening=0.2",
                    "training.optimizer=sgd training.momentum=0.9 training.nesterov=true",
                    "training.optimizer=lion", "training.optimizer=adamw_8bit",
                    "training.optimizer=adafactor training.adafactor.beta1=0.9", "training.optimizer=muon"));

TEST(LastSave, ThatFailsStillLeavesTheModel) {
  const Folder folder;
  prepare_ten_steps(folder);
  folder.write("run.yaml", run_text(std::string(kLlama).insert(1, "torch_dtype: bfloat16, ")));
  const std::string overrides = "runtime.threads=1 training.max_steps=2";
  // The optimizer's file is twice the model's: this limit lies between.
  ASSERT_EQ(folder.run("train run.yaml " + overrides).exit_code, 0);
  const std::string model = folder.read("out/final/model.safetensors");
  EXPECT_THAT(folder.read("out/final/config.json"), Not(HasSubstr("torch_dtype")));
  EXPECT_THAT(folder.read("out/final/config.json"), HasSubstr("\"dtype\": \"float32\""));
  std::filesystem::remove_all(folder.path("out"));
  const Outcome outcome = folder.run("train run.yaml --json " + overrides,
                                     "prlimit --fsize=" + std::to_string(model.size() * 3 / 2));
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ulimit -f"));
  EXPECT_THAT(outcome.out, HasSubstr("\"path\": \"out/final\""));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-2")));
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == model);
}

TEST(DiskSpace, TooLittleIsSaidBeforeTheFirstStep) {
  const Folder folder;
  prepare_ten_steps(folder);
  const Outcome outcome = folder.run("train run.yaml --json", "prlimit --fsize=100000");
  EXPECT_EQ(outcome.exit_code, 74) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ulimit -f"));
}

}  // namespace
}  // namespace plimsoll::e2e
