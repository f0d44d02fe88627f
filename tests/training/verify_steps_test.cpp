// debug.verify_steps: a machine that errs is found out, whichever op it errs in, and nothing else changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "io/temporary_folder.h"
#include "runtime/flipping_device.h"
#include "runtime/session_testing.h"
#include "settings/settings.h"
#include "strategy/run_device.h"
#include "training/trainer.h"

namespace plimsoll::training {
namespace {

using session_testing::FlippingDevice;
using testing::HasSubstr;

class VerifySteps : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream text(folder_.path("train.txt"));
    for (int i = 0; i < 400; ++i) text << "line " << i * i << " of a text to train on\n";
  }

  settings::RunConfig config(const std::string& out, const std::vector<std::string>& overrides) {
    const std::string run =
        "model:\n  config: {model_type: llama, vocab_size: 259, hidden_size: 16, intermediate_size: 24, "
        "num_hidden_layers: 1,\n    num_attention_heads: 2, num_key_value_heads: 1, "
        "max_position_embeddings: 64, rms_norm_eps: 1.0e-5, tie_word_embeddings: true}\n"
        "data: {train: " +
        folder_.path("train.txt") + ", sequence_length: 16}\noutput: {dir: " + folder_.path(out) +
        "}\ntraining: {global_batch_size: 2, micro_batch_size: 1, max_steps: 4000, learning_rate: 1.0e-3, "
        "warmup_steps: 0}\nruntime: {threads: 1}\n";
    auto parsed = settings::parse_run_config(run, "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }

  std::unique_ptr<Trainer> trainer(const settings::RunConfig& config, runtime::Device& device) {
    auto prepared = strategy::prepare(config, device.target(), {.num_threads = 1});
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    auto trainer = Trainer::create(config, std::move(*prepared), device);
    EXPECT_TRUE(trainer) << (trainer ? "" : trainer.error().message());
    return std::move(*trainer);
  }

  /// A flip in each call of a step in turn; all are found, and laid to the op.
  void expect_all_found(const std::vector<std::string>& overrides) {
    cpu::CpuDevice cpu(1);
    session_testing::FlippingDevice device(cpu);
    const settings::RunConfig run = config("out", overrides);
    const auto run_of = trainer(run, device);
    device.flip(-1);
    ASSERT_TRUE(run_of->step());
    const int64_t calls = device.calls();
    EXPECT_GT(calls, 60);
    for (int64_t call = 0; call < calls; ++call) {
      const auto odd = static_cast<uint64_t>(call) * 2654435761U;
      device.flip(call, odd >> 7, odd);
      const auto event = run_of->step();
      ASSERT_FALSE(event) << "a flip in call " << call << " is not found: " << device.flipped();
      EXPECT_EQ(event.error().code, ErrorCode::kDiverged);
      EXPECT_THAT(event.error().what, testing::StartsWith(device.flipped() + " gave a different result"));
      EXPECT_THAT(event.error().where, HasSubstr("step "));
    }
    device.flip(-1);
    EXPECT_TRUE(run_of->step());  // what was found was the flip
  }

  const io::TemporaryFolder folder_;
};

TEST_F(VerifySteps, FindsAFlippedBitInEveryOpOfAStep) { expect_all_found({"debug.verify_steps=1"}); }

TEST_F(VerifySteps, AlsoInLowPrecisionAndWithOtherOptimizers) {
  expect_all_found({"debug.verify_steps=1", "training.precision=fp16", "training.optimizer=adamw_8bit",
                    "training.micro_batch_size=2", "memory.recompute=full"});
  expect_all_found({"debug.verify_steps=1", "training.precision=bf16", "training.optimizer=muon",
                    "training.micro_batch_size=2"});
}

TEST_F(VerifySteps, KeepsTheBitsOfARun) {
  const auto losses = [&](const std::string& out, const std::vector<std::string>& overrides) {
    const settings::RunConfig run = config(out, overrides);
    const auto device = strategy::make_device(run, 1);
    EXPECT_TRUE(device);
    const auto run_of = trainer(run, **device);
    std::vector<double> all;
    for (int i = 0; i < 4; ++i) all.push_back(run_of->step()->loss);
    return all;
  };
  const std::vector<double> plain = losses("plain", {});
  EXPECT_NE(plain[3], plain[0]);
  EXPECT_EQ(losses("each", {"debug.verify_steps=1"}), plain);
  EXPECT_EQ(losses("some", {"debug.verify_steps=3", "debug.poison=true"}), plain);
  EXPECT_EQ(losses("moved", {"debug.verify_steps=1", "runtime.device=discrete", "runtime.discrete={seed: 5}",
                             "memory.offload={activations: host, optimizer: host}"}),
            plain);
}

TEST_F(VerifySteps, LooksAtEveryNthStepAloneAndNamesTheCheckpointToGoOnFrom) {
  cpu::CpuDevice cpu(1);
  session_testing::FlippingDevice device(cpu);
  const settings::RunConfig run = config("out", {"debug.verify_steps=2", "output.save_steps=1"});
  const auto run_of = trainer(run, device);
  device.flip(-1);
  ASSERT_TRUE(run_of->step());
  EXPECT_EQ(device.calls(), 0);  // replayed
  ASSERT_TRUE(run_of->start_checkpoint());
  device.flip(20);
  const auto event = run_of->step();
  ASSERT_FALSE(event);
  EXPECT_THAT(event.error().where, HasSubstr("step 2"));
  EXPECT_THAT(event.error().hint, HasSubstr("checkpoint-1"));
}

}  // namespace
}  // namespace plimsoll::training
