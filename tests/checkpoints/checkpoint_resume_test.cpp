// Which checkpoint a run goes on from, by folders alone; tests/training/trainer_start_test.cpp loads them.
#include "checkpoints/checkpoint_resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/temporary_folder.h"

namespace plimsoll::checkpoints {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Resume : public testing::Test {
 protected:
  /// A folder that is this program's by its look, and no whole checkpoint.
  std::string add(const std::string& name) const {
    std::filesystem::create_directories(folder_.path(name));
    std::ofstream(folder_.path(name) + "/checkpoint.json") << "{}";
    return folder_.path(name);
  }
  static std::vector<int64_t> steps(const Result<ResumeChoice>& choice) {
    std::vector<int64_t> steps;
    if (choice)
      for (const FoundCheckpoint& c : choice->candidates) steps.push_back(c.step);
    return steps;
  }
  const io::TemporaryFolder folder_;
};

TEST_F(Resume, AutoTakesThoseOfTheOutputFolderNewestFirst) {
  add("checkpoint-2"), add("checkpoint-10"), add("checkpoint-x");
  std::filesystem::create_directories(folder_.path("checkpoint-11/theirs"));
  const auto choice = choose_checkpoints("auto", folder_.path());
  EXPECT_THAT(steps(choice), ElementsAre(10, 2));
  EXPECT_FALSE(choice->only_this);
  EXPECT_THAT(steps(choose_checkpoints("never", folder_.path())), ElementsAre());
  EXPECT_THAT(steps(choose_checkpoints("auto", folder_.path("absent"))), ElementsAre());
}

TEST_F(Resume, ACheckpointThatIsNamedIsTheOnlyOne) {
  const std::string path = add("checkpoint-2");
  add("checkpoint-10");
  for (const std::string& named : {path, path + "/", path + "//"}) {
    const auto choice = choose_checkpoints(named, "elsewhere");
    ASSERT_TRUE(choice);
    ASSERT_EQ(choice->candidates.size(), 1U);
    EXPECT_EQ(choice->candidates[0].path, path);
    EXPECT_TRUE(choice->only_this);
  }
}

TEST_F(Resume, ARunsFolderThatIsNamedHasItsCheckpoints) {
  add("checkpoint-2"), add("checkpoint-10");
  const auto choice = choose_checkpoints(folder_.path(), "elsewhere");
  EXPECT_THAT(steps(choice), ElementsAre(10, 2));
  EXPECT_FALSE(choice->only_this);
}

TEST_F(Resume, AFolderWithoutOneIsAnError) {
  for (const std::string& named : {folder_.path(), folder_.path("absent")}) {
    const auto choice = choose_checkpoints(named, "elsewhere");
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::kBadData);
    EXPECT_THAT(choice.error().message(), HasSubstr("there is no checkpoint"));
  }
}

TEST_F(Resume, WhatIsDamagedIsPassedOverAloud) {
  const ResumeChoice choice{{{10, add("checkpoint-10")}, {2, add("checkpoint-2")}}};
  std::vector<std::string> notes;
  const Note note = [&](const std::string& text) { notes.push_back(text); };
  EXPECT_TRUE(pass_over(choice, 0, {ErrorCode::kBadData, "torn", "a"}, note));
  EXPECT_TRUE(pass_over(choice, 0, {ErrorCode::kIo, "EIO", "a"}, note));
  EXPECT_THAT(notes, ElementsAre("skipped, because it is damaged: torn: a",
                                 "skipped, because it cannot be read: EIO: a"));
  const Status last = pass_over(choice, 1, {ErrorCode::kBadData, "torn"}, note);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::kBadData);
  EXPECT_EQ(last.error().message(), "every checkpoint is damaged: " + folder_.path());
  EXPECT_EQ(pass_over(choice, 1, {ErrorCode::kIo, "EIO"}, note).error().code, ErrorCode::kIo);
}

TEST_F(Resume, OtherErrorsAndTheOneThatWasNamedEndIt) {
  std::vector<std::string> notes;
  const Note note = [&](const std::string& text) { notes.push_back(text); };
  const ResumeChoice two{{{10, "a"}, {2, "b"}}}, named{{{0, "a"}}, true};
  EXPECT_EQ(pass_over(two, 0, {ErrorCode::kInvalidArgument, "another version"}, note).error().what,
            "another version");
  EXPECT_EQ(pass_over(named, 0, {ErrorCode::kBadData, "torn"}, note).error().what, "torn");
  EXPECT_TRUE(notes.empty());
}

TEST_F(Resume, OpeningGoesThroughAllThatAreDamaged) {
  const ResumeChoice choice{{{10, add("checkpoint-10")}, {2, add("checkpoint-2")}}};
  int notes = 0;
  size_t from = 0;
  const auto opened = open_first_intact(choice, from, [&](const std::string&) { ++notes; });
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kBadData);
  EXPECT_EQ(notes, 2);
  from = 0;
  const auto none = open_first_intact({}, from, [&](const std::string&) { ++notes; });
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none) << "there was none to begin with";
}

TEST_F(Resume, WhatTheRunHasLeftBehindIsStale) {
  add("checkpoint-1"), add("checkpoint-2"), add("checkpoint-3");
  EXPECT_EQ(stale_checkpoints(folder_.path(), std::nullopt).size(), 3U) << "begun anew";
  Checkpoint taken{folder_.path("checkpoint-2"), {}};
  taken.manifest.step = 2;
  EXPECT_THAT(stale_checkpoints(folder_.path(), taken), ElementsAre(folder_.path("checkpoint-3")));
  taken.path = "elsewhere/checkpoint-2";
  EXPECT_EQ(stale_checkpoints(folder_.path(), taken).size(), 3U) << "another run's";
}

}  // namespace
}  // namespace plimsoll::checkpoints
