// GPT-2's config.json: what is read under which name, transformers' defaults, what is refused.
#include "models/gpt2_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "vocab_size": 100, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 128})";

TEST(Gpt2Config, ReadsAndRefuses) {
  const auto c = parse_gpt2_config(
      changed(kGpt2, R"({"n_ctx": 128, "architectures": ["GPT2LMHeadModel"], "eos_token_id": 5})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->n_inner, 256);
  EXPECT_EQ(c->head_dim(), 16);
  EXPECT_TRUE(c->unknown_fields.empty());
  const Refusal rows[] = {
      {R"({"n_embd": null})", "n_embd is missing"},
      {R"({"n_head": 5})", "n_head is 5, expected a divisor of n_embd (64)"},
      {R"({"n_layer": 0})", "n_layer"},
      {R"({"n_positions": "x"})", "n_positions"},
      {R"({"n_inner": -1})", "n_inner"},
      {R"({"vocab_size": 1.5})", "vocab_size"},
      {R"({"layer_norm_epsilon": -1})", "layer_norm_epsilon"},
      {R"({"resid_pdrop": 1.0})", "resid_pdrop is 1.0, expected a number from 0 to 0.999"},
      {R"({"attn_pdrop": -0.1})", "attn_pdrop"},
      {R"({"embd_pdrop": "x"})", "embd_pdrop"},
      {R"({"activation_function": "relu"})", "activation_function is \"relu\""},
      {R"({"scale_attn_by_inverse_layer_idx": 1})", "scale_attn_by_inverse_layer_idx"},
      {R"({"add_cross_attention": true})", "add_cross_attention"},
      {R"({"hidden_size": 32})", "n_embd is 64, expected 32, as hidden_size says"},
      {R"({"model_type": "gptj"})", "model_type"},
  };
  for (const Refusal& row : rows) {
    const auto bad = parse_gpt2_config(changed(kGpt2, row.changes));
    ASSERT_FALSE(bad) << row.changes;
    EXPECT_EQ(bad.error().code, ErrorCode::kBadData);
    EXPECT_THAT(bad.error().what, HasSubstr(row.what));
  }
}

TEST(Gpt2Config, TakesTransformersDefaults) {
  const auto c = parse_gpt2_config(changed(kGpt2, "{}"));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->resid_pdrop, 0.1);
  EXPECT_EQ(c->embd_pdrop, 0.1);
  EXPECT_EQ(c->attn_pdrop, 0.1);
  EXPECT_TRUE(c->tie_word_embeddings && c->scale_attn_weights);
  EXPECT_EQ(c->gelu, ops::Gelu::kTanh);
  EXPECT_FALSE(c->scale_attn_by_layer);
}

TEST(Gpt2Config, ReadsItsSwitches) {
  const auto c =
      parse_gpt2_config(changed(kGpt2, R"({"activation_function": "gelu", "scale_attn_weights": false,
      "scale_attn_by_inverse_layer_idx": true, "reorder_and_upcast_attn": true, "tie_word_embeddings": false,
      "resid_pdrop": 0, "embd_pdrop": 0.25, "attn_pdrop": 0.5})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->gelu, ops::Gelu::kErf);
  EXPECT_TRUE(c->scale_attn_by_layer);
  EXPECT_FALSE(c->scale_attn_weights || c->tie_word_embeddings);
  EXPECT_EQ(c->resid_pdrop, 0);
  EXPECT_EQ(c->embd_pdrop, 0.25);
  EXPECT_EQ(c->attn_pdrop, 0.5);
  EXPECT_TRUE(c->unknown_fields.empty());
}

TEST(Gpt2Config, ReadsTheNamesThatAllFamiliesShare) {
  const auto c =
      parse_gpt2_config(changed(R"({"model_type": "gpt2", "vocab_size": 100})", R"({"hidden_size": 48,
      "num_hidden_layers": 3, "num_attention_heads": 6, "max_position_embeddings": 77})"));
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->n_embd, 48);
  EXPECT_EQ(c->n_layer, 3);
  EXPECT_EQ(c->n_head, 6);
  EXPECT_EQ(c->n_positions, 77);
  EXPECT_TRUE(parse_gpt2_config(changed(kGpt2, R"({"hidden_size": 64})")));
}

}  // namespace
}  // namespace plimsoll::models
