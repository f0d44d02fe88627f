// A run that was interrupted goes on with the bits of one that was not; what is not the same run is refused;
// damage is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <thread>

#include "io/checksum.h"
#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kLlama =
    "{model_type: llama, vocab_size: 259, hidden_size: 24, intermediate_size: 36, num_hidden_layers: 2, "
    "num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, max_position_embeddings: 400, "
    "rms_norm_eps: "
    "1.0e-5, tie_word_embeddings: true, attention_bias: true}";
constexpr const char* kGpt2 =
    "{model_type: gpt2, vocab_size: 259, n_embd: 24, n_layer: 2, n_head: 2, n_positions: 400, resid_pdrop: "
    "0, "
    "embd_pdrop: 0, attn_pdrop: 0}";

/// Ten steps of four sequences over less than an epoch's worth, saved every three.
std::string run_text(const std::string& model = kLlama) {
  return "model: {config: " + model +
         ", init: random}\ndata: {train: train.txt, eval: eval.txt, sequence_length: 270}\n"
         "output: {dir: out, save_steps: 3}\n"
         "training: {global_batch_size: 4, max_steps: 10, learning_rate: 1.0e-3, lr_scheduler: linear, "
         "warmup_steps: 2, eval_steps: 4}\n";
}

void prepare_ten_steps(const Folder& folder, const std::string& model = kLlama) {
  folder.write("train.txt", some_text(8'000));
  folder.write("eval.txt", some_text(900));
  folder.write("run.yaml", run_text(model));
}

/// What each step and evaluation said, without its times, by "event step".
std::map<std::string, std::string> events_by_step(const Outcome& outcome) {
  std::map<std::string, std::string> result;
  for (size_t begin = 0, end; (end = outcome.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = outcome.out.substr(begin, end - begin);
    if (line.starts_with("{\"event\": \"step\"") || line.starts_with("{\"event\": \"eval\""))
      result[line.substr(0, line.find(", \"loss\""))] = line.substr(0, line.find(", \"step_seconds\""));
  }
  return result;
}

struct Reference {
  std::map<std::string, std::string> said;
  std::string model;
};

Reference undisturbed(const std::string& model = kLlama, const std::string& overrides = "") {
  const Folder folder;
  prepare_ten_steps(folder, model);
  const Outcome outcome =
      folder.run("train run.yaml --json runtime.threads=1 output.save_steps=0 " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-10")));
  return {events_by_step(outcome), folder.read("out/final/model.safetensors")};
}

const Reference& reference() {
  static const Reference result = undisturbed();
  return result;
}

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

/// A finished run, for tests that look at its folder.
class Finished : public testing::Test {
 protected:
  Finished() {
    prepare_ten_steps(folder_);
    const Outcome outcome = folder_.run("train run.yaml --json runtime.threads=1 output.save_total_limit=2");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    out_ = outcome.out;
  }
  [[nodiscard]] bool exists(const std::string& name) const {
    return std::filesystem::exists(folder_.path("out/" + name));
  }
  [[nodiscard]] Outcome again(const std::string& overrides = "") const {
    return folder_.run("train run.yaml --json runtime.threads=1 output.save_total_limit=2 " + overrides);
  }
  Folder folder_;
  std::string out_;
};

TEST_F(Finished, KeepsTheLastCheckpointsAndTellsOfEach) {
  EXPECT_TRUE(exists("checkpoint-10") && exists("checkpoint-9"));
  EXPECT_FALSE(exists("checkpoint-3") || exists("checkpoint-6"));
  for (const char* step : {"3", "6", "9", "10"})
    EXPECT_THAT(out_,
                HasSubstr("\"step\": " + std::string(step) + ", \"path\": \"out/checkpoint-" + step + "\""));
#ifndef __SANITIZE_ADDRESS__  // the sanitizer's own mappings count, made while a checkpoint is written beside
                              // a step
  EXPECT_THAT(out_, HasSubstr("\"allocations_after_first_step\": 0"));
#endif
}

TEST_F(Finished, IsACompleteModelDirectoryEachTime) {
  EXPECT_EQ(folder_.read("out/checkpoint-10/model.safetensors"), folder_.read("out/final/model.safetensors"));
  EXPECT_EQ(folder_.read("out/checkpoint-10/config.json"), folder_.read("out/final/config.json"));
  const Tensors state = read_tensors(folder_.read("out/checkpoint-10/optimizer.safetensors"));
  for (const auto& [name, tensor] : read_tensors(folder_.read("out/final/model.safetensors")))
    for (const char* prefix : {"adamw.m.", "adamw.v."}) {
      ASSERT_TRUE(state.contains(prefix + name)) << prefix + name;
      EXPECT_EQ(state.at(prefix + name).shape, tensor.shape);
    }
}

TEST_F(Finished, LeavesWithNothingToDo) {
  const auto time = std::filesystem::last_write_time(folder_.path("out/final/model.safetensors"));
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(events_by_step(outcome).empty());
  EXPECT_THAT(outcome.err, HasSubstr("nothing is left to do"));
  EXPECT_EQ(std::filesystem::last_write_time(folder_.path("out/final/model.safetensors")), time);
}

TEST_F(Finished, MakesAFinalFolderThatIsDamagedWholeAgain) {
  const std::string model = folder_.read("out/final/model.safetensors");
  folder_.write("out/final/model.safetensors", model.substr(0, 1000) + "x" + model.substr(1001));
  EXPECT_EQ(again().exit_code, 0);
  EXPECT_TRUE(folder_.read("out/final/model.safetensors") == model);
  std::filesystem::remove_all(folder_.path("out/final"));
  EXPECT_EQ(again().exit_code, 0);
  EXPECT_TRUE(folder_.read("out/final/model.safetensors") == model);
}

TEST_F(Finished, GoesOnWhereTheStepsGrow) {
  const Outcome outcome = again("training.max_steps=12");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(events_by_step(outcome).size(), 3U);  // steps 11 and 12, and the evaluation at the end
  EXPECT_TRUE(exists("checkpoint-12") && exists("checkpoint-10"));
}

TEST_F(Finished, RefusesAnotherRun) {
  struct Change {
    const char* override;
    const char* says;
  };
  for (const Change& c :
       {Change{"training.learning_rate=2.0e-3",
               "training.learning_rate is 0.002, but the checkpoint was made with 0.001"},
        Change{"training.seed=7", "training.seed is 7, but the checkpoint was made with 42"},
        Change{"training.max_steps=9", "training.max_steps is 9 steps"},
        Change{"data.train=eval.txt", "data.train is 900 tokens"},
        Change{"model.config.rms_norm_eps=1.0e-6", "the model's rms_norm_eps is 1e-06"},
        Change{"training.optimizer=sgd", "training.optimizer is sgd"}}) {
    const Outcome outcome = again(c.override);
    EXPECT_EQ(outcome.exit_code, 2) << c.override << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.says));
    EXPECT_THAT(outcome.err, HasSubstr("hint: "));
    EXPECT_TRUE(exists("checkpoint-10") && exists("final"));
  }
  std::string text = folder_.read("train.txt");
  std::swap(text[0], text[1]);
  folder_.write("train.txt", text);
  const Outcome other_data = again("training.max_steps=12");
  EXPECT_EQ(other_data.exit_code, 2);
  EXPECT_THAT(other_data.err, HasSubstr("data.train"));
}

TEST_F(Finished, NoticesALetterAnywhereInTheData) {
  std::string text = folder_.read("train.txt");
  const auto time = std::filesystem::last_write_time(folder_.path("train.txt"));
  text[2 * 270 + 10] ^= 1;  // of a sequence that no sample of sixteen holds
  folder_.write("train.txt", text);
  std::filesystem::last_write_time(folder_.path("train.txt"), time);
  const Outcome outcome = again("training.max_steps=12");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("data.train is data with the checksum"));
}

TEST_F(Finished, GoesOnWhereFilesHaveMovedAndEvaluationIsOfOtherData) {
  std::filesystem::create_directory(folder_.path("data"));
  std::filesystem::rename(folder_.path("train.txt"), folder_.path("data/moved.txt"));
  folder_.write("other.txt", some_text(700));
  const Outcome outcome = again("training.max_steps=12 data.train=data/moved.txt data.eval=other.txt");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("resuming after step 10"));
}

TEST_F(Finished, ItsRunFilesWorkFromAnywhereAndInAMovedFolder) {
  const Folder offloaded;
  std::filesystem::rename(folder_.path(), offloaded.path("moved"));
  const Folder far_away;
  const std::string out = offloaded.path("moved/out");
  const Outcome saved = far_away.run("train " + out + "/run.yaml training.max_steps=11 runtime.threads=1");
  EXPECT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_THAT(saved.err, HasSubstr("resuming after step 10 from " + out + "/checkpoint-10"));
  const Outcome of_checkpoint =
      far_away.run("train " + out + "/checkpoint-11/run.yaml training.max_steps=12");
  EXPECT_EQ(of_checkpoint.exit_code, 0) << of_checkpoint.err;
  EXPECT_THAT(of_checkpoint.err, HasSubstr("resuming after step 11 from " + out + "/checkpoint-11"));
  EXPECT_EQ(far_away.run("train " + out + "/run.yaml paths=run_file").exit_code, 2);
  std::filesystem::rename(offloaded.path("moved"), folder_.path());
}

TEST_F(Finished, GoesOnWithAnotherRateWhereAskedTo) {
  const Outcome outcome = again(
      "training.max_steps=11 --resume-with training.learning_rate=2.0e-3 --resume-with "
      "lr_scheduler=constant");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"learning_rate\": 0.002"));
  EXPECT_THAT(outcome.err, HasSubstr("after step 10: training.learning_rate is 0.002, it was 0.001"));
  EXPECT_THAT(folder_.read("out/final/README.md"), HasSubstr("step 10: training.lr_scheduler is constant"));
  EXPECT_THAT(folder_.read("out/checkpoint-11/checkpoint.json"),
              HasSubstr("step 10: training.learning_rate"));

  const Outcome forgotten = again("training.max_steps=12");
  EXPECT_EQ(forgotten.exit_code, 2);
  EXPECT_THAT(forgotten.err, HasSubstr("--resume-with training.learning_rate="));
  const Outcome refused = again("--resume-with training.seed=1");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--resume-with takes the learning rate and its schedule, not training.seed"));
}

TEST_F(Finished, StartsAnewWhereAskedTo) {
  const Outcome outcome = again("--resume never training.max_steps=4");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(events_by_step(outcome).begin()->first, "{\"event\": \"eval\", \"step\": 4");
  EXPECT_THAT(outcome.err, HasSubstr("will be removed"));
  EXPECT_FALSE(exists("checkpoint-10") || exists("checkpoint-9"));
  EXPECT_TRUE(exists("checkpoint-4") && exists("checkpoint-3"));
}

TEST_F(Finished, GoesOnFromTheFolderThatIsNamed) {
  const Outcome outcome = again("--resume out/checkpoint-9");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(events_by_step(outcome).size(), 2U);  // step 10 and its evaluation
  EXPECT_TRUE(folder_.read("out/final/model.safetensors") == reference().model);
  const Outcome offloaded = again("--resume out/checkpoint-9 output.dir=other");
  EXPECT_EQ(offloaded.exit_code, 0) << offloaded.err;
  EXPECT_TRUE(folder_.read("other/final/model.safetensors") == reference().model);
  EXPECT_EQ(again("--resume nowhere").exit_code, 65);
}

TEST_F(Finished, PassesADamagedCheckpointOver) {
  const std::string model = folder_.read("out/checkpoint-10/optimizer.safetensors");
  folder_.write("out/checkpoint-10/optimizer.safetensors", model.substr(0, model.size() - 1) + "x");
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint-10/optimizer.safetensors"));
  EXPECT_THAT(outcome.err, HasSubstr("resuming after step 9"));
  EXPECT_TRUE(folder_.read("out/final/model.safetensors") == reference().model);
  EXPECT_TRUE(folder_.read("out/checkpoint-10/optimizer.safetensors") == model);  // and it is whole again
}

TEST_F(Finished, LeavesACheckpointOfAnotherVersionAlone) {
  std::string text = folder_.read("out/checkpoint-10/checkpoint.json");
  text.replace(text.find("\"version\": 3"), 12, "\"version\": 5");
  const size_t digits = text.size() - 19;
  text.replace(digits, 16, io::checksum_text(io::checksum(std::string_view(text).substr(0, digits))));
  folder_.write("out/checkpoint-10/checkpoint.json", text);
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("written in version 5"));
  EXPECT_TRUE(folder_.read("out/checkpoint-10/checkpoint.json") == text);
  EXPECT_EQ(again("--resume never").exit_code, 0);
}

TEST_F(Finished, SaysWhereAllAreDamaged) {
  for (const char* name : {"out/checkpoint-9/checkpoint.json", "out/checkpoint-10/checkpoint.json"})
    folder_.write(name, "{}");
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 65);
  EXPECT_THAT(outcome.err, HasSubstr("every checkpoint is damaged"));
  EXPECT_THAT(outcome.err, HasSubstr("--resume never"));
  const Outcome named = again("--resume out/checkpoint-10");
  EXPECT_EQ(named.exit_code, 65);
}

/// What the operating system refuses to open, for root too.
void make_unreadable(const std::string& path) {
  std::filesystem::remove(path);
  std::filesystem::create_symlink(std::filesystem::path(path).filename(), path);  // a loop: ELOOP
}

TEST_F(Finished, PassesOverWhatCannotBeRead) {
  make_unreadable(folder_.path("out/checkpoint-10/checkpoint.json"));
  const Outcome named = again("--resume out/checkpoint-10");
  EXPECT_EQ(named.exit_code, 74) << named.err;
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("skipped, because it cannot be read"));
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint-10/checkpoint.json"));
  EXPECT_THAT(outcome.err, HasSubstr("resuming after step 9"));
  EXPECT_TRUE(folder_.read("out/final/model.safetensors") == reference().model);
}

TEST_F(Finished, GivesTheNamesBackThatAKilledReplacementHid) {
  for (const char* step : {"9", "10"})
    std::filesystem::rename(folder_.path(std::string("out/checkpoint-") + step),
                            folder_.path(std::string("out/.checkpoint-") + step + ".old"));
  std::filesystem::create_directories(folder_.path("out/.checkpoint-3.tmp"));
  const Outcome outcome = again();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("resuming after step 10"));
  EXPECT_TRUE(exists("checkpoint-9") && exists("checkpoint-10"));
  EXPECT_FALSE(exists(".checkpoint-3.tmp"));
}

TEST_F(Finished, RefusesAFolderOfAnotherProgramInTheWayAtOnce) {
  std::filesystem::create_directories(folder_.path("out/checkpoint-12"));
  folder_.write("out/checkpoint-12/pytorch_model.bin", "theirs");
  const Outcome refused = again("training.max_steps=20");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("out/checkpoint-12"));
  EXPECT_THAT(refused.err, HasSubstr("hint: choose another output.dir"));
  EXPECT_EQ(again("training.max_steps=13").exit_code, 2);
  EXPECT_EQ(again("training.max_steps=13 output.save_steps=5").exit_code, 0);
  EXPECT_EQ(folder_.read("out/checkpoint-12/pytorch_model.bin"), "theirs");
}

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

TEST_F(Finished, LeavesFoldersOfOtherProgramsAlone) {
  std::filesystem::create_directories(folder_.path("out/checkpoint-500"));
  folder_.write("out/checkpoint-500/pytorch_model.bin", "theirs");
  const Outcome outcome = again("training.max_steps=12");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder_.read("out/checkpoint-500/pytorch_model.bin"), "theirs");
}

TEST_F(Finished, KeepsASecondRunOut) {
  const int lock = ::open(folder_.path("out/.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const Outcome outcome = again("training.max_steps=12");
  ::close(lock);
  EXPECT_EQ(outcome.exit_code, 74);
  EXPECT_THAT(outcome.err, HasSubstr("another run"));
}

TEST_F(Finished, ClearsAwayWhatKilledRunsLeft) {
  for (const char* name : {".checkpoint-11.tmp", ".checkpoint-3.old", ".final.tmp"}) {
    std::filesystem::create_directories(folder_.path("out/" + std::string(name)));
    folder_.write("out/" + std::string(name) + "/model.safetensors", "half");
  }
  EXPECT_EQ(again().exit_code, 0);
  EXPECT_FALSE(exists(".checkpoint-11.tmp") || exists(".checkpoint-3.old") || exists(".final.tmp"));
}

/// The program as a child process that can be sent signals.
class Child {
 public:
  Child(const Folder& folder, const std::string& overrides) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    const std::string command = "cd '" + folder.path() + "' && exec '" PLIMSOLL_BINARY "' " +
                                on_device("train run.yaml --json " + overrides) +
                                " >out.txt 2>err.txt </dev/null";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  ~Child() {  // a test that has failed leaves nothing that runs
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void send(int signal) const { ::kill(pid_, signal); }
  /// The exit code, or 128 + the signal's number.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

bool wait_for(const Folder& folder, const std::string& text, const std::string& file = "out.txt") {
  for (int i = 0; i < 10'000; ++i) {  // a minute, on a machine that does other things
    if (folder.read(file).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

TEST(Signals, SaveAndLeaveWith75) {
  ::signal(SIGHUP, SIG_DFL);  // these tests may themselves be run under nohup, which is inherited
  for (const auto& [signal, name] : {std::pair(SIGTERM, "SIGTERM"), std::pair(SIGINT, "SIGINT"),
                                     std::pair(SIGHUP, "SIGHUP"), std::pair(SIGUSR1, "SIGUSR1")}) {
    const Folder folder;
    prepare_ten_steps(folder);
    Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
    ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
    child.send(signal);
    EXPECT_EQ(child.wait(), 75);
    const std::string err = folder.read("err.txt");
    EXPECT_THAT(err, HasSubstr(std::string("error: stopped by ") + name + " after step "));
    EXPECT_THAT(err, HasSubstr("hint: run the same command again"));
    EXPECT_THAT(folder.read("out.txt"), HasSubstr("{\"event\": \"checkpoint\""));
    EXPECT_THAT(folder.read("out.txt"), Not(HasSubstr("summary")));
    EXPECT_FALSE(std::filesystem::exists(folder.path("out/final")));
    const size_t at = err.find("saved in ") + 9;
    EXPECT_TRUE(std::filesystem::exists(folder.path(err.substr(at, err.find('\n', at) - at)))) << err;
  }
}

TEST(Signals, EndAnEvaluationWhichIsMadeUpFor) {
  const Folder folder;
  prepare_ten_steps(folder);
  folder.write("eval.txt", some_text(1'000'000));  // longer than it takes to look whether step 4 is done
  const std::string overrides = "runtime.threads=1 training.max_steps=4 output.save_steps=0";
  Child child(folder, overrides);
  ASSERT_TRUE(wait_for(folder, "\"step\": 4,")) << folder.read("err.txt");
  child.send(SIGTERM);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("out.txt"), Not(HasSubstr("\"event\": \"eval\"")));
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("saved in out/checkpoint-4"));
  // Where the named checkpoint is all there is, auto would not find it.
  Child elsewhere(folder, overrides + " output.dir=other --resume out/checkpoint-4");
  ASSERT_TRUE(wait_for(folder, "resuming after", "err.txt")) << folder.read("err.txt");
  elsewhere.send(SIGTERM);
  EXPECT_EQ(elsewhere.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("saved in out/checkpoint-4"));
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("hint: run the same command again to resume"));
  folder.write("eval.txt",
               some_text(1'000'000).substr(0, 900));  // a shorter wait; its content is not compared
  const Outcome outcome = folder.run("train run.yaml --json " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(events_by_step(outcome).size(), 1U);
  EXPECT_EQ(events_by_step(outcome).begin()->first, "{\"event\": \"eval\", \"step\": 4");
}

TEST(Signals, ASecondOneLeavesAtOnceWithoutSaving) {
  const Folder folder;
  prepare_ten_steps(folder);
  // Long steps, so that the second signal comes before the end of one.
  Child child(folder,
              "runtime.threads=1 training.global_batch_size=512 training.max_steps=100000 "
              "output.save_total_limit=1");
  ASSERT_TRUE(wait_for(folder, "\"event\": \"plan\""));
  child.send(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.send(SIGINT);
  const int code = child.wait();
  // SIGTERM last: where both wait, the system delivers the lower number first. 75: stopped before the first
  // step, in between.
  EXPECT_TRUE(code == 128 + SIGINT || code == 128 + SIGTERM || code == 75) << code << folder.read("err.txt");
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-1")));
}

TEST(Signals, AHangupThatComesTwiceAtOnceIsOne) {
  ::signal(SIGHUP, SIG_DFL);
  const Folder folder;
  prepare_ten_steps(folder);
  Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
  ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
  child.send(SIGHUP);
  child.send(SIGHUP);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("stopped by SIGHUP after step"));
}

TEST(Signals, NohupMeansGoingOn) {
  const Folder folder;
  prepare_ten_steps(folder);
  ::signal(SIGHUP, SIG_IGN);  // inherited by what is started
  Child child(folder, "runtime.threads=1 training.max_steps=100000 output.save_steps=0");
  ::signal(SIGHUP, SIG_DFL);
  ASSERT_TRUE(wait_for(folder, "\"step\": 3,")) << folder.read("err.txt");
  child.send(SIGHUP);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.send(SIGUSR1);
  EXPECT_EQ(child.wait(), 75);
  EXPECT_THAT(folder.read("err.txt"), HasSubstr("stopped by SIGUSR1 after step"));
}

TEST(Signals, AKilledRunGoesOnFromItsLastCheckpoint) {
  const Folder folder;
  prepare_ten_steps(folder);
  Child child(folder, "runtime.threads=1");
  ASSERT_TRUE(wait_for(folder, "\"step\": 8,"));
  child.send(SIGKILL);
  EXPECT_EQ(child.wait(), 128 + SIGKILL);
  const Outcome outcome = folder.run("train run.yaml --json runtime.threads=2 training.micro_batch_size=2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(folder.read("out/final/model.safetensors") == reference().model);
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
