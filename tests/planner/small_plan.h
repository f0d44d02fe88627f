// Planned sessions of small models, for what is said of a plan.
#pragma once

#include <gtest/gtest.h>

#include "backends/cpu/cpu_target.h"
#include "models/lora.h"
#include "models/model.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {

struct SmallPlan {
  int64_t micro_batch_size = 2, sequence_length = 48, num_layers = 3, vocab_size = 211;
  bool accumulate = false;
  bool lora = false, finds_gains = false;
  passes::RecomputePolicy recompute = {};
};

inline TrainingPrograms planned_small(const SmallPlan& s) {
  static const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  const auto config = io::parse_config_json(
      R"({"model_type": "llama", "hidden_size": 40, "intermediate_size": 100, "num_attention_heads": 2,
          "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
          "tie_word_embeddings": true, "num_hidden_layers": )" +
          std::to_string(s.num_layers) + R"(, "vocab_size": )" + std::to_string(s.vocab_size) + "}",
      "config.json");
  EXPECT_TRUE(config.ok());
  const auto model = models::make_model(*config);
  EXPECT_TRUE(model.ok());
  if (s.lora) {
    EXPECT_TRUE(models::add_adapters(**model, {.r = 4}, "llama").ok());
  }
  StepOptions options;
  options.task = task.get();
  options.micro_batch_size = s.micro_batch_size;
  options.sequence_length = s.sequence_length;
  options.accumulate = s.accumulate;
  options.eval = true;
  options.finds_gains = s.finds_gains;
  options.pipeline.recompute = s.recompute;
  auto programs = build_training_programs(**model, options, cpu::CpuTarget(2));
  EXPECT_TRUE(programs.ok());
  return std::move(*programs);
}

}  // namespace plimsoll::planner
