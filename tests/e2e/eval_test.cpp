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

}  // namespace
}  // namespace plimsoll::e2e
