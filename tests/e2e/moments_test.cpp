// Moments of 8 bits as FP8-LM and COAT keep them: near fp32's losses, the same bits however they are run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

void prepare(const Folder& folder) {
  folder.write("train.txt", some_text(30'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file("training: {global_batch_size: 4, max_steps: 40, learning_rate: 3.0e-3, "
                                    "lr_scheduler: linear, warmup_steps: 4}\n"));
}

Result train(const std::string& overrides) {
  const Folder folder;
  prepare(folder);
  return result_of(folder, folder.run("train run.yaml --json " + overrides));
}

double last_loss(const Result& result) {
  const size_t at = result.events.rfind("\"loss\": ");
  EXPECT_NE(at, std::string::npos);
  return std::strtod(result.events.c_str() + at + 8, nullptr);
}

class MomentsRun : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string moments() { return " training.state.moments=" + GetParam(); }
};

TEST_P(MomentsRun, TrainsAsWithMomentsInFp32) {
  const double wide = last_loss(train("")), narrow = last_loss(train(moments()));
  EXPECT_LT(narrow, 1.01 * wide);
  EXPECT_GT(narrow, 0.97 * wide);
  EXPECT_NE(narrow, wide);
}

TEST_P(MomentsRun, HasTheSameBitsHoweverItIsRun) {
  const std::string few = " training.max_steps=4";
  const Result whole = train("runtime.threads=1" + few + moments());
  for (const char* how : {"runtime.threads=3 debug.poison=true", "training.micro_batch_size=1",
                          "memory.optimizer_in_backward=true training.max_grad_norm=null"}) {
    if (std::string(how).find("null") != std::string::npos) {
      EXPECT_TRUE(train("training.max_grad_norm=null" + few + moments()).model ==
                  train(how + few + moments()).model)
          << how;
      continue;
    }
    const Result other = train(how + few + moments());
    EXPECT_EQ(whole.events, other.events) << how;
    EXPECT_TRUE(whole.model == other.model) << how;
  }
}

TEST_P(MomentsRun, GoesOnFromACheckpointAndRefusesOthers) {
  const std::string few = " training.max_steps=4";
  const Result whole = train(few + moments());
  const Folder folder;
  prepare(folder);
  ASSERT_EQ(folder.run("train run.yaml output.save_steps=2" + few + moments()).exit_code, 0);
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/checkpoint-4"));
  const Outcome other = folder.run("train run.yaml" + few);
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("training.state.moments"));
  const Result rest = result_of(folder, folder.run("train run.yaml --json" + few + moments()));
  EXPECT_TRUE(whole.events.ends_with(rest.events));
  EXPECT_TRUE(whole.model == rest.model);
}

INSTANTIATE_TEST_SUITE_P(Each, MomentsRun, testing::Values("fp8_lm", "coat"));

TEST(Moments, AreThoseOfAdam) {
  const Folder folder;
  prepare(folder);
  const Outcome lion = folder.run("plan run.yaml training.optimizer=lion training.state.moments=coat");
  EXPECT_EQ(lion.exit_code, 2);
  EXPECT_THAT(lion.err, HasSubstr("training.state.moments is coat, and training.optimizer is lion"));
}

}  // namespace
}  // namespace plimsoll::e2e
