// What ranks share where the mode is left to the budget.
#include "strategy/rank_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings.h"
#include "strategy/plan_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

using settings::RankMode;

constexpr const char* kRun =
    "model: {config: {model_type: llama, vocab_size: 16384, hidden_size: 128, intermediate_size: 512, "
    "num_hidden_layers: 8, num_attention_heads: 4, num_key_value_heads: 4, max_position_embeddings: 256, "
    "tie_word_embeddings: false}}\n"
    "data: {sequence_length: 64}\n"
    "training: {global_batch_size: 4, max_steps: 2}\n"
    "distributed: {ranks: 4}\n"
    "runtime: {threads: 1}\n";

class RankModes : public testing::Test {
 protected:
  RankMode mode_within(const std::string& budget, std::vector<std::string> more = {}) {
    more.push_back("memory.budget=" + budget);
    more.push_back(rates_.setting());
    const auto config = settings::parse_run_config(kRun, "run.yaml", more);
    EXPECT_TRUE(config);
    const auto chosen =
        with_rank_mode(*config, *make_target(*config, 1), {}, [&](const std::string& text) { note_ = text; });
    EXPECT_TRUE(chosen);
    return chosen->distributed.mode;
  }
  const RatesFile rates_{planner::generic_cpu("avx2")};
  std::string note_;
};

TEST_F(RankModes, ShareNoMoreThanTheBudgetAsksFor) {
  EXPECT_EQ(mode_within("4GiB"), RankMode::kDdp);
  EXPECT_EQ(note_, "");
  RankMode last = RankMode::kDdp;
  std::vector<RankMode> seen = {last};
  for (int mib = 130; mib >= 60; mib -= 10) {
    const RankMode mode = mode_within(std::to_string(mib) + "MiB");
    EXPECT_GE(mode, last) << mib;
    if (mode != last) seen.push_back(mode);
    last = mode;
  }
  EXPECT_THAT(seen,
              testing::ElementsAre(RankMode::kDdp, RankMode::kZero1, RankMode::kZero2, RankMode::kZero3));
  EXPECT_THAT(note_, testing::HasSubstr("distributed.mode: auto is zero3"));
}

/// Of a small model buffers for what ranks exchange take more than a shared state saves.
TEST_F(RankModes, WhereNoneFitsTheOneThatNeedsLeastIsTaken) {
  const std::vector<std::string> small = {
      "model.overrides={vocab_size: 300, num_hidden_layers: 1, hidden_size: 64, intermediate_size: 152}",
      "training.global_batch_size=8", "training.micro_batch_size=1"};
  EXPECT_EQ(mode_within("1MiB", small), RankMode::kDdp);
  EXPECT_EQ(mode_within("1MiB"), RankMode::kZero3);
}

/// Several micro-batches would be added in another order.
TEST_F(RankModes, KeepTheBits) {
  EXPECT_EQ(mode_within("40MiB", {"training.global_batch_size=8", "training.micro_batch_size=1"}),
            RankMode::kZero1);
}

TEST_F(RankModes, AreLeftAloneWhereTheRunSaysThem) {
  EXPECT_EQ(mode_within("40MiB", {"distributed.mode=ddp"}), RankMode::kDdp);
  EXPECT_EQ(mode_within("40MiB", {"distributed.ranks=1"}), RankMode::kAuto);
}

}  // namespace
}  // namespace plimsoll::strategy
