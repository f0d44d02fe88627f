// What goes wrong ends with the right code, says what, where and what to do, and leaves nothing half-written.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "program.h"

namespace plimsoll::e2e {
namespace {

constexpr const char* kTwoSteps = "training: {global_batch_size: 2, max_steps: 2, learning_rate: 1.0e-3}\n";

void prepare_two_steps(const Folder& folder) {
  folder.write("train.txt", some_text(5'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file() + kTwoSteps);
}

/// A .npy of `elements` elements of 4 bytes, each byte `fill`.
std::string npy_of(const std::string& descr, int elements, char fill) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\1\0", 8) + std::string("\x76\0", 2) + header + "\n" +
         std::string(static_cast<size_t>(elements) * 4, fill);
}

struct Case {
  const char* arguments;
  int exit_code;
  const char* says;  // somewhere on stderr
};

class Errors : public testing::TestWithParam<Case> {};

TEST_P(Errors, EndWithTheirCode) {
  Folder folder;
  prepare_two_steps(folder);
  folder.write("empty.txt", "");
  folder.write("pickle.npy", "\x80\x02]q");
  folder.write("deep.yaml", std::string(100'000, '['));
  folder.write("broken.yaml", "model: {preset: [\n");
  folder.write("config.json", "{\"model_type\": \"llama\", \"vocab_size\": 259, \"hidden_size\": -3}");
  folder.write("deep.json", std::string(100'000, '['));
  folder.write("nan.json", "{\"model_type\": \"llama\",\n \"vocab_size\": NaN}");
  folder.write("twice.yaml", "model: {preset: gpt2}\nmodel: {preset: gpt2}\n");
  folder.write("tab.yaml", "model:\n\tpreset: gpt2\n");
  folder.write("escape.yaml", "\x1b[31mmodel: 3\n");
  folder.write("short.txt", "too short");
  folder.write("negative.csv", "id,lower,upper,size\na,0,1,-1\n");
  folder.write("floats.npy", npy_of("<f4", 600, '\0'));
  folder.write("negative.npy", npy_of("<i4", 600, '\xff'));
  folder.write("cut.npy", npy_of("<i4", 600, '\0').substr(0, 1000));
  std::filesystem::create_directory(folder.path("folder"));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder.path("pipe.npy"));
  std::filesystem::create_symlink("/dev/zero", folder.path("zero.txt"));
  const Case& c = GetParam();
  const Outcome outcome = folder.run(c.arguments);
  EXPECT_EQ(outcome.exit_code, c.exit_code) << outcome.err;
  EXPECT_NE(outcome.err.find(c.says), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("bug:"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << outcome.err;
  // The last two lines say what, where and what to do.
  const size_t error = outcome.err.find("error: "), hint = outcome.err.find("\nhint: ");
  ASSERT_NE(hint, std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin() + static_cast<std::ptrdiff_t>(error), outcome.err.end(), '\n'), 2)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, Errors,
    testing::Values(Case{"", 2, "no command"}, Case{"tarin run.yaml", 2, "did you mean train?"},
                    Case{"bench ofsets x.csv", 2, "did you mean offsets?"},
                    Case{"train", 2, "the run file is missing"}, Case{"train run.yaml --jsn", 2, "--jsn"},
                    Case{"train folder", 2, "folder"}, Case{"train pipe", 2, "pipe"},
                    Case{"train twice.yaml", 2, "stands twice"},
                    Case{"train tab.yaml", 2, "blanks, not tabs"}, Case{"plan escape.yaml", 2, "\\x1b"},
                    Case{"train run.yaml model.overrides={num_hidden_layers:4}", 2, "num_hidden_layers: 4"},
                    Case{"train run.yaml lora={r:8}", 2, "r: 8"},
                    Case{"train run.yaml memory.budget=%", 2, "a share such as"},
                    Case{"train run.yaml data.train=[", 2, "bracket"},
                    Case{"train run.yaml output.dir=true", 2, "output.dir"},
                    Case{"plan run.yaml runtime.threads=0", 2, "runtime.threads"},
                    Case{"plan run.yaml runtime.threads=1000000000", 2, "runtime.threads"},
                    Case{"plan run.yaml training.learning_rate=.nan", 2, "learning_rate"},
                    Case{"plan run.yaml training.seed=18446744073709551616", 2, "seed"},
                    Case{"plan run.yaml data.sequence_length=1", 2, "sequence_length"},
                    Case{"train run.yaml training.freeze=model.layer.*", 2, "no parameter matches"},
                    Case{"train run.yaml training.freeze=lm_head.weight", 2, "tied to model.embed_tokens"},
                    Case{"plan run.yaml training.freeze=*", 2, "nothing is left to train"},
                    Case{"plan run.yaml training.unfreeze=[x]", 2, "training.unfreeze: no parameter"},
                    Case{"plan run.yaml 'training.param_groups=[{params: x}]'", 2, "param_groups[0]: no"},
                    Case{"plan run.yaml 'training.param_groups=[{params: x, lr: 1}]'", 2, "no 'lr'"},
                    Case{"train missing.yaml", 2, "missing.yaml"},
                    Case{"train broken.yaml", 2, "broken.yaml"}, Case{"train deep.yaml", 2, "deep.yaml"},
                    Case{"train run.yaml trainin.max_steps=3", 2, "training"},
                    Case{"train run.yaml training.learning_rat=3", 2, "learning_rate"},
                    Case{"train run.yaml training.max_steps=-2", 2, "max_steps"},
                    Case{"train run.yaml training.max_steps=many", 2, "max_steps"},
                    Case{"train run.yaml training.micro_batch_size=3 training.global_batch_size=8", 2,
                         "micro_batch_size"},
                    Case{"train run.yaml training.precision=bf17", 2, "bf16"},
                    Case{"train run.yaml training.precision_overrides.lm_head=bf17", 2, "bf16"},
                    Case{"train run.yaml training.precision_overrides.lm_haed=bf16", 2, "lm_head"},
                    Case{"train run.yaml training.residual_in_fp32=false", 2, "training.precision=bf16"},
                    Case{"train run.yaml model.preset=lama-2-7b", 2, "preset"},
                    Case{"train run.yaml data.sequence_length=401", 2, "sequence_length"}));
INSTANTIATE_TEST_SUITE_P(
    Files, Errors,
    testing::Values(Case{"train run.yaml data.train=missing.txt", 65, "missing.txt"},
                    Case{"train run.yaml data.train=empty.txt", 65, "empty.txt"},
                    Case{"train run.yaml data.train=pickle.npy", 65, "pickle.npy"},
                    Case{"train run.yaml data.train=short.txt", 65, "9 tokens"},
                    Case{"train run.yaml data.train=floats.npy", 65, "<f4"},
                    Case{"train run.yaml data.train=negative.npy", 65, "id -1"},
                    Case{"train run.yaml data.eval=cut.npy", 65, "cut.npy"},
                    Case{"train run.yaml data.train=pipe.npy", 65, "pipe"},
                    Case{"train run.yaml data.train=zero.txt", 65, "zero.txt"},
                    Case{"train run.yaml data.train=*.parquet", 65, "*.parquet"},
                    Case{"bench offsets negative.csv", 65, "line 2, column size"},
                    Case{"bench offsets zero.txt", 65, "zero.txt"}, Case{"bench offsets pipe", 65, "pipe"},
                    Case{"plan run.yaml model.config=null model.path=nan.json", 65, "line 2, column 16"},
                    Case{"plan run.yaml model.config=null model.path=nobody/nothing", 65, "hf download"},
                    Case{"plan run.yaml model.config.num_hidden_layers=1000000", 65, "num_hidden_layers"},
                    Case{"train run.yaml model.config.vocab_size=100", 65, "vocab"},
                    Case{"plan run.yaml model.config=null model.path=config.json", 65, "hidden_size"},
                    Case{"plan run.yaml model.config=null model.path=deep.json", 65, "deep.json"},
                    Case{"train run.yaml model.config.hidden_act=gelu", 65, "hidden_act"},
                    Case{"train run.yaml output.dir=/proc/nowhere", 74, "/proc/nowhere"},
                    Case{"train run.yaml output.dir=train.txt", 74, "move it away"},
                    Case{"train run.yaml debug.dump_dir=train.txt/dump", 74, "train.txt"}));
/// What else is wrong with these would be found later: each looks first whether it can write what it is for.
INSTANTIATE_TEST_SUITE_P(
    Outputs, Errors,
    testing::Values(
        Case{"calibrate --disk nowhere --output none/p.json", 74, "none/p.json"},
        Case{"report nowhere --output none/page.html", 74, "none/page.html"},
        Case{"plan missing.yaml --snapshot none/memory.pickle", 74, "none/memory.pickle"},
        Case{"plan missing.yaml --frontier --svg none/frontier.svg", 74, "none/frontier.svg"},
        Case{"init --model gpt2 --data missing.txt --output none/run.yaml", 74, "none/run.yaml"},
        Case{"data pack --input nowhere --output none/a.pack", 74, "none/a.pack"},
        Case{"train run.yaml data.train=missing.txt output.dir=/proc/nowhere", 74, "/proc/nowhere"},
        Case{"train run.yaml data.train=missing.txt debug.dump_dir=train.txt/dump", 74, "train.txt"}));
INSTANTIATE_TEST_SUITE_P(
    Budget, Errors,
    testing::Values(
        Case{"train run.yaml memory.budget=1MiB", 69, "memory.budget must be at least"},
        Case{"plan run.yaml memory.budget=1MiB", 69, "memory.budget must be at least"},
        Case{"plan run.yaml memory.device_budget=1MiB", 69, "memory.device_budget must be at least"},
        Case{"plan run.yaml memory.host_budget=1KiB", 69, "memory.host_budget must be at least"}));
INSTANTIATE_TEST_SUITE_P(
    Divergence, Errors,
    testing::Values(Case{
        "train run.yaml training.learning_rate=1e6 training.lr_scheduler=constant training.max_steps=20 "
        "training.max_grad_norm=null",
        76, "step"}));

TEST(ErrorsTest, StdoutHoldsThePlanAndNothingAfterAnError) {
  Folder folder;
  prepare_two_steps(folder);
  const Outcome outcome = folder.run("plan run.yaml --json memory.budget=1MiB");
  EXPECT_NE(outcome.out.find("\"fits\": false"), std::string::npos);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
}

/// In front of a command: its standard streams as `redirections` say.
std::string with(const std::string& redirections) { return "sh -c '\"$0\" \"$@\" " + redirections + "'"; }

TEST(ErrorsTest, ResultsThatDoNotArriveAreAFailure) {
  Folder folder;
  prepare_two_steps(folder);
  for (const char* command : {"plan run.yaml", "plan run.yaml --json", "train --help", "--version"})
    for (const char* redirections : {">/dev/full", ">&-"}) {
      const Outcome outcome = folder.run(command, with(redirections));
      EXPECT_EQ(outcome.exit_code, 74) << command << redirections;
      EXPECT_NE(outcome.err.find("could not be written"), std::string::npos) << outcome.err;
    }
}

TEST(ErrorsTest, ClosedStandardDescriptorsDoNotReachTheModel) {
  Folder folder;
  prepare_two_steps(folder);
  const Outcome outcome = folder.run("train run.yaml --json", with("<&- >&- 2>&-"));
  EXPECT_EQ(outcome.exit_code, 74);  // the events went nowhere, the model is whole
  const std::string model = folder.read("out/final/model.safetensors");
  EXPECT_EQ(model.substr(8, 1), "{");
  EXPECT_EQ(model.find("\"event\""), std::string::npos);
}

TEST(ErrorsTest, AKilledRunLeavesNoTemporaryFiles) {
  Folder folder;
  prepare_two_steps(folder);
  const std::string command = "train run.yaml training.max_steps=1000000 debug.dump_dir=dump";
  // Killed among its dumps, however slow the machine is to the first one.
  Outcome outcome;
  for (const char* seconds : {"0.5", "2", "8", "32"}) {
    outcome = folder.run(command, std::string("timeout -s KILL ") + seconds);
    EXPECT_EQ(outcome.exit_code, 137);
    if (std::filesystem::exists(folder.path("dump/step-000001.safetensors"))) break;
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path("dump/step-000001.safetensors"))) << outcome.err;
  int temporary = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    temporary += entry.path().string().find(".tmp-") != std::string::npos ? 1 : 0;
  EXPECT_LE(temporary, 1);  // one may be between its two names
}

TEST(ErrorsTest, ASettingWithoutEffectIsSaid) {
  Folder folder;
  prepare_two_steps(folder);
  const Outcome outcome = folder.run("train run.yaml training.momentum=0.9");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("note: training.momentum"), std::string::npos) << outcome.err;
}

TEST(ErrorsTest, AnUnknownInstructionSetIsNamed) {
  Folder folder;
  const Outcome outcome = folder.run("doctor", "PLIMSOLL_ISA=sse9");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("sse9"), std::string::npos);
}

TEST(NotesTest, NameWhatTheProcessorHasNoInstructionsFor) {
  const Folder folder;
  folder.write("run.yaml", run_file());
  const Outcome plan = folder.run("plan run.yaml training.precision=bf16", "PLIMSOLL_ISA=avx2");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_NE(plan.err.find("neither AVX512_BF16 nor AMX"), std::string::npos) << plan.err;
  for (const char* file : {"train.txt", "eval.txt"}) {
    EXPECT_NE(plan.err.find(std::string("there is no such file: ") + file), std::string::npos) << plan.err;
    folder.write(file, "text");
  }
  EXPECT_EQ(folder.run("plan run.yaml", "PLIMSOLL_ISA=avx2").err, "");
}

TEST(ErrorsTogether, EachHasItsPlaceAndItsHint) {
  Folder folder;
  prepare_two_steps(folder);
  folder.write("bad.yaml", "modle: {preset: gpt2}\ntraining: {seed: -1}\nwandb_watch: all\n");
  const Outcome outcome = folder.run("plan bad.yaml memory.budgett=1GiB");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err,
            "error: there is no setting 'modle': bad.yaml line 1\nhint: did you mean model?\n"
            "error: there is no setting 'wandb_watch': bad.yaml line 3\n"
            "hint: plimsoll train --help lists the settings\n"
            "error: training.seed is -1, expected an integer from 0 to 9007199254740992: bad.yaml line 2\n"
            "hint: training.seed: seed of initial weights, data order and every random op\n"
            "error: there is no setting 'memory.budgett': override memory.budgett=1GiB\n"
            "hint: did you mean memory.budget?\n");
}

/// A model's folder from a run of `folder`, which is prepared.
void make_model(const Folder& folder) {
  ASSERT_EQ(folder.run("train run.yaml").exit_code, 0) << folder.read("err.txt");
  std::filesystem::rename(folder.path("out/final"), folder.path("model"));
  folder.write(
      "tuned.yaml",
      "model: {path: model}\ndata: {train: train.txt, sequence_length: 300}\noutput: {dir: tuned}\n" +
          std::string(kTwoSteps));
}

TEST(ErrorsTest, WeightsThatAreNotFiniteAreBlamedThemselves) {
  const Folder folder;
  prepare_two_steps(folder);
  make_model(folder);
  std::string weights = folder.read("model/model.safetensors");
  weights.replace(weights.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));  // a NaN in the last tensor
  folder.write("model/model.safetensors", weights);
  for (const char* command : {"train tuned.yaml", "eval tuned.yaml data.eval=eval.txt"}) {
    const Outcome outcome = folder.run(command);
    EXPECT_EQ(outcome.exit_code, 65) << outcome.err;
    EXPECT_NE(outcome.err.find("the weights that were loaded hold NaN"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("learning_rate"), std::string::npos) << outcome.err;
  }
}

TEST(ErrorsTest, WeightsAreLookedAtBeforeTheData) {
  const Folder folder;
  prepare_two_steps(folder);
  make_model(folder);
  const std::string weights = folder.read("model/model.safetensors");
  folder.write("model/model.safetensors", weights.substr(0, weights.size() / 2));
  const std::string run = "train tuned.yaml data.train=none.txt";
  EXPECT_NE(folder.run(run).err.find("model.safetensors"), std::string::npos) << folder.read("err.txt");
  folder.write("model/model.safetensors", weights);
  EXPECT_NE(folder.run(run).err.find("none.txt"), std::string::npos) << folder.read("err.txt");
  // What goes on from a checkpoint needs no weights of the model's.
  ASSERT_EQ(folder.run("train tuned.yaml output.save_steps=1").exit_code, 0) << folder.read("err.txt");
  std::filesystem::remove(folder.path("model/model.safetensors"));
  EXPECT_EQ(folder.run("train tuned.yaml training.max_steps=3").exit_code, 0) << folder.read("err.txt");
}

}  // namespace
}  // namespace plimsoll::e2e
