// fp16 training: what underflows without a scale and learns with one, what a skipped step leaves alone, and
// that the scale is part of a checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>

#include "io/temporary_folder.h"
#include "runtime/session_testing.h"
#include "settings/settings.h"
#include "training/trainer.h"

namespace plimsoll::training {
namespace {

constexpr int kCycle = 32;

class LossScaleTest : public testing::Test {
 protected:
  /// Tokens 0..31 over and over, as .npy. A sequence of 33 has each of them once as target.
  void SetUp() override {
    std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (33792,), }";
    header.resize(117, ' ');
    std::ofstream file(folder_.path("cycle.npy"), std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n';
    for (int32_t i = 0; i < 33792; ++i) {
      const int32_t token = i % kCycle;
      file.write(reinterpret_cast<const char*>(&token), 4);
    }
  }

  settings::RunConfig config(const std::vector<std::string>& overrides, const std::string& out = "out") {
    const std::string run =
        "model:\n  config: {model_type: llama, vocab_size: 32, hidden_size: 32, intermediate_size: 40, "
        "num_hidden_layers: 1,\n    num_attention_heads: 2, num_key_value_heads: 1, "
        "max_position_embeddings: 64, rms_norm_eps: 1.0e-5}\n"
        "data: {train: " +
        folder_.path("cycle.npy") +
        ", sequence_length: 33, shuffle: false}\noutput: {dir: " + folder_.path(out) +
        "}\ntraining: {precision: fp16, global_batch_size: 32, max_steps: 60, learning_rate: 1.0e-2, "
        "lr_scheduler: constant, weight_decay: 0}\n"
        "runtime: {threads: 2}\n";
    auto parsed = settings::parse_run_config(run, "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return std::move(*parsed);
  }

  std::unique_ptr<Trainer> start(settings::RunConfig asked, const TrainerOptions& options = {}) {
    const settings::RunConfig& config = configs_.emplace_back(std::move(asked));
    auto prepared = strategy::prepare(config, device_.target(), {.num_threads = 2});
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    auto trainer = Trainer::create(config, std::move(*prepared), device_, options);
    EXPECT_TRUE(trainer) << (trainer ? "" : trainer.error().message());
    return std::move(*trainer);
  }

  static std::span<float> weights(Trainer& trainer, std::string_view name) {
    return session_testing::on_cpu<float>(trainer.session(), name);
  }

  /// Every token begins with the same embedding and the head is tiny, so that what tells tokens apart has to
  /// come through gradients of about 2e-9, a thirtieth of fp16's least.
  double loss_after_60_steps(const std::vector<std::string>& overrides) {
    const auto trainer = start(config(overrides));
    for (float& w : weights(*trainer, "model.embed_tokens.weight")) w = 1.0F;
    for (float& w : weights(*trainer, "lm_head.weight")) w *= 1e-4F;  // 2e-6
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      const auto event = trainer->step();
      EXPECT_TRUE(event) << (event ? "" : event.error().message());
      if (event) loss = event->loss;
    }
    return loss;
  }

  const io::TemporaryFolder folder_;
  std::deque<settings::RunConfig> configs_;  ///< trainers refer to them
  cpu::CpuDevice device_{2};
};

TEST_F(LossScaleTest, WithoutAScaleGradientsVanishAndTrainingStalls) {
  const double chance = std::log(double{kCycle});
  const double full = loss_after_60_steps({"training.precision=fp32", "output.dir=" + folder_.path("a")});
  const double stalled = loss_after_60_steps(
      {"training.loss_scale=1", "training.residual_in_fp32=false", "output.dir=" + folder_.path("b")});
  const double scaled =
      loss_after_60_steps({"training.residual_in_fp32=false", "output.dir=" + folder_.path("c")});
  EXPECT_LT(full, 0.5 * chance);
  EXPECT_GT(stalled, 0.99 * chance);
  EXPECT_LT(scaled, 0.5 * chance);
}

TEST_F(LossScaleTest, ASkippedStepChangesTheScaleAlone) {
  const auto trainer =
      start(config({"training.loss_scale.init_scale=1e30", "training.max_steps=80", "training.warmup_steps=4",
                    "training.micro_batch_size=16", "training.lr_scheduler=constant_with_warmup"}));
  const auto state_bytes = [&] {
    std::string bytes;
    for (const passes::SessionState& s : trainer->session().plan().states)
      if (s.decl.state_class == ir::StateClass::kParameter ||
          s.decl.state_class == ir::StateClass::kOptimizerState)
        for (const char c : session_testing::on_cpu<char>(trainer->session(), s.decl.name))
          bytes.push_back(c);
    return bytes;
  };
  const std::string before = state_bytes();
  double scale = 1e30F;
  int skipped = 0;
  for (;; ++skipped) {
    ASSERT_LT(skipped, 79);
    const auto event = trainer->step();
    ASSERT_TRUE(event) << event.error().message();
    EXPECT_EQ(event->loss_scale, scale);
    EXPECT_EQ(event->learning_rate, 0);  // the schedule waits at its first step
    if (!event->skipped) break;
    scale *= 0.5;
    ASSERT_EQ(state_bytes(), before);
  }
  EXPECT_GT(skipped, 20);
  const auto next = trainer->step();
  ASSERT_TRUE(next);
  EXPECT_FLOAT_EQ(static_cast<float>(next->learning_rate), 0.0025F);
  EXPECT_NE(state_bytes(), before);
}

TEST_F(LossScaleTest, IsPartOfTheCheckpoint) {
  const std::vector<std::string> common = {"training.loss_scale.init_scale=1e14",
                                           "training.loss_scale.growth_interval=3", "training.max_steps=24",
                                           "output.save_steps=5"};
  struct Step {
    double loss, scale;
    bool skipped;
    bool operator==(const Step&) const = default;
  };
  const auto run = [&](Trainer& trainer, int64_t until) {
    std::vector<Step> steps;
    while (trainer.steps_done() < until) {
      const auto event = trainer.step();
      EXPECT_TRUE(event);
      if (!event) break;
      steps.push_back({event->loss, *event->loss_scale, event->skipped});
    }
    return steps;
  };
  std::vector<Step> whole, halves;
  whole = run(*start(config(common, "whole")), 24);
  {
    const auto first = start(config(common, "halves"));
    halves = run(*first, 11);
    ASSERT_TRUE(first->start_checkpoint());
    while (true) {
      const auto saved = first->next_saved(/*wait=*/true);
      ASSERT_TRUE(saved) << saved.error().message();
      if (!*saved) break;
    }
  }
  const auto second = start(config(common, "halves"));
  EXPECT_EQ(second->steps_done(), 11);
  const std::vector<Step> rest = run(*second, 24);
  halves.insert(halves.end(), rest.begin(), rest.end());
  EXPECT_EQ(halves, whole);
  const auto skips = std::count_if(whole.begin(), whole.end(), [](const Step& s) { return s.skipped; });
  EXPECT_GT(skips, 5);
  EXPECT_LT(skips, 24);
}

TEST_F(LossScaleTest, SkippedStepsAreCountedAcrossAChangeOfPrecision) {
  const std::vector<std::string> half = {"training.loss_scale.init_scale=1e14", "training.max_steps=40",
                                         "training.lr_scheduler=linear", "output.save_steps=50"};
  int64_t skipped = 0;
  {
    const auto trainer = start(config(half));
    for (int step = 0; step < 20; ++step) {
      const auto event = trainer->step();
      ASSERT_TRUE(event);
      skipped += event->skipped ? 1 : 0;
    }
    ASSERT_TRUE(trainer->start_checkpoint());
    ASSERT_TRUE(trainer->next_saved(/*wait=*/true));
  }
  ASSERT_GT(skipped, 5);
  auto other = half;
  other.insert(other.end(), {"training.precision=bf16", "training.loss_scale=null"});
  const auto event = start(config(other))->step();
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->step, 21);
  EXPECT_NEAR(event->learning_rate, 1e-2 * static_cast<double>(40 - (20 - skipped)) / 40, 1e-9);
}

TEST_F(LossScaleTest, WhatADamagedCheckpointHadDoesNotStay) {
  const std::vector<std::string> common = {"training.loss_scale.init_scale=1e14", "training.max_steps=30",
                                           "output.save_steps=50"};
  auto full = common;
  full.insert(full.end(), {"training.precision=fp32", "training.loss_scale=null"});
  const auto save_after = [&](const std::vector<std::string>& overrides, int64_t until) {
    const auto trainer = start(config(overrides));
    while (trainer->steps_done() < until) ASSERT_TRUE(trainer->step());
    ASSERT_TRUE(trainer->start_checkpoint());
    ASSERT_TRUE(trainer->next_saved(/*wait=*/true));
  };
  save_after(full, 2);
  save_after(common, 4);
  const std::string file = folder_.path("out") + "/checkpoint-4/optimizer.safetensors";
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(-64, std::ios::end);
  bytes.put('\x55').put('\x55').put('\x55');
  bytes.close();
  const auto trainer = start(config(common));
  EXPECT_EQ(trainer->steps_done(), 2);
  EXPECT_EQ(session_testing::on_cpu<float>(trainer->session(), optimizers::kScalerState)[0], 1e14F);
}

TEST_F(LossScaleTest, BelowItsLeastTheRunHasDiverged) {
  const auto trainer = start(config({"training.loss_scale.init_scale=4"}));
  weights(*trainer, "model.norm.weight")[0] = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(trainer->step());
  const auto last = trainer->step();
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, ErrorCode::kDiverged);
  EXPECT_NE(last.error().what.find("fell to 0.5, below training.loss_scale.min_scale (1)"),
            std::string::npos);
  EXPECT_NE(last.error().what.find("model.embed_tokens.weight"), std::string::npos) << last.error().what;
}

TEST_F(LossScaleTest, AStaticScaleGivesWayNeverAndUpInTheEnd) {
  const auto trainer = start(config({"training.loss_scale=1e30"}));
  Result<StepEvent> event = trainer->step();
  int steps = 1;
  for (; event && steps < 60; ++steps) {
    EXPECT_TRUE(event->skipped);
    EXPECT_EQ(event->loss_scale, 1e30F);
    event = trainer->step();
  }
  EXPECT_EQ(steps, 50);
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, ErrorCode::kDiverged);
}

/// Attention gives nothing, but what comes back through its output overflows: queries, keys, values and the
/// norm below are not finite, everything else is. Of these q is frozen, and so its storage divided.
TEST_F(LossScaleTest, NamesWhatOverflowedAmongThoseThatAreTrained) {
  const auto trainer = start(config({"training.loss_scale=65536", "training.micro_batch_size=16",
                                     "training.freeze=[\"*.q_proj.*\", \"*embed*\"]"}));
  std::ranges::fill(weights(*trainer, "model.layers.0.self_attn.v_proj.weight"), 0.0F);
  std::ranges::fill(weights(*trainer, "model.layers.0.self_attn.o_proj.weight"), 60000.0F);
  Result<StepEvent> event = trainer->step();
  for (int step = 1; event && step < 60; ++step) event = trainer->step();
  ASSERT_FALSE(event);
  EXPECT_TRUE(event.error().what.ends_with(
      "not finite are the gradients of model.layers.0.input_layernorm.weight, "
      "model.layers.0.self_attn.k_proj.weight, model.layers.0.self_attn.v_proj.weight"))
      << event.error().what;
}

TEST_F(LossScaleTest, SkippedStepsInARowAreCountedAcrossAResume) {
  const std::vector<std::string> overrides = {"training.loss_scale=1e30", "output.save_steps=100"};
  {
    const auto trainer = start(config(overrides));
    for (int step = 0; step < 30; ++step) ASSERT_TRUE(trainer->step());
    ASSERT_TRUE(trainer->start_checkpoint());
    ASSERT_TRUE(trainer->next_saved(/*wait=*/true));
  }
  const auto trainer = start(config(overrides));
  ASSERT_EQ(trainer->steps_done(), 30);
  for (int step = 30; step < 49; ++step) ASSERT_TRUE(trainer->step());
  const auto last = trainer->step();
  ASSERT_FALSE(last);
  EXPECT_NE(last.error().what.find("50 steps in a row overflowed under the static loss scale 1e+30"),
            std::string::npos)
      << last.error().what;
}

TEST_F(LossScaleTest, ARunThatNeverUpdatedHasDiverged) {
  const std::pair<const char*, const char*> scales[] = {
      {"training.loss_scale=1e30", "3 steps in a row overflowed under the static loss scale 1e+30"},
      {"training.loss_scale.init_scale=1e30", "every step of the run overflowed"}};
  for (const auto& [scale, says] : scales) {
    const auto trainer = start(config({scale, "training.max_steps=3"}, scale));
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(trainer->step());
    const auto last = trainer->step();
    ASSERT_FALSE(last) << scale;
    EXPECT_EQ(last.error().code, ErrorCode::kDiverged);
    EXPECT_NE(last.error().what.find(says), std::string::npos) << last.error().what;
    EXPECT_NE(last.error().what.find("model.embed_tokens.weight"), std::string::npos) << last.error().what;
    // Checkpoints of the scale that failed would be refused.
    EXPECT_NE(last.error().hint.find("with --resume never"), std::string::npos) << last.error().hint;
  }
}

TEST_F(LossScaleTest, ABenchmarkMayBeginWithSkippedSteps) {
  TrainerOptions options;
  options.synthetic_data = true;
  const auto trainer =
      start(config({"training.loss_scale.init_scale=1e30", "training.max_steps=1"}), options);
  for (int step = 0; step < 3; ++step) {
    const auto event = trainer->step();
    ASSERT_TRUE(event) << event.error().message();
    EXPECT_TRUE(event->skipped);
  }
}

}  // namespace
}  // namespace plimsoll::training
