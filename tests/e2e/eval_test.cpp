// plimsoll eval as its user stops it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace plimsoll::e2e {
namespace {

TEST(Eval, ASignalEndsItBetweenBatches) {
  const Folder folder;
  folder.write("run.yaml", run_file());
  folder.write("eval.txt", some_text(20'000'000));  // minutes
  const std::string command =
      "cd '" + folder.path() +
      "' && ( '" PLIMSOLL_BINARY
      "' eval run.yaml --json >out.txt 2>err.txt & p=$!; i=0; "
      "while [ $i -lt 1000 ] && ! grep -q plan out.txt; do i=$((i + 1)); sleep 0.01; done; "
      "kill -TERM $p; wait $p )";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75) << folder.read("err.txt");
  EXPECT_THAT(folder.read("err.txt"), testing::HasSubstr("error: stopped by SIGTERM"));
  EXPECT_THAT(folder.read("err.txt"), testing::HasSubstr("hint: run the same command again"));
  EXPECT_THAT(folder.read("out.txt"), testing::Not(testing::HasSubstr("\"event\": \"eval\"")));
}

/// Of weights so large that activations leave fp16. The result stands on stdout all the same.
TEST(Eval, ALossThatIsNotFiniteIsToldApartByItsExitCode) {
  const Folder folder;
  folder.write("run.yaml", run_file());
  folder.write("eval.txt", some_text(2000));
  const std::string command = "eval run.yaml model.config.initializer_range=100 training.precision=";
  const Outcome lost = folder.run(command + "fp16");
  EXPECT_EQ(lost.exit_code, 76) << lost.err;
  EXPECT_THAT(lost.out, testing::HasSubstr("\nloss nan, perplexity nan over "));
  EXPECT_THAT(lost.err, testing::HasSubstr("error: the loss is nan\nhint: fp16 ends at 65504"));
  const Outcome json = folder.run(command + "fp16 --json");
  EXPECT_EQ(json.exit_code, 76) << json.err;
  EXPECT_THAT(json.out, testing::HasSubstr("\"event\": \"eval\""));
  EXPECT_EQ(folder.run(command + "bf16").exit_code, 0);
}

/// eval_strategy as in transformers; without it a run with held-out data evaluates after its last step.
TEST(EvalStrategy, SaysWhenTrainingEvaluates) {
  const Folder folder;
  folder.write("train.txt", some_text(5'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml",
               run_file() + "training: {global_batch_size: 2, max_steps: 4, learning_rate: 1.0e-3}\n");
  const auto evaluations = [&](const std::string& overrides) {
    const Outcome outcome = folder.run("train run.yaml --json --resume never " + overrides);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    size_t count = 0;
    for (size_t at = 0; (at = outcome.out.find("\"event\": \"eval\"", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  EXPECT_EQ(evaluations(""), 1U);
  EXPECT_EQ(evaluations("eval_strategy=no"), 0U);
  EXPECT_EQ(evaluations("eval_strategy=steps logging_steps=2"), 2U);
  EXPECT_EQ(evaluations("eval_strategy=steps eval_steps=1"), 4U);
  const Outcome plan = folder.run("plan run.yaml --json eval_strategy=no");
  EXPECT_THAT(plan.out, testing::Not(testing::HasSubstr("\"eval\"")));
}

}  // namespace
}  // namespace plimsoll::e2e
