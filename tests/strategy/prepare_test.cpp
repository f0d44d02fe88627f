// A run and the run that is read in the file that it wrote have the same plan. PLIMSOLL_WHOLE_CAMPAIGN takes
// 2,000 seeds, PLIMSOLL_FUZZ_SECONDS goes on for so long, PLIMSOLL_FUZZ_SEED says where the seeds begin.
#include "strategy/prepare.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "../settings/random_runs.h"
#include "planner/report/report.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

/// Settings that a small plan on this machine wants, whatever was drawn.
void make_small(settings::Drawn& drawn) {
  std::erase_if(drawn, [](const auto& entry) {
    const std::string& path = entry.first;
    for (const char* other : {"model.",
                              "runtime.",
                              "memory.budget",
                              "memory.device_budget",
                              "memory.host_budget",
                              "data.train",
                              "data.eval",
                              "data.sequence_length",
                              "data.weights",
                              "data.tokenizer",
                              "data.chat_template",
                              "lora.adapter",
                              "lora.target_modules",
                              "lora.exclude_modules",
                              "lora.layers",
                              "lora.rank_pattern",
                              "lora.alpha_pattern",
                              "lora.modules_to_save",
                              "training.global_batch_size",
                              "training.freeze",
                              "training.unfreeze",
                              "training.param_groups",
                              "training.precision_overrides",
                              "classification.",
                              "data.images.",
                              "mlm.",
                              "qa.",
                              "paths"})
      if (path.starts_with(other)) return true;
    return false;
  });
  drawn["model.config"] =
      "{model_type: llama, vocab_size: 96, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2, "
      "num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: 128}";
  drawn["data.sequence_length"] = "16";
  drawn["training.global_batch_size"] = "4";
  drawn["runtime.threads"] = "1";
  drawn["runtime.profile"] = "built-in";
  drawn["memory.budget"] = "3GiB";
}

/// The plan as text, or why there is none.
std::string plan_of(const settings::RunConfig& config) {
  const auto target = make_target(config, 1);
  const auto prepared = prepare(config, *target, {});
  if (!prepared) return prepared.error().message();
  planner::PlanReport report = prepared->report;
  report.planning_seconds = 0;
  if (report.disk) report.disk->free_bytes = {};  // others write beside
  return io::to_json(planner::plan_event(report));
}

void check_seed(uint64_t seed, int& plans) {
  settings::RandomRuns random(seed);
  settings::Drawn drawn = random.draw();
  make_small(drawn);
  const auto file = random.valid(drawn);
  if (!file) return;
  const auto run = settings::parse_run_config(*file, "run.yaml");
  ASSERT_TRUE(run);
  const auto again = settings::parse_run_config(settings::run_config_yaml(*run), "run.yaml");
  ASSERT_TRUE(again) << again.error().message();
  const std::string plan = plan_of(*run);
  EXPECT_EQ(plan_of(*again), plan) << "seed " << seed << ": " << *file;
  plans += plan.starts_with("{") ? 1 : 0;
}

TEST(Prepare, ARecordedRunHasTheSamePlan) {
  const char* seconds = std::getenv("PLIMSOLL_FUZZ_SECONDS");
  const char* first = std::getenv("PLIMSOLL_FUZZ_SEED");
  uint64_t seed = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  const bool whole = std::getenv("PLIMSOLL_WHOLE_CAMPAIGN") != nullptr;  // make campaign
  const uint64_t last = seed + (whole ? 2000 : 20);
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 0);
  int plans = 0;
  for (; seed < last || std::chrono::steady_clock::now() < end; ++seed) {
    check_seed(seed, plans);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(plans, 6);
}

}  // namespace
}  // namespace plimsoll::strategy
