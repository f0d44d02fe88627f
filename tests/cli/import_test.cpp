// plimsoll import as its user calls it: where the run file goes, what stderr says, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/run_plimsoll.h"
#include "io/file.h"
#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kArguments =
    "output_dir: x\nlearning_rate: 1e-3\nmax_length: 64\nneftune_noise_alpha: 5\n";

TEST(ImportCommand, WritesTheRunFileAndTellsWhatDiffers) {
  const io::TemporaryFolder folder;
  const std::string args = folder.write("args.yaml", kArguments), run = folder.path("run.yaml");
  const Outcome outcome = run_plimsoll({"import", args, "--output", run});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err,
              HasSubstr("not supported: neftune_noise_alpha: 5: no noise is added to embeddings\n"));
  EXPECT_THAT(outcome.err, HasSubstr("fill in: data.train: "));
  EXPECT_THAT(outcome.err, HasSubstr("\n3 mapped, 0 without effect, 1 not supported, "));
  EXPECT_THAT(*io::read_small_file(run, 1 << 20), HasSubstr("\n  learning_rate: 0.001"));
  const Outcome piped = run_plimsoll({"import", args, "--from", "trl"});
  EXPECT_THAT(piped.out, StartsWith("# Made by plimsoll import of "));
}

TEST(ImportCommand, PrintsOneObjectWithJson) {
  const io::TemporaryFolder folder;
  const Outcome outcome = run_plimsoll({"import", folder.write("args.yaml", kArguments), "--json"});
  const auto event = io::parse_json(outcome.out);
  ASSERT_TRUE(event) << outcome.out;
  EXPECT_EQ(event->find("keys")->items.size(), 4U);
  EXPECT_EQ(event->find("no_equal")->integer, 1);
}

TEST(ImportCommand, WritesNothingOverBadValues) {
  const io::TemporaryFolder folder;
  const std::string bad = folder.write("bad.yaml", "output_dir: x\nlearning_rate: fast\nseed: -1\n");
  const Outcome outcome = run_plimsoll({"import", bad, "--output", folder.path("run.yaml")});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err,
              HasSubstr("error: learning_rate is \"fast\", expected a number from 0 to 1000000: " + bad +
                        " line 2\nhint: "));
  EXPECT_THAT(outcome.err, HasSubstr("error: seed is -1, expected"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("run.yaml")));
  EXPECT_EQ(run_plimsoll({"import", folder.path("none.yaml")}).code, 2);
  EXPECT_EQ(
      run_plimsoll({"import", folder.write("good.yaml", kArguments), "--output", "/proc/none/run.yaml"}).code,
      74);
}

}  // namespace
}  // namespace plimsoll::cli
