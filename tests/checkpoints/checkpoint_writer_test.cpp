// Saves at once and behind the steps: what is reported, what stays of earlier checkpoints, what a failure
// leaves.
#include "checkpoints/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "checkpoints/final_record.h"
#include "training/tiny_run.h"

namespace plimsoll::checkpoints {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Writer : public testing::Test {
 protected:
  explicit Writer(std::vector<std::string> overrides = {})
      : config_(run_.config(std::move(overrides))), trainer_(config_) {}
  void SetUp() override { ASSERT_TRUE(trainer_.trainer) << trainer_.error->message(); }

  std::unique_ptr<CheckpointWriter> writer(SaveOptions options = {}) {
    CheckpointManifest manifest;
    manifest.total_steps = 9;
    manifest.num_sequences = 40;
    manifest.num_data_tokens = 640;
    auto files = CheckpointFiles::create(config_, trainer_->prepared().model_config,
                                         *trainer_->prepared().model, {}, trainer_->session(), manifest);
    EXPECT_TRUE(files) << files.error().message();
    auto made = CheckpointWriter::create(config_, std::move(*files), std::move(options));
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  /// The steps whose folders are there, newest first.
  [[nodiscard]] std::vector<int64_t> kept() const {
    std::vector<int64_t> steps;
    for (const FoundCheckpoint& c : find_checkpoints(config_.output.dir)) steps.push_back(c.step);
    return steps;
  }
  [[nodiscard]] std::string at(int64_t step) const { return checkpoint_path(config_.output.dir, step); }

  const training::TinyRun run_;
  const settings::RunConfig config_;
  const training::TinyTrainer trainer_;
};

TEST_F(Writer, ASaveAtOnceIsDoneWhenStartReturns) {
  const auto w = writer();
  ASSERT_TRUE(w->start({.step = 3, .tokens = 12}));
  const auto saved = w->poll();
  ASSERT_TRUE(saved && *saved);
  EXPECT_EQ((*saved)->path, at(3));
  EXPECT_EQ((*saved)->waited_seconds, (*saved)->seconds) << "the step waited for all of it";
  EXPECT_FALSE(w->poll()) << "told once";
  const auto opened = open_checkpoint(at(3));
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->manifest.tokens, 12);
  EXPECT_EQ(opened->manifest.position, 3 * 4) << "sequences of so many steps";
  EXPECT_TRUE(verify_checkpoint(*opened));
}

TEST_F(Writer, ASaveBehindIsTheSameFile) {
  const auto at_once = writer(), behind = writer({.behind = true});
  ASSERT_TRUE(at_once->start({.step = 1}));
  ASSERT_TRUE(behind->start({.step = 2}));
  behind->wait_for_sources();
  behind->finish();
  ASSERT_TRUE(behind->poll());
  EXPECT_EQ(io::read_all(at(1) + "/model.safetensors"), io::read_all(at(2) + "/model.safetensors"));
  EXPECT_FALSE(io::read_all(at(1) + "/model.safetensors").empty());
}

TEST_F(Writer, AFailedSaveIsTheNextOnesError) {
  const auto w = writer({.behind = true});
  std::filesystem::create_directories(at(1) + "/theirs");
  ASSERT_TRUE(w->start({.step = 1})) << "it fails behind";
  const Status next = w->start({.step = 2});
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().message(),
              HasSubstr("the path is occupied by a folder that Plimsoll did not create"));
  EXPECT_TRUE(w->start({.step = 2})) << "said once";
  w->finish();
  EXPECT_THAT(kept(), ElementsAre(2));
}

TEST_F(Writer, StaleOnesGoWhenTheFirstNewOneIsWhole) {
  {
    const auto before = writer();
    ASSERT_TRUE(before->start({.step = 7}));
    ASSERT_TRUE(before->start({.step = 8}));
  }
  const auto w = writer({.stale = {at(8), at(7)}});
  std::filesystem::create_directories(at(1) + "/theirs");
  ASSERT_TRUE(w->start({.step = 1}));
  ASSERT_FALSE(*w->poll());
  EXPECT_THAT(kept(), ElementsAre(8, 7)) << "nothing is lost to a save that failed";
  ASSERT_TRUE(w->start({.step = 2}));
  EXPECT_THAT(kept(), ElementsAre(2));
}

TEST_F(Writer, TheModelIsWholeThoughItsRecordCannotBeWritten) {
  const auto w = writer();
  std::ofstream(record_path(config_.output.dir)) << "a file is where the record would go";
  const auto saved = w->save_final({.step = 2}, "a card");
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_TRUE(saved->unrecorded);
  EXPECT_EQ(io::read_all(final_path(config_.output.dir) + "/README.md"), "a card");
}

class LimitedWriter : public Writer {
 protected:
  LimitedWriter() : Writer({"output.save_steps=1", "output.save_total_limit=2"}) {}
};

TEST_F(LimitedWriter, KeepsTheNewest) {
  const auto w = writer();
  for (const int64_t step : {1, 2, 3}) ASSERT_TRUE(w->start({.step = step}));
  EXPECT_THAT(kept(), ElementsAre(3, 2));
}

TEST_F(LimitedWriter, TheBestIsOneOfThoseThatStay) {
  const auto w = writer();
  for (const int64_t step : {1, 2, 3, 4})
    ASSERT_TRUE(w->start({.step = step, .best = BestState{"loss", 1, 0.5, 1, 0.5, step - 1}}));
  EXPECT_THAT(kept(), ElementsAre(4, 1));
}

TEST_F(LimitedWriter, LaterOnesOfAnotherRunAreNotCounted) {
  const auto w = writer();
  for (const int64_t step : {8, 9, 1, 2, 3}) ASSERT_TRUE(w->start({.step = step}));
  EXPECT_THAT(kept(), ElementsAre(9, 8, 3, 2));
}

}  // namespace
}  // namespace plimsoll::checkpoints
