#include "analysis/choose_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

constexpr const char* kBatchRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 128, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: auto, max_steps: 2}\nruntime: {threads: "
    "1}\n";

Result<BatchChoice> choice(const std::string& budget, const char* instruction_set = "avx2") {
  const strategy::RatesFile rates(planner::generic_cpu(instruction_set));
  const auto config = settings::parse_run_config(
      kBatchRun, "run.yaml", std::vector<std::string>{"memory.budget=" + budget, rates.setting()});
  EXPECT_TRUE(config);
  EXPECT_TRUE(config->training.chooses_global_batch_size);
  const auto target = strategy::make_target(*config, 1);
  return choose_batch(strategy::Variants(*config, *target, {}));
}

class ChooseBatch : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(EachInstructionSet, ChooseBatch,
                         testing::ValuesIn(strategy::some_instruction_sets()),
                         [](const auto& set) { return std::string(set.param); });

TEST_P(ChooseBatch, TakesTheLeastThatIsNearlyTheFastest) {
  const auto found = choice("64MiB", GetParam());
  ASSERT_TRUE(found);
  double fastest = 0;
  for (const SweepRow& row : found->curve.rows) {
    EXPECT_TRUE(row.report->fits) << row.values[0];
    EXPECT_EQ(row.report->grad_accum_steps, 1);
    fastest = std::max(fastest, row.report->units_per_second());
  }
  ASSERT_GE(found->curve.rows.size(), 3u);
  for (size_t i = 0; i <= found->chosen; ++i)
    EXPECT_EQ(found->curve.rows[i].report->units_per_second() >= 0.98 * fastest, i == found->chosen) << i;
  const std::string chosen = found->curve.rows[found->chosen].values[0];
  EXPECT_EQ(batches_event(*found).find("chosen")->text, chosen);
  EXPECT_THAT(batches_table(*found), testing::HasSubstr("auto is " + chosen));
  EXPECT_THAT(batches_table(*found), testing::HasSubstr("8 to 64 sequences"));
}

TEST(ChooseBatchErrors, ASequenceThatDoesNotFitIsAnError) {
  const auto found = choice("1MiB");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kDoesNotFit);
  EXPECT_THAT(found.error().hint, testing::HasSubstr("memory.budget must be at least"));
}

TEST(ChooseBatchErrors, HowItIsRunIsNotGivenBeside) {
  const auto config = settings::parse_run_config(kBatchRun, "run.yaml",
                                                 std::vector<std::string>{"training.micro_batch_size=2"});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::analysis
