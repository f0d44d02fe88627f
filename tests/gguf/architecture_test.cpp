#include "gguf/architecture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::gguf {
namespace {

using testing::HasSubstr;

constexpr const char* kDecoder =
    R"("vocab_size": 100, "hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2,
       "num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 64, "rms_norm_eps": 1e-5)";

Result<Architecture> architecture(const std::string& fields) {
  return Architecture::create(*io::parse_config_json("{" + fields + "}", "config.json"));
}
std::string decoder(const std::string& type, const std::string& more = "") {
  return "\"model_type\": \"" + type + "\", " + kDecoder + more;
}

TEST(Architecture, NamesTensorsAndRowsAsLlamaCppDoes) {
  const auto llama = architecture(decoder("mistral", ", \"sliding_window\": null"));
  ASSERT_TRUE(llama) << llama.error().message();
  EXPECT_EQ(llama->name(), "llama");
  EXPECT_EQ(llama->place("model.embed_tokens.weight").name, "token_embd.weight");
  EXPECT_EQ(llama->place("model.norm.weight").name, "output_norm.weight");
  EXPECT_EQ(llama->place("lm_head.weight").name, "output.weight");
  EXPECT_EQ(llama->place("model.layers.11.mlp.down_proj.weight").name, "blk.11.ffn_down.weight");
  EXPECT_EQ(llama->place("model.layers.0.post_attention_layernorm.weight").name, "blk.0.ffn_norm.weight");
  EXPECT_EQ(llama->place("model.layers.1.self_attn.k_proj.bias").name, "blk.1.attn_k.bias");
  EXPECT_EQ(llama->place("model.layers.1.self_attn.k_proj.bias").rows.rotary_head, 8);
  EXPECT_EQ(llama->place("model.layers.1.self_attn.v_proj.weight").rows.rotary_head, 0);
  EXPECT_TRUE(llama->notes().empty());
  const auto qwen = architecture(decoder("qwen3"));
  ASSERT_TRUE(qwen);
  EXPECT_EQ(qwen->place("model.layers.0.self_attn.q_norm.weight").name, "blk.0.attn_q_norm.weight");
  EXPECT_EQ(qwen->place("model.layers.0.self_attn.q_proj.weight").rows.rotary_head, 0);
  const auto gpt2 = architecture(
      R"("model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4)");
  ASSERT_TRUE(gpt2);
  EXPECT_EQ(gpt2->place("transformer.h.0.attn.c_attn.weight").name, "blk.0.attn_qkv.weight");
  EXPECT_TRUE(gpt2->place("transformer.h.0.attn.c_attn.weight").rows.transposed);
  EXPECT_FALSE(gpt2->place("transformer.h.0.attn.c_attn.bias").rows.transposed);
  EXPECT_FALSE(gpt2->place("transformer.wpe.weight").rows.transposed);
}

TEST(Architecture, OfSmolLm3IsLlamasUnderItsOwnName) {
  const std::string pad = ", \"pad_token_id\": null";
  const auto smollm3 = architecture(decoder("smollm3", pad));
  ASSERT_TRUE(smollm3) << smollm3.error().message();
  EXPECT_EQ(smollm3->name(), "smollm3");
  EXPECT_EQ(smollm3->place("model.layers.1.self_attn.q_proj.weight").name, "blk.1.attn_q.weight");
  EXPECT_EQ(smollm3->place("model.layers.1.self_attn.q_proj.weight").rows.rotary_head, 8);
  EXPECT_TRUE(architecture(decoder("smollm3", pad + R"(, "no_rope_layers": [1, 1])")));
  for (const auto& [more, says] : {std::pair(R"(, "no_rope_layers": [1, 0])", "fourth layer"),
                                   std::pair(R"(, "no_rope_layer_interval": 2)", "fourth layer"),
                                   std::pair(R"(, "attention_bias": true)", "attention_bias")}) {
    const auto refused = architecture(decoder("smollm3", pad + more));
    ASSERT_FALSE(refused) << more;
    EXPECT_THAT(refused.error().what, HasSubstr(says));
  }
}

/// Short wavelengths stay, long ones are stretched, those between lie between.
TEST(Architecture, HasLlama3sFactors) {
  const auto llama = architecture(decoder(
      "llama",
      R"(, "rope_theta": 10000, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
         "high_freq_factor": 4, "original_max_position_embeddings": 64})"));
  ASSERT_TRUE(llama) << llama.error().message();
  const std::vector<float>& factors = llama->rope_factors();
  ASSERT_EQ(factors.size(), 4U);
  EXPECT_EQ(factors[0], 1);  // a wavelength of 6
  EXPECT_GT(factors[1], 1);  // of 63
  EXPECT_LT(factors[1], 8);
  EXPECT_EQ(factors[2], 8);
  EXPECT_EQ(factors[3], 8);
}

TEST(Architecture, RefusesByNameWhatLlamaCppHasNoPlaceFor) {
  struct Row {
    std::string config;
    const char* says;
  };
  for (
      const Row& row :
      {Row{decoder("qwen3", ", \"attention_bias\": true"), "qwen3 with attention_bias"},
       Row{decoder("llama", R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0})"), "dynamic"},
       Row{decoder("llama", R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "truncate": false,
                                "original_max_position_embeddings": 32})"),
           "yarn"},
       Row{R"("model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 4,
               "activation_function": "gelu")",
           "gelu_new"}}) {
    const auto refused = architecture(row.config);
    ASSERT_FALSE(refused) << row.says;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().what, HasSubstr(row.says));
  }
  EXPECT_FALSE(architecture(decoder("falcon")));
}

TEST(Architecture, TellsWhatIsComputedOtherwise) {
  const auto slides = architecture(decoder("mistral", ", \"sliding_window\": 16"));
  ASSERT_TRUE(slides);
  ASSERT_EQ(slides->notes().size(), 1U);
  EXPECT_THAT(slides->notes().front(), HasSubstr("sliding_window"));
}

}  // namespace
}  // namespace plimsoll::gguf
