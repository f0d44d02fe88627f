// What goes wrong ends with the right code, says what, where and what to do, and leaves nothing half-written.
#include <gtest/gtest.h>

#include <algorithm>

#include "program.h"

namespace plimsoll::e2e {
namespace {

constexpr const char* kTraining = "training: {global_batch_size: 2, max_steps: 2, learning_rate: 1.0e-3}\n";

void prepare(const Folder& folder) {
  folder.write("train.txt", some_text(5'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file() + kTraining);
}

struct Case {
  const char* arguments;
  int exit_code;
  const char* says;  // somewhere on stderr
};

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, EndWithTheirCode) {
  Folder folder;
  prepare(folder);
  folder.write("empty.txt", "");
  folder.write("pickle.npy", "\x80\x02]q");
  folder.write("deep.yaml", std::string(100'000, '['));
  folder.write("broken.yaml", "model: {preset: [\n");
  folder.write("config.json", "{\"model_type\": \"llama\", \"vocab_size\": 259, \"hidden_size\": -3}");
  folder.write("deep.json", std::string(100'000, '['));
  const Case& c = GetParam();
  const Outcome outcome = folder.run(c.arguments);
  EXPECT_EQ(outcome.exit_code, c.exit_code) << outcome.err;
  EXPECT_NE(outcome.err.find(c.says), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("bug:"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Errors,
    testing::Values(Case{"", 2, "subcommand"}, Case{"tarin run.yaml", 2, "error:"},
                    Case{"train", 2, "run is required"}, Case{"train missing.yaml", 2, "missing.yaml"},
                    Case{"train broken.yaml", 2, "broken.yaml"}, Case{"train deep.yaml", 2, "deep.yaml"},
                    Case{"train run.yaml trainin.max_steps=3", 2, "training"},
                    Case{"train run.yaml training.learning_rat=3", 2, "learning_rate"},
                    Case{"train run.yaml training.max_steps=-1", 2, "max_steps"},
                    Case{"train run.yaml training.max_steps=many", 2, "max_steps"},
                    Case{"train run.yaml training.micro_batch_size=3 training.global_batch_size=8", 2,
                         "micro_batch_size"},
                    Case{"train run.yaml training.precision=bf17", 2, "bf16"},
                    Case{"train run.yaml model.preset=lama-2-7b", 2, "preset"},
                    Case{"train run.yaml data.sequence_length=401", 2, "sequence_length"}));
INSTANTIATE_TEST_SUITE_P(
    Files, Errors,
    testing::Values(Case{"train run.yaml data.train=missing.txt", 65, "missing.txt"},
                    Case{"train run.yaml data.train=empty.txt", 65, "empty.txt"},
                    Case{"train run.yaml data.train=pickle.npy", 65, "pickle.npy"},
                    Case{"train run.yaml model.config.vocab_size=100", 65, "vocab"},
                    Case{"plan run.yaml model.config=null model.path=config.json", 65, "hidden_size"},
                    Case{"plan run.yaml model.config=null model.path=deep.json", 65, "deep.json"},
                    Case{"train run.yaml model.config.hidden_act=gelu", 65, "hidden_act"},
                    Case{"train run.yaml output.dir=/proc/nowhere", 74, "/proc/nowhere"}));
INSTANTIATE_TEST_SUITE_P(
    Budget, Errors,
    testing::Values(Case{"train run.yaml memory.budget=1MiB", 69, "memory.budget must be at least"},
                    Case{"plan run.yaml memory.budget=1MiB", 69, "memory.budget must be at least"}));
INSTANTIATE_TEST_SUITE_P(
    Divergence, Errors,
    testing::Values(Case{
        "train run.yaml training.learning_rate=1e6 training.lr_scheduler=constant training.max_steps=20 "
        "training.max_grad_norm=null",
        76, "step"}));

TEST(ErrorsTest, StdoutHoldsThePlanAndNothingAfterAnError) {
  Folder folder;
  prepare(folder);
  const Outcome outcome = folder.run("plan run.yaml --json memory.budget=1MiB");
  EXPECT_NE(outcome.out.find("\"fits\": false"), std::string::npos);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

TEST(ErrorsTest, AnUnknownInstructionSetIsNamed) {
  Folder folder;
  const Outcome outcome = folder.run("doctor", "PLIMSOLL_ISA=sse9");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("sse9"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::e2e
