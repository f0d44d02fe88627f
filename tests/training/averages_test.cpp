// training.ema_decay: the average of the weights over the steps is what evaluation and the final model use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/safetensors_reader.h"
#include "picture_run.h"

namespace plimsoll::training {
namespace {

constexpr float kDecay = 0.75F;

class AveragesTest : public PictureRun {
 protected:
  static std::vector<float> weights_of(Trainer& trainer) {
    return session_testing::read_state<float>(trainer.session(), kWeight);
  }
  static std::vector<float> averages_of(Trainer& trainer) {
    return session_testing::read_state<float>(trainer.session(), std::string("ema.") + kWeight);
  }
  [[nodiscard]] std::vector<float> final_of(const std::string& dir) const {
    const auto file = io::SafetensorsFile::open(folder_.path(dir + "/final/model.safetensors"));
    EXPECT_TRUE(file) << (file ? "" : file.error().message());
    const io::SafetensorsTensor* tensor = file->find(kWeight);
    std::vector<float> values(static_cast<size_t>(kClasses * kPixels));
    EXPECT_TRUE(file->read(*tensor, 0, std::as_writable_bytes(std::span(values))));
    return values;
  }
};

TEST_F(AveragesTest, FollowTheWeights) {
  for (const char* micro : {"6", "3"}) {
    const std::string dir = std::string("out") + micro;
    const auto run = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path(dir),
                                     std::string("training.micro_batch_size=") + micro}));
    ASSERT_NE(run, nullptr);
    std::vector<float> expected;
    for (int64_t step = 0; step < 6; ++step) {
      ASSERT_TRUE(run->step());
      const std::vector<float> weights = weights_of(*run);
      if (expected.empty()) expected = weights;
      for (size_t i = 0; i < weights.size(); ++i)
        expected[i] = kDecay * expected[i] + (1 - kDecay) * weights[i];
    }
    const std::vector<float> averages = averages_of(*run);
    ASSERT_EQ(averages.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(averages[i], expected[i], 1e-6);
    const auto eval = run->evaluate();
    ASSERT_TRUE(eval && *eval);
    double loss = 0;
    for (int64_t first = 0; first < kExamples; first += kBatch)
      loss += loss_of(averages, first) * kBatch / kExamples;
    EXPECT_NEAR((*eval)->loss, loss, 1e-5);
    ASSERT_TRUE(run->save_final());
    EXPECT_EQ(final_of(dir), averages);
  }
}

TEST_F(AveragesTest, AreInCheckpoints) {
  const std::vector<std::string> overrides = {"training.ema_decay=0.75", "output.dir=" + folder_.path("out")};
  {
    const auto run = trainer(config(overrides));
    ASSERT_NE(run, nullptr);
    for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(run->step());
    ASSERT_TRUE(run->start_checkpoint());
    ASSERT_TRUE(run->next_saved(/*wait=*/true));
  }
  const auto resumed = trainer(config(overrides));
  const auto whole = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path("whole")}));
  ASSERT_TRUE(resumed != nullptr && whole != nullptr);
  for (int64_t step = 3; step < 6; ++step) ASSERT_TRUE(resumed->step());
  for (int64_t step = 0; step < 6; ++step) ASSERT_TRUE(whole->step());
  EXPECT_EQ(averages_of(*resumed), averages_of(*whole));
}

TEST_F(AveragesTest, MayLieWithTheHost) {
  auto plain = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path("plain")}));
  ASSERT_NE(plain, nullptr);
  for (int64_t step = 0; step < 4; ++step) ASSERT_TRUE(plain->step());
  const std::vector<float> expected = averages_of(*plain);
  const auto plain_eval = plain->evaluate();
  plain.reset();  // before its device
  device_ = *devices::make_device({.kind = devices::DeviceKind::kDiscrete,
                                   .num_threads = 2,
                                   .discrete = {.memory = Bytes(1 << 24), .seed = 5}});
  const auto run = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path("offloaded"),
                                   "runtime.device=discrete", "memory.offload={optimizer: host}"}));
  ASSERT_NE(run, nullptr);
  for (int64_t step = 0; step < 4; ++step) ASSERT_TRUE(run->step());
  EXPECT_EQ(averages_of(*run), expected);
  const auto eval = run->evaluate();
  ASSERT_TRUE(plain_eval && *plain_eval && eval && *eval);
  EXPECT_EQ((*eval)->loss, (*plain_eval)->loss);
}

/// As torchvision's, which averages buffers too.
TEST_F(AveragesTest, RunningStatisticsAreAveragedToo) {
  has_norm_ = true;
  const auto run = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path("norm")}));
  ASSERT_NE(run, nullptr);
  std::vector<float> expected;
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(run->step());
    const auto running = session_testing::read_state<float>(run->session(), "norm.running_var");
    if (expected.empty()) expected = running;
    for (size_t i = 0; i < running.size(); ++i)
      expected[i] = kDecay * expected[i] + (1 - kDecay) * running[i];
  }
  const auto averages = session_testing::read_state<float>(run->session(), "ema.norm.running_var");
  ASSERT_EQ(averages.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(averages[i], expected[i], 1e-6);
  ASSERT_TRUE(run->save_final());
  const auto file = io::SafetensorsFile::open(folder_.path("norm/final/model.safetensors"));
  ASSERT_TRUE(file);
  std::vector<float> saved(averages.size());
  ASSERT_TRUE(file->read(*file->find("norm.running_var"), 0, std::as_writable_bytes(std::span(saved))));
  EXPECT_EQ(saved, averages);
}

/// What is not averaged is as it was.
TEST_F(AveragesTest, LeaveTheTrainingAsItIs) {
  const auto with = trainer(config({"training.ema_decay=0.75", "output.dir=" + folder_.path("with")}));
  const auto without = trainer(config({"output.dir=" + folder_.path("without")}));
  ASSERT_TRUE(with != nullptr && without != nullptr);
  for (int64_t step = 0; step < 4; ++step) {
    ASSERT_TRUE(with->step());
    ASSERT_TRUE(without->step());
  }
  EXPECT_EQ(weights_of(*with), weights_of(*without));
}

}  // namespace
}  // namespace plimsoll::training
