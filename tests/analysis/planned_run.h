// A small run that is planned on one thread, with its remedies.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/remedies.h"
#include "settings/run_config.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {

inline constexpr const char* kPlannedRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 128, intermediate_size: 256, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 2, max_steps: 2}\nruntime: {threads: 1}\n";

struct PlannedRun {
  explicit PlannedRun(std::vector<std::string> overrides, const char* text = kPlannedRun) {
    auto read = settings::parse_run_config(text, "run.yaml", overrides);
    EXPECT_TRUE(read) << read.error().what;
    config = *read;
    target = strategy::make_target(config, 1);
    auto planned = strategy::prepare(config, *target, {});
    EXPECT_TRUE(planned);
    planned_.emplace(std::move(*planned));
    add_remedies(config, *target, {}, *planned_);
  }
  strategy::Prepared& prepared() { return *planned_; }
  settings::RunConfig config;
  std::unique_ptr<runtime::Target> target;

 private:
  std::optional<strategy::Prepared> planned_;
};

}  // namespace plimsoll::analysis
