// A finished run is not trained again, and no other run replaces its model unasked, where no checkpoint is
// kept: which is the default.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kTrain = "train run.yaml --json ";

void prepare(const Folder& folder) {
  folder.write("train.txt", some_text(6'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 3}\n"));
}

/// Names and contents of all that lies below a folder.
std::map<std::string, std::string> content(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == ".lock") continue;  // the last process
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

/// The folder of a run that is trained once, for all tests.
struct TrainedRun {
  TrainedRun() {
    prepare(folder);
    const Outcome outcome = folder.run(kTrain);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  Folder folder;
};

/// Each test has a copy of it.
class FinishedOnce : public testing::Test {
 protected:
  FinishedOnce() {
    static const TrainedRun run;
    std::filesystem::copy(run.folder.path(), folder_.path(), std::filesystem::copy_options::recursive);
    final_ = content(folder_.path("out/final"));
    EXPECT_GT(final_.size(), 2U);
  }
  /// Ends with `code`, having trained nothing and left final/ as it is.
  Outcome expect_untouched(const std::string& overrides, int code) {
    const auto before = content(folder_.path("out"));
    const Outcome outcome = folder_.run(kTrain + overrides);
    EXPECT_EQ(outcome.exit_code, code) << overrides << outcome.err;
    EXPECT_EQ(events_of(outcome.out), "") << overrides;
    EXPECT_TRUE(content(folder_.path("out/final")) == final_) << overrides;
    if (code == 0) {
      EXPECT_TRUE(content(folder_.path("out")) == before) << overrides;
    }
    return outcome;
  }
  Folder folder_;
  std::map<std::string, std::string> final_;
};

TEST_F(FinishedOnce, IsNotTrainedAgain) {
  const Outcome again = expect_untouched("", 0);
  EXPECT_THAT(again.err, HasSubstr("nothing is left to do: all 3 steps are done and out/final is complete"));
  EXPECT_THAT(again.err, HasSubstr("to train again choose another output.dir, or use --resume never"));
  EXPECT_THAT(again.out, HasSubstr("\"event\": \"summary\", \"steps\": 0"));
  expect_untouched("runtime.threads=1 training.micro_batch_size=1 output.save_steps=2", 0);
  expect_untouched("--snapshot snapshot.pickle", 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("snapshot.pickle")));
}

TEST_F(FinishedOnce, IsNotReplacedByAnotherRun) {
  struct Change {
    const char* overrides;
    const char* says;
  };
  for (const Change& c :
       {Change{"training.learning_rate=1.0e-4",
               "training.learning_rate is 0.0001, but the "
               "finished run in this folder was made with"},
        Change{"training.seed=7", "training.seed is 7"},
        Change{"training.max_steps=2", "training.max_steps is 2 steps"},
        Change{"training.max_steps=4", "no checkpoint is left to resume from"},
        Change{"data.train=eval.txt", "data.train is 700 tokens"},
        Change{"model.config.rms_norm_eps=1.0e-6", "the model's rms_norm_eps is 1e-06"},
        Change{"training.precision=bf16", "training.precision is bf16"},
        Change{"output.dtype=bf16", "output.dtype is bf16"}, Change{"'lora={r: 2}'", "lora"}}) {
    const Outcome outcome = expect_untouched(c.overrides, 2);
    EXPECT_THAT(outcome.err, HasSubstr(c.says));
    EXPECT_THAT(outcome.err, HasSubstr(": out/final\n"));
    EXPECT_THAT(outcome.err, HasSubstr("hint: "));
    EXPECT_THAT(outcome.err, HasSubstr("output.dir"));
  }
  std::string text = folder_.read("train.txt");
  std::swap(text[0], text[1]);
  folder_.write("train.txt", text);
  EXPECT_THAT(expect_untouched("", 2).err, HasSubstr("data.train is data with the checksum"));
}

TEST_F(FinishedOnce, AsAnAdapterIsNotReplacedByAModel) {
  const std::string base = " model.config=null model.init=auto model.path=out/final output.dir=lora ";
  ASSERT_EQ(folder_.run(kTrain + base + "'lora={r: 2}'").exit_code, 0);
  const auto adapter = content(folder_.path("lora/final"));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("lora/final/adapter_config.json")));
  EXPECT_EQ(folder_.run(kTrain + base + "'lora={r: 2}'").exit_code, 0);
  EXPECT_EQ(events_of(folder_.read("out.txt")), "");
  ASSERT_EQ(folder_.run(kTrain + "training.seed=5 output.dir=elsewhere").exit_code, 0);
  for (const char* other : {"", "'lora={r: 3}'", "'lora={r: 2}' model.path=elsewhere/final"}) {
    const Outcome outcome = folder_.run(kTrain + base + other);
    EXPECT_EQ(outcome.exit_code, 2) << other << outcome.err;
    EXPECT_TRUE(content(folder_.path("lora/final")) == adapter) << other;
  }
}

TEST_F(FinishedOnce, IsReplacedAtTheEndWhereThatIsAskedFor) {
  const Outcome anew = folder_.run(kTrain + "--resume never training.seed=7");
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  EXPECT_THAT(anew.err, HasSubstr("out/final stays until this run is finished and is then replaced"));
  EXPECT_FALSE(content(folder_.path("out/final")) == final_);
  final_ = content(folder_.path("out/final"));
  expect_untouched("training.seed=7", 0);
  expect_untouched("", 2);
}

TEST_F(FinishedOnce, GoesAnewWhereItsModelIsGone) {
  std::filesystem::rename(folder_.path("out/final"), folder_.path("kept"));
  const Outcome anew = folder_.run(kTrain + "training.seed=7");
  EXPECT_EQ(anew.exit_code, 0) << anew.err;
  final_ = content(folder_.path("out/final"));
  expect_untouched("training.seed=7", 0);
}

TEST_F(FinishedOnce, StaysAsSomebodyHasChangedIt) {
  folder_.write("out/final/config.json", folder_.read("out/final/config.json") + "\n");
  final_ = content(folder_.path("out/final"));
  EXPECT_THAT(expect_untouched("", 2).err, HasSubstr("out/final/config.json"));
  folder_.write("out/final/README.md", "notes");  // a card is anybody's to write
  std::filesystem::remove_all(folder_.path("out/finished"));
  final_ = content(folder_.path("out/final"));
  EXPECT_THAT(expect_untouched("", 2).err, HasSubstr("without a record of its run"));
  folder_.write("other.txt", "x");
  std::filesystem::create_directory(folder_.path("out/finished"));
  folder_.write("out/finished/checkpoint.json", "{}");
  EXPECT_THAT(expect_untouched("", 2).err, HasSubstr("cannot be used"));
  EXPECT_EQ(folder_.run(kTrain + "--resume never").exit_code, 0);
}

TEST_F(FinishedOnce, ItsCardIsAnybodysToWrite) {
  folder_.write("out/final/README.md", "notes");
  folder_.write("out/final/more.txt", "notes");
  final_ = content(folder_.path("out/final"));
  expect_untouched("", 0);
}

/// The process is killed after final/ has its name and before its record has: both are there.
TEST_F(FinishedOnce, IsKnownWhereItsRecordWasNotPublished) {
  std::filesystem::rename(folder_.path("out/finished"), folder_.path("out/.finished.tmp"));
  const Outcome again = folder_.run(kTrain);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(events_of(again.out), "");
  EXPECT_TRUE(std::filesystem::exists(folder_.path("out/finished/checkpoint.json")));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out/.finished.tmp")));
  expect_untouched("", 0);
  // One that is not of final/ goes: the process was killed before.
  std::filesystem::copy(folder_.path("out/finished"), folder_.path("out/.finished.tmp"));
  folder_.write("out/.finished.tmp/final.json", "{}");
  expect_untouched("training.seed=7", 2);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("out/.finished.tmp")));
}

TEST_F(FinishedOnce, IsGuardedAgainstACheckpointFromElsewhere) {
  ASSERT_EQ(folder_.run(kTrain + "training.seed=7 output.dir=other output.save_steps=2").exit_code, 0);
  expect_untouched("training.seed=7 --resume other/checkpoint-2", 2);
  ASSERT_EQ(folder_.run(kTrain + "output.dir=same output.save_steps=2").exit_code, 0);
  EXPECT_EQ(folder_.run(kTrain + "--resume same/checkpoint-2").exit_code, 0);
  EXPECT_TRUE(content(folder_.path("out/final")) == final_);
}

TEST_F(FinishedOnce, IsNotTrainedAgainFromWhereASignalHadStoppedIt) {
  ASSERT_EQ(folder_.run(kTrain + "output.dir=stopped output.save_steps=2").exit_code, 0);
  std::filesystem::rename(folder_.path("stopped/checkpoint-2"), folder_.path("out/checkpoint-2"));
  expect_untouched("", 0);
}

TEST_F(FinishedOnce, OtherCommandsWorkBesideIt) {
  for (const char* command : {"plan run.yaml training.seed=7",
                              "eval run.yaml model.path=out/final model.config=null model.init=auto",
                              "profile run.yaml training.seed=7 --output profile"}) {
    const Outcome outcome = folder_.run(command);
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
    EXPECT_TRUE(content(folder_.path("out/final")) == final_) << command;
  }
  expect_untouched("", 0);
}

TEST(FinalFolder, OfSomethingElseIsNotReplaced) {
  const Folder folder;
  prepare(folder);
  std::filesystem::create_directories(folder.path("out/final"));
  folder.write("out/final/thesis.tex", "mine");
  for (const char* how : {"", "--resume never"}) {
    const Outcome outcome = folder.run(kTrain + how);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("out/final"));
    EXPECT_THAT(outcome.err, HasSubstr("move it away"));
    EXPECT_EQ(folder.read("out/final/thesis.tex"), "mine");
  }
  std::filesystem::remove_all(folder.path("out/final"));
  folder.write("out/final", "a file");
  EXPECT_EQ(folder.run(kTrain).exit_code, 2);  // before the first step, not after the last
  EXPECT_THAT(folder.read("out.txt"), Not(HasSubstr("\"event\": \"step\"")));
}

TEST(FinalFolder, ThatIsEmptyIsTaken) {
  const Folder folder;
  prepare(folder);
  std::filesystem::create_directories(folder.path("out/final"));
  folder.write("out/final/config.json", "{}");
  EXPECT_EQ(folder.run(kTrain).exit_code, 2);
  std::filesystem::remove(folder.path("out/final/config.json"));
  EXPECT_EQ(folder.run(kTrain).exit_code, 0) << folder.read("err.txt");
}

/// In files of another dtype the record has sums of whole files.
TEST(FinalFolder, OfSeveralFilesIsKnownToo) {
  const Folder folder;
  prepare(folder);
  const std::string how = "output.max_shard_size=60KB output.dtype=bf16";
  ASSERT_EQ(folder.run(kTrain + how).exit_code, 0) << folder.read("err.txt");
  ASSERT_TRUE(std::filesystem::exists(folder.path("out/final/model.safetensors.index.json")));
  const Outcome again = folder.run(kTrain + how);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(events_of(again.out), "");
  std::string name;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("out/final")))
    if (entry.path().extension() == ".safetensors") name = "out/final/" + entry.path().filename().string();
  std::string weights = folder.read(name);
  weights.back() ^= 1;
  folder.write(name, weights);
  const Outcome changed = folder.run(kTrain + how);
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr(name));
}

/// A run that was killed has no final/, and may start anew.
TEST(FinalFolder, OfARunThatWasKilledIsNoHindrance) {
  const Folder folder;
  prepare(folder);
  std::filesystem::create_directories(folder.path("out/.final.tmp"));
  folder.write("out/.final.tmp/model.safetensors", "half");
  folder.write("out/run.yaml", "half");
  folder.write("out/events.jsonl", "{\"event\": \"st");
  EXPECT_EQ(folder.run(kTrain + "training.seed=3").exit_code, 0) << folder.read("err.txt");
}

}  // namespace
}  // namespace plimsoll::e2e
