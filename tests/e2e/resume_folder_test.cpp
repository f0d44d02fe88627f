// What a finished run's folder is good for: it is complete, goes on where more is asked for, is not
// overwritten by another run; damage in it is named.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/checksum.h"
#include "ten_steps.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// A run that is trained once, for all tests of its folder.
struct FinishedRun {
  FinishedRun() {
    prepare_ten_steps(folder);
    const Outcome outcome = folder.run("train run.yaml --json runtime.threads=1 output.save_total_limit=2");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    out = outcome.out;
  }
  Folder folder;
  std::string out;
};

/// Each test has a copy of its folder.
class Finished : public testing::Test {
 protected:
  Finished() {
    static const FinishedRun run;
    out_ = run.out;
    std::filesystem::copy(run.folder.path(), folder_.path(), std::filesystem::copy_options::recursive);
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

}  // namespace
}  // namespace plimsoll::e2e
