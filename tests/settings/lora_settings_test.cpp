// lora: PEFT's defaults, what a plain string means, patterns of the command line, what contradicts.
#include "settings/lora_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Result<RunConfig> parse_lora(const std::string& lora, std::vector<std::string> overrides = {}) {
  return parse_run_config("model: {preset: gpt2}\nlora: " + lora + "\n", "run.yaml", overrides);
}

models::LoraSpec spec_of(const std::string& lora, std::vector<std::string> overrides = {}) {
  const auto run = parse_lora(lora, std::move(overrides));
  EXPECT_TRUE(run) << (run ? "" : run.error().message());
  const auto spec = lora_spec(run->lora);
  EXPECT_TRUE(spec);
  return *spec;
}

TEST(LoraSettings, HaveThePeftDefaults) {
  const models::LoraSpec spec = spec_of("{}");
  EXPECT_EQ(spec.r, 8);
  EXPECT_EQ(spec.lora_alpha, 8);
  EXPECT_EQ(spec.lora_dropout, 0);
  EXPECT_FALSE(spec.target_modules.given() || spec.use_rslora);
  EXPECT_EQ(spec.bias, models::LoraBias::kNone);
  EXPECT_EQ(spec.init_lora_weights, models::LoraInit::kTrue);
  EXPECT_FALSE(parse_lora("null")->lora.enabled);
}

TEST(LoraSettings, AStringIsAPatternAndAListHasNames) {
  EXPECT_EQ(spec_of("{target_modules: [q_proj, v_proj]}").target_modules,
            (models::ModuleNames{{"q_proj", "v_proj"}, false}));
  EXPECT_EQ(spec_of("{target_modules: '.*_proj'}").target_modules, (models::ModuleNames{{".*_proj"}, true}));
  EXPECT_EQ(spec_of("{}", {"lora.target_modules=all-linear"}).target_modules,
            (models::ModuleNames{{"all-linear"}, true}));
}

TEST(LoraSettings, AreRecordedAsTheyWere) {
  const auto run = parse_lora(
      "{r: 4, target_modules: '.*\\.q_proj', rank_pattern: {a.b: 3}, "
      "use_rslora: true, init_lora_weights: false, modules_to_save: [score]}");
  ASSERT_TRUE(run) << run.error().message();
  const auto again = parse_run_config(run_config_yaml(*run), "again");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(changed_what(*run, *again).empty());
  EXPECT_TRUE(again->lora.target_modules.is_pattern);
}

/// A dotted pattern in an override's path comes as nested maps.
TEST(LoraSettings, PatternsKeepTheirDots) {
  EXPECT_THAT(spec_of("{rank_pattern: {'layers.0.q_proj': 3, k_proj: 5}}").rank_pattern,
              ElementsAre(Pair("layers.0.q_proj", 3), Pair("k_proj", 5)));
  EXPECT_THAT(spec_of("{}", {"lora.alpha_pattern.layers.0.q_proj=2.5"}).alpha_pattern,
              ElementsAre(Pair("layers.0.q_proj", 2.5)));
}

TEST(LoraSettings, RefuseWhatContradicts) {
  const std::pair<std::string, std::string> rows[] = {
      {"{r: 0}", "lora.r is 0"},
      {"{rank_pattern: {q_proj: 0}}", "lora.rank_pattern: q_proj is 0"},
      {"{layers_to_transform: [first]}", "'first' is no layer"},
      {"{target_modules: 'a.*', layers_to_transform: [1]}", "no effect with a pattern"},
      {"{}\noutput: {dtype: bf16}", "adapters are stored in fp32"},
      {"{}\ntraining: {unfreeze: [lm_head.weight]}", "unfreeze has no effect with lora"},
      {"{init_lora_weights: eva}", "which is not available in this version"},
      {"{init_lora_weights: loftq, loftq_config: {loftq_bits: 6}}", "loftq_bits is 6"},
      {"{loftq_config: {loftq_iter: 2}}", "has no effect with lora.init_lora_weights true"},
      {"{trainable_token_indices: [x]}", "'x' is no token"},
  };
  for (const auto& [lora, what] : rows) {
    const auto run = parse_lora(lora);
    ASSERT_FALSE(run) << lora;
    EXPECT_THAT(run.error().what, HasSubstr(what));
  }
}

TEST(LoraSettings, KindsOfAdapters) {
  const models::LoraSpec spec =
      spec_of("{use_dora: true, init_lora_weights: pissa_niter_4, trainable_token_indices: [9, 3, 9]}");
  EXPECT_TRUE(spec.use_dora);
  EXPECT_EQ(spec.init_lora_weights, models::LoraInit::kPissa);
  EXPECT_THAT(spec.trainable_token_indices.tokens, ElementsAre(3, 9));
  EXPECT_EQ(spec_of("{init_lora_weights: olora}").init_lora_weights, models::LoraInit::kOlora);
  const models::LoraSpec loftq = spec_of("{init_lora_weights: loftq, loftq_config: {loftq_iter: 5}}");
  EXPECT_EQ(loftq.init_lora_weights, models::LoraInit::kLoftq);
  EXPECT_EQ(loftq.loftq_config, (models::Loftq{.bits = 0, .iterations = 5}));
  EXPECT_TRUE(spec_of("{lora_bias: true}").lora_bias);
}

TEST(LoraSettings, AnAdapterIsWhatItIs) {
  models::LoraSpec adapter;
  adapter.r = 16;
  const auto given = [](const char* lora) { return parse_lora(lora)->lora; };
  EXPECT_TRUE(check_adapter_agrees(given("{adapter: dir}"), adapter, "dir"));
  EXPECT_TRUE(check_adapter_agrees(given("{adapter: dir, r: 16, lora_dropout: 0.1}"), adapter, "dir"));
  const Status other = check_adapter_agrees(given("{adapter: dir, r: 8}"), adapter, "dir");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("lora.r is 8, and the adapter"));
}

}  // namespace
}  // namespace plimsoll::settings
