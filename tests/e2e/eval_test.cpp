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

}  // namespace
}  // namespace plimsoll::e2e
