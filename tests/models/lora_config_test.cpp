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
      adapter_config_text({}, {.model_type = "gpt2", .classifies = true, .transposed = true});
  EXPECT_THAT(text, HasSubstr("\"target_modules\": [\"c_attn\"]"));
  EXPECT_THAT(text, HasSubstr("\"modules_to_save\": [\"score\"]"));
  EXPECT_THAT(text, HasSubstr("\"fan_in_fan_out\": true"));
  EXPECT_THAT(text, HasSubstr("\"task_type\": \"SEQ_CLS\""));
}

TEST(AdapterConfig, ReadsTheLeast) {
  const auto spec = parse_adapter_config(R"({"peft_type": "LORA", "target_modules": ["q_proj"]})", "f");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(spec->r, 8);
}

TEST(AdapterConfig, RefusesByName) {
  const std::pair<const char*, const char*> rows[] = {
      {R"({"peft_type": "IA3"})", "adapters of type IA3 are not available"},
      {R"({"target_modules": ["q_proj"]})", "peft_type"},
      {R"({"peft_type": "LORA", "use_dora": 3})", "use_dora"},
      {R"({"peft_type": "LORA", "trainable_token_indices": [2, 1]})", "trainable_token_indices"},
      {R"({"peft_type": "LORA", "target_parameters": ["up_proj"]})", "target_parameters"},
      {R"({"peft_type": "LORA", "init_lora_weights": "pissa_niter_4"})", "init_lora_weights"},
      {R"({"peft_type": "LORA", "init_lora_weights": "loftq"})", "init_lora_weights"},
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
