// A small run of a Llama on the CPU or on a simulated device, ready to have its strategies planned.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strategy/plan_strategy.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {

class SmallRun {
 public:
  explicit SmallRun(const std::vector<std::string>& overrides = {}, PrepareOptions options = {})
      : config_(*settings::parse_run_config(kText, "run.yaml", overrides)),
        target_(make_target(config_, 1)),
        options_(std::move(options)),
        prepared_(prepared()) {
    options_.buckets = prepared_.buckets;
  }

  [[nodiscard]] RunScope scope() const { return {config_, prepared_, *target_, options_}; }
  /// As if each budget had so much more.
  void set_more_bytes(int64_t bytes) { options_.more_bytes = bytes; }

  static constexpr int64_t kEndless = int64_t{1} << 40;
  static constexpr const char* kOnDevice = "runtime={threads: 1, device: discrete}";

 private:
  Prepared prepared() {
    options_.request = PlanRequest::kReport;
    options_.memory = MachineMemory{.limit_bytes = kEndless, .available_bytes = kEndless};
    auto prepared = prepare(config_, *target_, options_);
    EXPECT_TRUE(prepared) << (prepared ? "" : prepared.error().message());
    return std::move(*prepared);
  }

  static constexpr const char* kText =
      "model: {config: {model_type: llama, vocab_size: 500, hidden_size: 64, intermediate_size: 192, "
      "num_hidden_layers: 4, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256}}\n"
      "data: {sequence_length: 64}\ntraining: {global_batch_size: 4, max_steps: 2}\n"
      "runtime: {threads: 1, profile: built-in}\nmemory: {budget: 4GiB}\n";

  settings::RunConfig config_;
  std::unique_ptr<runtime::Target> target_;
  PrepareOptions options_;
  Prepared prepared_;
};

inline Strategy of_split(int64_t micro_batch_size, int64_t grad_accum_steps) {
  return {.split = {micro_batch_size, grad_accum_steps}};
}

}  // namespace plimsoll::strategy
