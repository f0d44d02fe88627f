// Llama's and GPT-2's config.json: what is read, what is refused, and the presets' sizes.
#include "models/llama_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "io/json.h"
#include "models/gpt2_config.h"
#include "models/presets.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kSmall =
    R"({"model_type": "llama", "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96,
  "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128})";
constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128})";

/// `base` with the members of `changes` over it.
ConfigJson changed(const char* base, const std::string& changes) {
  Tree tree = *parse_json(base);
  const auto over = parse_json(changes);
  EXPECT_TRUE(over) << changes;
  for (const auto& [key, value] : over->members) tree.set(key, value);  // whole values: no merging
  return ConfigJson(std::move(tree), "config.json");
}

TEST(LlamaConfig, TakesTransformersDefaults) {
  const auto c = parse_llama_config(
      changed(kSmall, R"({"num_key_value_heads": null, "max_position_embeddings": null})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->num_key_value_heads, 4);
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_EQ(c->max_position_embeddings, 2048);
  EXPECT_EQ(c->rms_norm_eps, 1e-6);
  EXPECT_EQ(c->initializer_range, 0.02);
  EXPECT_FALSE(c->tie_word_embeddings || c->attention_bias || c->mlp_bias);
  EXPECT_EQ(c->rope.theta, 10000.0);
}

TEST(LlamaConfig, ReadsBothSpellingsOfRope) {
  const char* spellings[] = {
      R"({"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "torch_dtype": "float32"})",
      R"({"rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}, "dtype": "float32"})"};
  for (const char* spelling : spellings) {
    const auto c = parse_llama_config(changed(kSmall, spelling));
    ASSERT_TRUE(c) << c.error().message();
    EXPECT_EQ(c->rope.kind, RopeConfig::Kind::kLlama3);
    EXPECT_EQ(c->rope.theta, 500000.0);
    EXPECT_EQ(c->rope.factor, 8.0);
    EXPECT_EQ(c->rope.original_max_position_embeddings, 8192);
    EXPECT_TRUE(c->unknown_fields.empty());
  }
  const auto linear =
      parse_llama_config(changed(kSmall, R"({"rope_scaling": {"type": "linear", "factor": 2}})"));
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->rope.kind, RopeConfig::Kind::kLinear);
  EXPECT_EQ(linear->rope.factor, 2.0);
}

TEST(LlamaConfig, RefusesByTheFieldsName) {
  struct Row {
    const char* changes;
    const char* what;
  };
  const Row rows[] = {
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
      {R"({"attention_dropout": 0.1})", "attention_dropout is 0.1"},
      {R"({"pretraining_tp": 2})", "pretraining_tp is 2"},
      {R"({"sliding_window": 1024})", "sliding_window"},
      {R"({"use_sliding_window": true})", "use_sliding_window"},
      {R"({"layer_types": ["full_attention", "sliding_attention"]})", "layer_types"},
      {R"({"layer_types": "full_attention"})", "layer_types"},
      {R"({"rope_scaling": {"factor": 8.0}})", "rope_type"},
      {R"({"quantization_config": {"bits": 4}})", "quantization_config is a map"},
      {R"({"attn_logit_softcapping": 30.0})", "attn_logit_softcapping"},
      {R"({"num_local_experts": 8})", "num_local_experts"},
      {R"({"model_type": "qwen2"})", "model_type is \"qwen2\", expected llama or mistral"},
      {R"({"model_type": null})", "model_type is missing"},
      {R"({"architectures": ["LlamaForSequenceClassification"]})", "architectures"},
      {R"({"rope_theta": 0})", "rope_theta"},
      {R"({"rope_theta": "big"})", "rope_theta"},
      {R"({"rope_scaling": "linear"})", "rope_scaling is \"linear\", expected an object"},
      {R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})", "rope_type is \"yarn\""},
      {R"({"rope_scaling": {"type": "dynamic", "factor": 4.0}})", "type is \"dynamic\""},
      {R"({"rope_scaling": {"type": "linear"}})", "factor is missing"},
      {R"({"rope_scaling": {"type": "linear", "factor": 0.5}})", "factor is 0.5"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}})",
       "high_freq_factor is 4.0, expected a number above low_freq_factor"},
      {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}})",
       "original_max_position_embeddings is missing"},
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
  for (const Row& row : rows) {
    const auto c = parse_llama_config(changed(kSmall, row.changes));
    ASSERT_FALSE(c) << row.changes;
    EXPECT_EQ(c.error().code, ErrorCode::kBadData) << row.changes;
    EXPECT_THAT(c.error().what, HasSubstr(row.what)) << row.changes;
    EXPECT_THAT(c.error().where, HasSubstr("config.json"));
    EXPECT_FALSE(c.error().hint.empty());
  }
}

TEST(LlamaConfig, ReadsMistralsWindow) {
  const auto c = parse_llama_config(
      changed(kSmall, R"({"model_type": "mistral", "sliding_window": 32, "head_dim": 20})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->sliding_window, 32);
  EXPECT_EQ(c->head_dim, 20);
  EXPECT_FALSE(
      parse_llama_config(changed(kSmall, R"({"model_type": "mistral", "num_key_value_heads": null})")));
}

TEST(LlamaConfig, ListsFieldsItDoesNotKnow) {
  const auto c =
      parse_llama_config(changed(kSmall, R"({"use_cache": true, "my_field": 3, "eos_token_id": [2, 3]})"));
  ASSERT_TRUE(c);
  EXPECT_THAT(c->unknown_fields, ElementsAre("my_field"));
  EXPECT_THAT(c->eos_token_ids, ElementsAre(2, 3));
}

TEST(RopeConfig, HasTransformersFrequencies) {
  // Recorded: LlamaRotaryEmbedding of transformers 5.23, head_dim 20.
  struct Row {
    RopeConfig rope;
    std::vector<float> expected;
  };
  const Row rows[] = {
      {{},
       {1.0F, 0.3981071710586548F, 0.15848931670188904F, 0.06309572607278824F, 0.025118863210082054F,
        0.009999999776482582F, 0.003981070592999458F, 0.001584893325343728F, 0.0006309573072940111F,
        0.0002511886996217072F}},
      {{.kind = RopeConfig::Kind::kLinear, .factor = 4.0},
       {0.25F, 0.0995267927646637F, 0.03962232917547226F, 0.01577393151819706F, 0.0062797158025205135F,
        0.0024999999441206455F, 0.0009952676482498646F, 0.000396223331335932F, 0.00015773932682350278F,
        6.27971749054268e-05F}},
      {{.kind = RopeConfig::Kind::kLlama3, .theta = 500000.0, .factor = 8.0},
       {1.0F, 0.269217312335968F, 0.07247795909643173F, 0.019512321799993515F, 0.005253055598586798F,
        0.0005248460220173001F, 4.759133298648521e-05F, 1.2812417480745353e-05F, 3.449323685345007e-06F,
        9.28618078432919e-07F}},
  };
  for (const Row& row : rows) {
    const std::vector<float> frequencies = row.rope.inverse_frequencies(20);
    ASSERT_EQ(frequencies.size(), row.expected.size());
    // The one in the middle of llama3's ramp cancels; the others agree to the last bit or two.
    for (size_t i = 0; i < frequencies.size(); ++i)
      EXPECT_NEAR(frequencies[i], row.expected[i], row.expected[i] * 1e-6F) << i;
  }
}

TEST(Gpt2Config, ReadsAndRefuses) {
  const auto c = parse_gpt2_config(
      changed(kGpt2, R"({"n_ctx": 128, "architectures": ["GPT2LMHeadModel"], "eos_token_id": 5})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->n_inner, 256);
  EXPECT_EQ(c->head_dim(), 16);
  EXPECT_TRUE(c->unknown_fields.empty());
  struct Row {
    const char* changes;
    const char* what;
  };
  const Row rows[] = {
      {R"({"n_embd": null})", "n_embd is missing"},
      {R"({"n_head": 5})", "n_head is 5, expected a divisor of n_embd (64)"},
      {R"({"n_layer": 0})", "n_layer"},
      {R"({"n_positions": "x"})", "n_positions"},
      {R"({"n_inner": -1})", "n_inner"},
      {R"({"vocab_size": 1.5})", "vocab_size"},
      {R"({"layer_norm_epsilon": -1})", "layer_norm_epsilon"},
      {R"({"resid_pdrop": 0.1})", "resid_pdrop is 0.1, expected 0"},
      {R"({"attn_pdrop": 0.1})", "attn_pdrop"},
      {R"({"activation_function": "relu"})", "activation_function"},
      {R"({"scale_attn_by_inverse_layer_idx": true})", "scale_attn_by_inverse_layer_idx"},
      {R"({"scale_attn_weights": false})", "scale_attn_weights"},
      {R"({"tie_word_embeddings": false})", "tie_word_embeddings"},
      {R"({"model_type": "gptj"})", "model_type"},
  };
  for (const Row& row : rows) {
    const auto bad = parse_gpt2_config(changed(kGpt2, row.changes));
    ASSERT_FALSE(bad) << row.changes;
    EXPECT_EQ(bad.error().code, ErrorCode::kBadData);
    EXPECT_THAT(bad.error().what, HasSubstr(row.what));
  }
}

TEST(Presets, HaveTheirFamiliesSizes) {
  struct Row {
    const char* name;
    int64_t parameters;
  };
  // As published or counted by transformers.
  const Row rows[] = {
      {"llama-2-7b", 6'738'415'616},     {"llama-2-13b", 13'015'864'320}, {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248},     {"llama-3.1-8b", 8'030'261'248}, {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.2-1b", 1'235'814'400},   {"llama-3.2-3b", 3'212'749'824}, {"smollm-135m", 134'515'008},
      {"smollm2-135m", 134'515'008},     {"smollm2-360m", 361'821'120},   {"smollm2-1.7b", 1'711'376'384},
      {"tinyllama-1.1b", 1'100'048'384}, {"gpt2", 124'439'808},           {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},       {"gpt2-xl", 1'557'611'200},
  };
  std::set<std::string> tested;
  for (const Row& row : rows) {
    const auto config = preset_config(row.name);
    ASSERT_TRUE(config) << row.name;
    tested.insert(row.name);
    if (*config->model_type() == "gpt2") {
      const auto c = parse_gpt2_config(*config);
      ASSERT_TRUE(c) << c.error().message();
      EXPECT_EQ(c->num_parameters(), row.parameters) << row.name;
    } else {
      const auto c = parse_llama_config(*config);
      ASSERT_TRUE(c) << c.error().message();
      EXPECT_EQ(c->num_parameters(), row.parameters) << row.name;
      EXPECT_TRUE(c->unknown_fields.empty());
    }
  }
  const auto names = preset_names();
  EXPECT_EQ(tested, std::set<std::string>(names.begin(), names.end()));
}

TEST(Presets, NamesTheNearest) {
  const auto config = preset_config("llama2-7b");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(config.error().hint, HasSubstr("llama-2-7b"));
}

}  // namespace
}  // namespace plimsoll
