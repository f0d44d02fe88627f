// The config.json of each family of Llama's kind: what is read, transformers' defaults, what is refused.
#include "models/decoder_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"

namespace plimsoll::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmall =
    R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128})";
constexpr const char* kMistral =
    R"({"model_type": "mistral", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128})";
constexpr const char* kQwen2 =
    R"({"model_type": "qwen2", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128})";

TEST(LlamaConfig, TakesTransformersDefaults) {
  const auto c =
      parse_as("llama", changed(kSmall, R"({"num_key_value_heads": null, "max_position_embeddings": null})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->num_key_value_heads, 4);
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_EQ(c->max_position_embeddings, 2048);
  EXPECT_EQ(c->rms_norm_eps, 1e-6);
  EXPECT_EQ(c->initializer_range, 0.02);
  EXPECT_FALSE(c->tie_word_embeddings || c->qkv_bias || c->o_bias || c->mlp_bias || c->qk_norm);
  EXPECT_THAT(c->windows, ElementsAre(0, 0));
  EXPECT_EQ(c->rope.theta, 10000.0);
}

TEST(LlamaConfig, ReadsBothSpellingsOfRope) {
  const char* spellings[] = {
      R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "torch_dtype": "float32"})",
      R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "dtype": "float32"})"};
  for (const char* spelling : spellings) {
    const auto c = parse_as("llama", changed(kSmall, spelling));
    ASSERT_TRUE(c) << c.error().message();
    EXPECT_EQ(c->rope.kind, RopeConfig::Kind::kLlama3);
    EXPECT_EQ(c->rope.theta, 500000.0);
    EXPECT_EQ(c->rope.factor, 8.0);
    EXPECT_EQ(c->rope.original_max_position_embeddings, 8192);
    EXPECT_TRUE(c->unknown_fields.empty());
  }
  const auto linear =
      parse_as("llama", changed(kSmall, R"({"rope_scaling": {"type": "linear", "factor": 2}})"));
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->rope.kind, RopeConfig::Kind::kLinear);
  EXPECT_EQ(linear->rope.factor, 2.0);
}

TEST(LlamaConfig, RefusesByTheFieldsName) {
  const Refusal rows[] = {
      {R"({"vocab_size": null})", "vocab_size is missing"},
      {R"({"vocab_size": 0})", "vocab_size is 0"},
      {R"({"vocab_size": "100"})", "vocab_size is \"100\""},
      {R"({"vocab_size": 1e3})", "vocab_size is 1e3"},
      {R"({"vocab_size": 9223372036854775807})", "vocab_size is 9223372036854775807"},
      {R"({"hidden_size": null})", "hidden_size is missing"},
      {R"({"hidden_size": -64})", "hidden_size is -64"},
      {R"({"hidden_size": 1099511627776})", "hidden_size"},
      {R"({"hidden_size": 66})", "num_attention_heads is 4, expected a divisor of hidden_size (66)"},
      {R"({"intermediate_size": 0})", "intermediate_size"},
      {R"({"intermediate_size": [1]})", "intermediate_size is a list"},
      {R"({"num_hidden_layers": null})", "num_hidden_layers is missing"},
      {R"({"num_hidden_layers": 1000000})", "num_hidden_layers"},
      {R"({"num_attention_heads": null})", "num_attention_heads is missing"},
      {R"({"num_attention_heads": 0})", "num_attention_heads"},
      {R"({"num_key_value_heads": 3})",
       "num_key_value_heads is 3, expected a divisor of num_attention_heads (4)"},
      {R"({"num_key_value_heads": -1})", "num_key_value_heads"},
      {R"({"head_dim": 15})", "head_dim is 15, expected an even number"},
      {R"({"head_dim": 1000000})", "head_dim"},
      {R"({"hidden_size": 4})", "head_dim"},
      {R"({"num_attention_heads": 65536, "num_key_value_heads": 1, "head_dim": 16384})", "heads * head_dim"},
      {R"({"max_position_embeddings": -1})", "max_position_embeddings"},
      {R"({"rms_norm_eps": -1e-5})", "rms_norm_eps"},
      {R"({"rms_norm_eps": "small"})", "rms_norm_eps"},
      {R"({"initializer_range": -0.1})", "initializer_range"},
      {R"({"tie_word_embeddings": 1})", "tie_word_embeddings is 1, expected true or false"},
      {R"({"attention_bias": "no"})", "attention_bias"},
      {R"({"mlp_bias": 0})", "mlp_bias"},
      {R"({"hidden_act": "gelu"})", "hidden_act is \"gelu\", expected \"silu\""},
      {R"({"attention_dropout": 1.0})", "attention_dropout is 1.0"},
      {R"({"attention_dropout": -0.1})", "attention_dropout is -0.1"},
      {R"({"pad_token_id": 100})", "pad_token_id is 100, expected an integer from -100 to 99"},
      {R"({"no_rope_layers": [1, 0]})", "no_rope_layers"},
      {R"({"sliding_window": 1024})", "sliding_window"},
      {R"({"use_sliding_window": true})", "use_sliding_window"},
      {R"({"layer_types": ["full_attention", "sliding_attention"]})", "layer_types"},
      {R"({"layer_types": "full_attention"})", "layer_types"},
      {R"({"rope_scaling": {"factor": 8.0}})", "rope_type"},
      {R"({"attn_logit_softcapping": 30.0})", "attn_logit_softcapping"},
      {R"({"num_local_experts": 8})", "num_local_experts"},
      {R"({"model_type": "qwen2"})", "model_type is \"qwen2\", expected llama"},
      {R"({"model_type": null})", "model_type is missing"},
      {R"({"architectures": ["LlamaForTokenClassification"]})", "architectures"},
      {R"({"rope_theta": 0})", "rope_theta"},
      {R"({"rope_theta": "big"})", "rope_theta"},
      {R"({"rope_scaling": "linear"})", "rope_scaling is \"linear\", expected an object"},
      {R"({"rope_scaling": {"rope_type": "longrope", "factor": 4.0}})", "rope_type is \"longrope\""},
      {R"({"rope_scaling": {"type": "linear"}})", "factor is missing"},
      {R"({"rope_scaling": {"type": "linear", "factor": 0.5}})", "factor is 0.5"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}})",
       "high_freq_factor is 4.0, expected a number above low_freq_factor"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}})",
       "high_freq_factor is missing"},
      {R"({"rope_parameters": {"full_attention": {"rope_type": "default"}}})", "full_attention"},
      {R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}})",
       "partial_rotary_factor"},
      {R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor"},
      {R"({"rope_theta": 10000.0, "rope_parameters": {"rope_theta": 20000.0}})",
       "rope_theta is 10000.0, expected 20000"},
      {R"({"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "default"}})",
       "rope_scaling"},
      {R"({"eos_token_id": "x"})", "eos_token_id"},
      {R"({"bos_token_id": -2})", "bos_token_id"},
  };
  for (const Refusal& row : rows) {
    const auto c = parse_as("llama", changed(kSmall, row.changes));
    ASSERT_FALSE(c) << row.changes;
    EXPECT_EQ(c.error().code, ErrorCode::kBadData) << row.changes;
    EXPECT_THAT(c.error().what, HasSubstr(row.what)) << row.changes;
    EXPECT_THAT(c.error().where, HasSubstr("config.json"));
    EXPECT_FALSE(c.error().hint.empty());
  }
}

TEST(LlamaConfig, ReadsWhereNoTokenTrainsTheEmbedding) {
  const auto padding = [](const char* changes) {
    return parse_as("llama", changed(kSmall, changes))->pad_token_id;
  };
  EXPECT_EQ(padding("{}"), std::nullopt);
  EXPECT_EQ(padding(R"({"pad_token_id": null})"), std::nullopt);
  EXPECT_EQ(padding(R"({"pad_token_id": 7})"), 7);
  EXPECT_EQ(padding(R"({"pad_token_id": -1})"), 99);  // torch counts from the end
}

TEST(MistralConfig, ReadsItsWindow) {
  const auto windows = [](const char* changes) {
    const auto c = parse_as("mistral", changed(kMistral, changes));
    EXPECT_TRUE(c) << c.error().message();
    return c ? c->windows : std::vector<int64_t>{};
  };
  EXPECT_THAT(windows(R"({"sliding_window": 32})"), ElementsAre(32, 32));
  EXPECT_THAT(windows(R"({"sliding_window": null})"), ElementsAre(0, 0));
  EXPECT_THAT(windows("{}"), ElementsAre(4096, 4096));
  EXPECT_THAT(windows(R"({"sliding_window": 8, "layer_types": ["sliding_attention", "sliding_attention"]})"),
              ElementsAre(8, 8));
  const auto c = parse_as("mistral", changed(kMistral, R"({"head_dim": 20, "num_key_value_heads": null})"));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->head_dim, 20);
  EXPECT_EQ(c->num_key_value_heads, 4);
  EXPECT_EQ(c->max_position_embeddings, 128);
}

TEST(MistralConfig, RefusesByTheFieldsName) {
  const Refusal rows[] = {
      {R"({"attention_bias": true})", "attention_bias"},
      {R"({"mlp_bias": true})", "mlp_bias"},
      {R"({"sliding_window": 0})", "sliding_window is 0"},
      {R"({"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]})", "layer_types"},
      {R"({"model_type": "llama"})", "model_type is \"llama\", expected mistral"},
  };
  for (const Refusal& row : rows) {
    const auto c = parse_as("mistral", changed(kMistral, row.changes));
    ASSERT_FALSE(c) << row.changes;
    EXPECT_THAT(c.error().what, HasSubstr(row.what));
  }
  const auto c = parse_as("mistral", *io::parse_config_json(R"({"model_type": "mistral", "vocab_size": 9,
      "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2})",
                                                            "x"));
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().what, HasSubstr("num_key_value_heads is missing"));
}

TEST(Qwen2Config, HasBiasesOnQkvAlone) {
  const auto c = parse_as("qwen2", changed(kQwen2, "{}"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_TRUE(c->qkv_bias);
  EXPECT_FALSE(c->o_bias || c->mlp_bias || c->qk_norm);
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_TRUE(c->unknown_fields.empty());
}

TEST(Qwen2Config, SlidesInTheLayersThatSaySo) {
  const auto windows = [](const char* changes) {
    const auto c = parse_as("qwen2", changed(kQwen2, changes));
    EXPECT_TRUE(c) << c.error().message();
    return c ? c->windows : std::vector<int64_t>{};
  };
  // As Qwen2Config of transformers 5.23 fills layer_types.
  EXPECT_THAT(windows("{}"), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(R"({"sliding_window": 16, "max_window_layers": 1})"), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "sliding_window": 16, "max_window_layers": 1})"),
              ElementsAre(0, 16, 16));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "sliding_window": 16})"), ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "max_window_layers": 2})"), ElementsAre(0, 0, 4096));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "sliding_window": null, "max_window_layers": 0})"),
              ElementsAre(0, 0, 0));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "sliding_window": 5, "max_window_layers": 0,
                          "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]})"),
              ElementsAre(5, 0, 5));
}

TEST(Qwen2Config, RefusesByTheFieldsName) {
  const Refusal rows[] = {
      {R"({"layer_types": ["full_attention"]})", "layer_types is a list"},
      {R"({"layer_types": ["full_attention", "full_attention", "linear_attention"]})", "layer_types"},
      {R"({"layer_types": ["full_attention", "full_attention", "sliding_attention"]})", "layer_types"},
      {R"({"use_sliding_window": 1})", "use_sliding_window is 1"},
      {R"({"max_window_layers": -1})", "max_window_layers is -1"},
      {R"({"mlp_bias": true})", "mlp_bias"},
      {R"({"attention_bias": true})", "attention_bias"},
      {R"({"num_experts": 8})", "num_experts"},
      {R"({"hidden_act": "gelu"})", "hidden_act"},
      {R"({"rope_scaling": {"type": "mrope", "mrope_section": [1, 2]}})", "type is \"mrope\""},
      {R"({"model_type": "qwen2_moe"})", "model_type is \"qwen2_moe\", expected qwen2"},
  };
  for (const Refusal& row : rows) {
    const auto c = parse_as("qwen2", changed(kQwen2, row.changes));
    ASSERT_FALSE(c) << row.changes;
    EXPECT_EQ(c.error().code, ErrorCode::kBadData);
    EXPECT_THAT(c.error().what, HasSubstr(row.what)) << row.changes;
  }
}

TEST(Qwen3Config, NormsQueriesAndKeys) {
  const auto c = parse_as("qwen3", changed(kQwen2, R"({"model_type": "qwen3"})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_TRUE(c->qk_norm);
  EXPECT_FALSE(c->qkv_bias || c->o_bias || c->mlp_bias);
  EXPECT_EQ(c->head_dim, 128);  // transformers' default, whatever the width
  const auto biased =
      parse_as("qwen3", changed(kQwen2, R"({"model_type": "qwen3", "head_dim": 20, "attention_bias": true,
          "use_sliding_window": true, "sliding_window": 9, "max_window_layers": 2})"));
  ASSERT_TRUE(biased);
  EXPECT_EQ(biased->head_dim, 20);
  EXPECT_TRUE(biased->qkv_bias && biased->o_bias);
  EXPECT_THAT(biased->windows, ElementsAre(0, 0, 9));
}

TEST(LlamaConfig, ListsFieldsItDoesNotKnow) {
  const auto c =
      parse_as("llama", changed(kSmall, R"({"use_cache": true, "my_field": 3, "eos_token_id": [2, 3]})"));
  ASSERT_TRUE(c);
  EXPECT_THAT(c->unknown_fields, ElementsAre("my_field"));
  EXPECT_THAT(c->eos_token_ids, ElementsAre(2, 3));
}

}  // namespace
}  // namespace plimsoll::models
