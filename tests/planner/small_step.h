// A small model and the options of its step.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "io/model_config.h"
#include "models/model.h"
#include "planner/programs/step_programs.h"
#include "tasks/task.h"

namespace plimsoll::planner {

inline StepOptions options(int64_t micro, int64_t tokens) {
  static const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  StepOptions o;
  o.task = task.get();
  o.micro_batch_size = micro;
  o.sequence_length = tokens;
  o.eval = true;
  return o;
}

/// Parameters outweigh everything else, so that the arena's peak stands where all gradients are.
inline std::unique_ptr<models::Model> tiny_llama(int64_t layers = 32) {
  const std::string text = fmt::format(
      R"({{"model_type": "llama", "vocab_size": 8192, "hidden_size": 128, "intermediate_size": 768,
          "num_hidden_layers": {}, "num_attention_heads": 2, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
          "max_position_embeddings": 64, "tie_word_embeddings": false}})",
      layers);
  const auto config = io::parse_config_json(text, "config.json");
  EXPECT_TRUE(config.ok());
  auto model = models::make_model(*config);
  EXPECT_TRUE(model.ok());
  return std::move(*model);
}

}  // namespace plimsoll::planner
