// adapter_config.json: what is written reads back, and what would change the mathematics is refused by name.
#include "models/lora_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

TEST(AdapterConfig, ReadsWhatItWrites) {
  LoraSpec spec;
  spec.r = 5;
  spec.lora_alpha = 12.5;
  spec.lora_dropout = 0.25;
  spec.target_modules = {{R"(.*\.q_proj)"}, true};
  spec.exclude_modules = {{"k_proj", "o_proj"}};
  spec.layers_to_transform = {0, 3};
  spec.layers_pattern = {"layers"};
  spec.use_rslora = true;
  spec.bias = LoraBias::kLoraOnly;
  spec.modules_to_save = {"norm"};
  spec.rank_pattern = {{"q_proj", 3}};
  spec.alpha_pattern = {{"q_proj", 1.5}};
  spec.init_lora_weights = LoraInit::kOlora;
  spec.use_dora = true;
  spec.lora_bias = true;
  spec.trainable_token_indices = {"embed_tokens", {3, 7}};
  const std::string text = adapter_config_text(spec, {.base = "dir", .model_type = "llama"});
  const auto again = parse_adapter_config(text, "adapter_config.json");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(adapter_config_text(*again, {.base = "dir", .model_type = "llama"}), text);
  EXPECT_THAT(text, HasSubstr("\"peft_type\": \"LORA\""));
}

TEST(AdapterConfig, NamesTheDefaultsAndTheClassifiersHead) {
  const std::string text =
      adapter_config_text({}, {.model_type = "gpt2", .head = "score", .task = "SEQ_CLS", .transposed = true});
  EXPECT_THAT(text, HasSubstr("\"target_modules\": [\"c_attn\"]"));
  EXPECT_THAT(text, HasSubstr("\"modules_to_save\": [\"score\"]"));
  EXPECT_THAT(text, HasSubstr("\"fan_in_fan_out\": true"));
  EXPECT_THAT(text, HasSubstr("\"task_type\": \"SEQ_CLS\""));
}

TEST(AdapterConfig, SavesTheHeadOfAnImageModelAndNamesNoTask) {
  const std::string text = adapter_config_text({}, {.model_type = "vit", .head = "classifier", .task = ""});
  EXPECT_THAT(text, HasSubstr("\"target_modules\": [\"query\", \"value\"]"));
  EXPECT_THAT(text, HasSubstr("\"modules_to_save\": [\"classifier\"]"));
  EXPECT_THAT(text, HasSubstr("\"task_type\": null"));
}

TEST(AdapterConfig, ReadsTheLeast) {
  const auto spec = parse_adapter_config(R"({"peft_type": "LORA", "target_modules": ["q_proj"]})", "f");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->r, 8);
}

TEST(AdapterConfig, AnEmptyNameAloneIsNone) {
  const auto spec = parse_adapter_config(R"({"peft_type": "LORA", "modules_to_save": ""})", "a.json");
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->modules_to_save.empty());
  EXPECT_TRUE(parse_adapter_config(adapter_config_text(*spec, {.model_type = "llama"}), "again"));
}

TEST(AdapterConfig, OfLoftqSaysWhatTheBaseWasRoundedTo) {
  const auto peft = parse_adapter_config(
      R"({"peft_type": "LORA", "init_lora_weights": "loftq", "loftq_config": {"loftq_bits": 4, "loftq_iter": 3}})",
      "f");
  ASSERT_TRUE(peft) << peft.error().message();
  EXPECT_EQ(peft->loftq_config, (Loftq{.bits = 4, .iterations = 3}));
  LoraSpec spec = *peft;
  spec.loftq_config.dtype = ir::DType::kFp4Double;
  spec.loftq_config.skip_modules = {"down_proj"};
  const auto again = parse_adapter_config(adapter_config_text(spec, {.model_type = "llama"}), "again");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->init_lora_weights, LoraInit::kLoftq);
  EXPECT_EQ(again->loftq_config, spec.loftq_config);
  const auto other = parse_adapter_config(
      R"({"peft_type": "LORA", "init_lora_weights": true, "loftq_config": {"loftq_bits": 3}})", "f");
  EXPECT_TRUE(other);
}

TEST(AdapterConfig, RefusesByName) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"peft_type": "IA3"})", "adapters of type IA3 are not available"},
      {R"({"target_modules": ["q_proj"]})", "peft_type"},
      {R"({"peft_type": "LORA", "use_dora": 3})", "use_dora"},
      {R"({"peft_type": "LORA", "trainable_token_indices": [2, 1]})", "trainable_token_indices"},
      {R"({"peft_type": "LORA", "target_parameters": ["up_proj"]})", "target_parameters"},
      {R"({"peft_type": "LORA", "init_lora_weights": "pissa_niter_4"})", "init_lora_weights"},
      {R"({"peft_type": "LORA", "init_lora_weights": "corda"})", "init_lora_weights"},
      {R"({"peft_type": "LORA", "init_lora_weights": "loftq", "loftq_config": {"loftq_bits": 3}})",
       "loftq_bits"},
      {R"({"peft_type": "LORA", "init_lora_weights": "loftq", "loftq_config": {"loftq_iter": 0}})",
       "loftq_iter"},
      {R"({"peft_type": "LORA", "init_lora_weights": "loftq", "loftq_config": {"bnb_4bit_quant_type": "q4"}})",
       "bnb_4bit_quant_type"},
      {R"({"peft_type": "LORA", "r": 0})", "r is 0"},
      {R"({"peft_type": "LORA", "rank_pattern": {"q": -1}})", "rank_pattern"},
      {R"({"peft_type": "LORA", "bias": "some"})", "bias"},
      {R"({"peft_type": "LORA", "target_modules": [3]})", "target_modules"},
  };
  for (const auto& [text, what] : rows) {
    const auto spec = parse_adapter_config(text, "adapter_config.json");
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::kBadData);
    EXPECT_THAT(spec.error().message() + spec.error().hint, HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace plimsoll::models
