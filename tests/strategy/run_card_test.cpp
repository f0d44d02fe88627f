// The card that a run is planned for, where no card is here.
#include "strategy/run_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/frontier.h"
#include "analysis/remedies.h"
#include "analysis/sweep.h"
#include "devices/devices.h"
#include "io/tree.h"
#include "part_of.h"
#include "planner/cost/known_profiles.h"
#include "planner/report/budget.h"
#include "strategy/machine_rates.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

using testing::HasSubstr;

settings::RunConfig run_with(const std::vector<std::string>& overrides) {
  auto config = settings::parse_run_config("model: {preset: gpt2}\n", "run.yaml", overrides);
  EXPECT_TRUE(config) << config.error().message();
  return *config;
}

TEST(RunCard, IsWhatTheProfileNamesWhateverTheDevice) {
  EXPECT_FALSE(run_card(run_with({})));
  EXPECT_FALSE(run_card(run_with({"runtime.device=discrete", "runtime.profile=h100"})));
  for (const std::string& name : planner::card_names()) {
    const auto alone = run_card(run_with({"runtime.profile=" + name}));
    const auto both = run_card(run_with({"runtime.profile=" + name, "runtime.device=cuda"}));
    ASSERT_TRUE(alone && both) << name;
    EXPECT_EQ(alone->name, name);
    EXPECT_EQ(alone->bytes, both->bytes);
    EXPECT_EQ(alone->capability, both->capability);
    EXPECT_EQ(alone->context_bytes, planner::kCardContextBytes);
    EXPECT_EQ(alone->bytes + alone->context_bytes, planner::find_card(name)->memory_bytes);
    const auto target = make_target(run_with({"runtime.profile=" + name}), 1);
    EXPECT_EQ(target->name(), "cuda");
    EXPECT_EQ(target->memory_bytes(), alone->bytes);
    EXPECT_TRUE(check_card_is_known(run_with({"runtime.profile=" + name})));
  }
}

TEST(RunCard, LeavesRoomForNcclWhereRanksMayUseIt) {
  const auto bytes_of = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = {"runtime.profile=h100", "training.global_batch_size=16"};
    overrides.insert(overrides.end(), more.begin(), more.end());
    const settings::RunConfig config = run_with(overrides);
    const auto card = run_card(config);
    EXPECT_EQ(card->bytes + card->context_bytes, planner::find_card("h100")->memory_bytes);
    const int64_t bytes = card->context_bytes - planner::kCardContextBytes;
    EXPECT_EQ(testing::PrintToString(config.notes).find("for NCCL") != std::string::npos, bytes > 0);
    return bytes;
  };
  EXPECT_EQ(bytes_of({}), 0);
  EXPECT_EQ(bytes_of({"distributed.ranks=2", "distributed.transport=shm"}), 0);
  EXPECT_EQ(bytes_of({"distributed.ranks=2", "runtime.device=cuda:0"}), 0) << "ranks of one card";
  const int64_t two = bytes_of({"distributed.ranks=2"});
  EXPECT_GT(two, 0);
  EXPECT_EQ(bytes_of({"distributed.ranks=2", "distributed.transport=nccl"}), two);
  EXPECT_GT(bytes_of({"distributed.ranks=16"}), two);
}

TEST(RunCard, OneThatIsNotHereNeedsSomethingThatBoundsIt) {
  if (devices::cuda_card(0)) GTEST_SKIP() << "there is a card";
  const settings::RunConfig nothing = run_with({"runtime.device=cuda"});
  const Status refused = check_card_is_known(nothing);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  for (const char* strategy : {"with a card", "runtime.profile=", "memory.device_budget"})
    EXPECT_THAT(refused.error().hint, HasSubstr(strategy));
  const settings::RunConfig sized = run_with({"runtime.device=cuda", "memory.device_budget=24GB"});
  EXPECT_TRUE(check_card_is_known(sized));
  EXPECT_FALSE(run_card(sized)->profile) << "of a size alone no rates are known";
  EXPECT_EQ(run_profile(sized, *make_target(sized, 1))->rates, planner::kUnknownRates);
  EXPECT_FALSE(check_card_is_known(run_with({"runtime.device=cuda", "memory.device_budget=50%"})));
}

TEST(RunCard, IsHereBeforeARunBegins) {
  if (devices::cuda_card(0)) GTEST_SKIP() << "there is a card";
  EXPECT_TRUE(check_card_is_here(run_with({})));
  const Status named = check_card_is_here(run_with({"runtime.profile=h100"}));
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(check_card_is_here(run_with({"runtime.device=cuda"})));
}

/// Ten cards and eight questions: each has one answer, with runtime.device and without it, within the card;
/// and what a least budget, a sweep or a remedy says holds when that run is planned by itself.
class Questions {
 public:
  explicit Questions(std::string card) : card_(std::move(card)) {}

  /// The plan's event without what its clock says, or what it is refused with.
  [[nodiscard]] std::string answer(std::vector<std::string> overrides) const {
    std::string answers[2];
    for (const bool names_device : {false, true}) {
      const auto config = config_of(overrides, names_device);
      std::string& answer = answers[names_device ? 1 : 0];
      if (!config) {
        answer = config.error().what;
        continue;
      }
      auto planned = prepare(*config, *make_target(*config, 1), options());
      if (!planned) {
        EXPECT_EQ(planned.error().code, ErrorCode::kInvalidArgument);
        EXPECT_FALSE(planned.error().hint.empty());
        answer = planned.error().what;
        continue;
      }
      EXPECT_EQ(planned->report.rates, "data sheet");
      EXPECT_EQ(planned->report.profile, card_);
      const int64_t most = planner::find_card(card_)->memory_bytes - planner::kCardContextBytes;
      EXPECT_EQ(planned->report.fits,
                planned->report.device_peak_bytes() <= most && planner::excess_bytes(planned->report) <= 0);
      planned->report.planning_seconds = 0;
      answer = io::to_json(planner::plan_event(planned->report));
    }
    EXPECT_EQ(answers[0], answers[1]) << card_;
    return answers[0];
  }
  [[nodiscard]] planner::PlanReport plan(const SettingTexts& settings) const {
    const auto config = config_of({}, false);
    const auto changed = with_settings(*config, settings);
    EXPECT_TRUE(changed);
    auto planned = prepare(*changed, *make_target(*changed, 1), options());
    EXPECT_TRUE(planned) << card_;
    return std::move(planned->report);
  }
  [[nodiscard]] Result<settings::RunConfig> config_of(const std::vector<std::string>& overrides,
                                                      bool names_device) const {
    std::vector<std::string> all = overrides;
    all.push_back("runtime.profile=" + card_);
    if (names_device) all.emplace_back("runtime.device=cuda");
    return settings::parse_run_config(kRun, "run.yaml", all);
  }
  /// Whatever this machine has free.
  [[nodiscard]] static PrepareOptions options() {
    constexpr int64_t kGiB = int64_t{1} << 30;
    return {.memory = MachineMemory{64 * kGiB, 64 * kGiB, 48 * kGiB, ""}, .request = PlanRequest::kReport};
  }

 private:
  static constexpr const char* kRun =
      "model: {config: {model_type: llama, vocab_size: 2048, hidden_size: 2048, intermediate_size: 5632, "
      "num_hidden_layers: 2, num_attention_heads: 16, num_key_value_heads: 8, max_position_embeddings: "
      "65536, "
      "tie_word_embeddings: true}}\n"
      "data: {sequence_length: 8192}\n"
      "training: {global_batch_size: 64, max_steps: 2, precision: fp16}\nruntime: {threads: 1}\n";
  std::string card_;
};

class TenCards : public testing::TestWithParam<const char*> {};

TEST_P(TenCards, EightQuestionsHaveOneAnswerEach) {
  const Questions questions(GetParam());
  EXPECT_THAT(questions.answer({}), HasSubstr("\"fits\": true"));
  EXPECT_THAT(questions.answer({"memory.offload=none"}), HasSubstr("\"fits\": true"));
  EXPECT_THAT(questions.answer({"lora={r: 8, target_modules: all-linear}"}), HasSubstr("\"fits\": true"));
  EXPECT_THAT(questions.answer({"training.micro_batch_size=64", "memory.recompute=none",
                                "memory.offload=none", "data.sequence_length=65536"}),
              HasSubstr("\"fits\": false"));
  EXPECT_THAT(questions.answer({"memory.host_budget=64MiB"}), HasSubstr("\"fits\": false"));
  EXPECT_THAT(questions.answer({"training.optimizer=adamw_8bit"}), HasSubstr("\"fits\": true"));
  EXPECT_THAT(questions.answer({"training.optimizer=muon"}), HasSubstr("\"fits\": true"));
  EXPECT_THAT(questions.answer({"lora={r: 8, target_modules: all-linear, use_dora: true}",
                                "quantization={load_in_4bit: true, bnb_4bit_use_double_quant: true}"}),
              HasSubstr("\"fits\": true"));
}

TEST_P(TenCards, WhatALeastSaysHoldsByItself) {
  const Questions questions(GetParam());
  const int64_t least = questions.plan({{"memory.device_budget", "1"}}).device_peak_bytes();
  EXPECT_TRUE(questions.plan({{"memory.device_budget", std::to_string(least)}}).fits);
  EXPECT_FALSE(questions.plan({{"memory.device_budget", std::to_string(least - 1)}}).fits);
}

INSTANTIATE_TEST_SUITE_P(Cards, TenCards,
                         testing::ValuesIn(part_of<const char*>({"t4", "l4", "a10g", "a100-40", "a100-80",
                                                                 "h100", "h200", "b200", "rtx4090",
                                                                 "rtx-pro-6000"},
                                                                2)));

TEST(Cards, WhatASweepAFrontierAndARemedySayHoldsByItself) {
  const Questions questions("rtx4090");
  const auto config = questions.config_of({}, false);
  const auto target = make_target(*config, 1);
  const Variants variants(*config, *target, Questions::options());
  const std::vector<analysis::SweepAxis> axes = {
      *analysis::parse_sweep("training.micro_batch_size=max", *config)};
  const auto sweep = analysis::plan_sweep(variants, axes);
  ASSERT_TRUE(sweep);
  const std::string& largest = sweep->rows[0].values[0];
  EXPECT_EQ(sweep->budget, "memory.device_budget");
  EXPECT_TRUE(questions.plan({{"training.micro_batch_size", largest}}).fits);
  const std::string next = std::to_string(2 * std::stoll(largest));
  EXPECT_EQ(largest == "64" || !questions.plan({{"training.micro_batch_size", next}}).fits, true);

  const auto base = prepare(*config, *target, Questions::options());
  ASSERT_TRUE(base);
  const auto frontier = analysis::plan_frontier(variants, *base);
  ASSERT_TRUE(frontier);
  const int64_t least = questions.plan({{"memory.device_budget", "1"}}).device_peak_bytes();
  EXPECT_EQ(frontier->points.front().peak_bytes, least) << "the first point is what a refusal names";

  const SettingTexts tight = {{"memory.device_budget", std::to_string(least - 1)}};
  const auto changed = with_settings(*config, tight);
  auto refused = prepare(*changed, *target, Questions::options());
  ASSERT_TRUE(refused);
  ASSERT_FALSE(refused->report.fits);
  analysis::add_remedies(*changed, *target, Questions::options(), *refused);
  for (const planner::Remedy& remedy : refused->report.remedies) {
    SettingTexts all = tight;
    all.insert(all.end(), remedy.settings.begin(), remedy.settings.end());
    EXPECT_TRUE(questions.plan(all).fits) << remedy.text();
  }
}

/// The one page from a card: bench/results/2026-11-23-card-nvidia-h100.md. Its attention ran on FMA units,
/// which bf16 has left since: until matrix units are measured, that page bounds those estimates from below
/// only.
TEST(Cards, EstimatesAreWithinAFactorOfTwoOfTheMeasuredPage) {
  struct Work {
    double tokens_per_second;
    std::string run;
  };
  const std::string smollm = "model: {preset: smollm-135m}\ndata: {sequence_length: 512}\n";
  const std::vector<Work> works = {
      {8459,
       "model: {preset: llama-2-7b}\ndata: {sequence_length: 1024}\n"
       "training: {global_batch_size: 8, precision: bf16, state: {weights: bf16}}\n"
       "lora: {r: 16, target_modules: [q_proj, k_proj, v_proj, o_proj]}\nmemory: {device_budget: 22.5GiB}\n"},
      {16827, smollm + "training: {global_batch_size: 1}\n"},
      {24735, smollm + "training: {global_batch_size: 1, precision: bf16}\n"},
      {31587, smollm + "training: {global_batch_size: 4}\n"},
      {76103, smollm + "training: {global_batch_size: 4, precision: bf16}\n"}};
  for (const Work& work : works) {
    const auto config =
        settings::parse_run_config(work.run, "run.yaml", std::vector<std::string>{"runtime.profile=h100"});
    ASSERT_TRUE(config) << config.error().message();
    const auto planned = prepare(*config, *make_target(*config, 1), Questions::options());
    ASSERT_TRUE(planned);
    const double ratio = planned->report.units_per_second() / work.tokens_per_second;
    const bool has_left_fma = work.run.find("bf16") != std::string::npos;
    EXPECT_GT(ratio, has_left_fma ? 1.0 : 0.5) << work.run;
    EXPECT_LT(ratio, has_left_fma ? 5.0 : 2.0) << work.run;
  }
}

}  // namespace
}  // namespace plimsoll::strategy
