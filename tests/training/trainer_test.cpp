// A training in this process, with all of its threads: workers, loader, the writer of checkpoints.
#include "training/trainer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "io/temporary_folder.h"
#include "runtime/session_testing.h"
#include "settings/settings.h"

namespace plimsoll::training {
namespace {

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(folder_.path("train.txt"));
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of a text to train on\n";
  }

  settings::RunConfig config(const std::string& out, const std::vector<std::string>& overrides = {}) {
    const std::string run =
        "model:\n  config: {model_type: llama, vocab_size: 259, hidden_size: 32, intermediate_size: 40, "
        "num_hidden_layers: 2,\n    num_attention_heads: 2, num_key_value_heads: 1, "
        "max_position_embeddings: 64, rms_norm_eps: 1.0e-5}\n"
        "data: {train: " +
        folder_.path("train.txt") + ", sequence_length: 32}\noutput: {dir: " + folder_.path(out) +
        "}\ntraining: {global_batch_size: 4, micro_batch_size: 2, max_steps: 6, learning_rate: 1.0e-2}\n"
        "runtime: {threads: 2}\n";
    auto parsed = settings::parse_run_config(run, "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }

  /// The losses of all steps; a checkpoint after each where `saves`.
  std::vector<double> train(const settings::RunConfig& config, bool saves) {
    cpu::CpuDevice device(2);
    auto prepared = strategy::prepare(config, device.target(), {.num_threads = 2});
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    auto trainer = Trainer::create(config, std::move(*prepared), device);
    EXPECT_TRUE(trainer) << (trainer ? "" : trainer.error().message());
    std::vector<double> losses;
    while ((*trainer)->steps_done() < (*trainer)->total_steps()) {
      const auto event = (*trainer)->step();
      EXPECT_TRUE(event) << (event ? "" : event.error().message());
      losses.push_back(event->loss);
      EXPECT_EQ(event->units, 4 * 32);
      EXPECT_TRUE(!saves || (*trainer)->start_checkpoint());
    }
    EXPECT_TRUE((*trainer)->save_final());
    return losses;
  }

  std::string weights(const std::string& out) {
    std::ifstream file(folder_.path(out) + "/final/model.safetensors", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const io::TemporaryFolder folder_;
};

TEST_F(TrainerTest, SavingBehindAndReadingAheadChangeNothing) {
  const std::vector<double> plain = train(config("plain"), false);
  ASSERT_EQ(plain.size(), 6U);
  EXPECT_LT(plain.back(), plain.front());
  EXPECT_EQ(train(config("saved", {"output.save_steps=1", "output.save_total_limit=2", "data.num_workers=3",
                                   "data.prefetch_factor=4"}),
                  true),
            plain);
  EXPECT_EQ(weights("saved"), weights("plain"));
  EXPECT_GT(weights("plain").size(), 1000U);
}

TEST_F(TrainerTest, GoesOnFromACheckpoint) {
  const std::vector<double> plain = train(config("plain"), false);
  (void)train(
      config("halves", {"output.save_steps=1", "training.max_steps=3", "training.lr_scheduler=constant"}),
      true);
  const std::vector<double> rest =
      train(config("halves", {"output.save_steps=1", "training.lr_scheduler=constant"}), true);
  const std::vector<double> whole = train(config("whole", {"training.lr_scheduler=constant"}), false);
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 3, whole.end()));
}

}  // namespace
}  // namespace plimsoll::training
