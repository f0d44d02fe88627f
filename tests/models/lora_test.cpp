// Which modules get adapters, of which rank and scale, and what is refused.
#include "models/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "forward.h"
#include "models/selection.h"

namespace plimsoll::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAdaptedLlama = R"({"model_type": "llama", "vocab_size": 31, "hidden_size": 20,
  "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
  "head_dim": 10, "max_position_embeddings": 64, "attention_bias": true, "tie_word_embeddings": false})";
constexpr const char* kGpt2Small = R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 20, "n_layer": 1,
  "n_head": 2, "n_positions": 64})";

std::unique_ptr<Model> adapted(const char* config, const LoraSpec& spec, const char* type = "llama") {
  auto model = model_of(config);
  const Status added = add_adapters(*model, spec, type);
  EXPECT_TRUE(added) << (added ? "" : added.error().message());
  return model;
}

/// "layers.0.self_attn.q_proj 8 1" for every adapter: module, rank, scale.
std::vector<std::string> adapters_of(const Model& model) {
  std::vector<std::string> lines;
  for (const Adapter& adapter : model.adapters()->linears)
    for (const Adapter::Part& part : adapter.parts)
      if (part.rank > 0)
        lines.push_back(part.b.substr(part.b.find('.') + 1, part.b.find(".lora_B") - part.b.find('.') - 1) +
                        " " + std::to_string(part.rank) + " " + number_text(part.scale));
  return lines;
}

std::string lora_refusal(const LoraSpec& spec, const char* config = kAdaptedLlama,
                         const char* type = "llama") {
  const auto model = model_of(config);
  const Status added = add_adapters(*model, spec, type);
  EXPECT_FALSE(added.ok());
  return added ? "" : added.error().what + " | " + added.error().hint;
}

TEST(Lora, TakesPeftsModulesWhereNoneAreNamed) {
  const auto model = adapted(kAdaptedLlama, {});
  EXPECT_THAT(adapters_of(*model),
              ElementsAre("layers.0.self_attn.q_proj 8 1", "layers.0.self_attn.v_proj 8 1",
                          "layers.1.self_attn.q_proj 8 1", "layers.1.self_attn.v_proj 8 1"));
  // One storage for the A's of a projection.
  EXPECT_EQ(model->adapters()->linears[0].a, "model.layers.0.self_attn.qkv_proj.lora_A.weight");
  EXPECT_EQ(model->saved_name("model.layers.0.self_attn.q_proj.lora_A.weight"),
            "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(model->saved_name("model.norm.weight"), "");
  EXPECT_THAT(adapters_of(*adapted(kGpt2Small, {}, "gpt2")), ElementsAre("h.0.attn.c_attn 8 1"));
  expect_views_cover(*model);
}

TEST(Lora, AllLinearLeavesTheHeadsOut) {
  EXPECT_EQ(adapters_of(*adapted(kAdaptedLlama, {.target_modules = {{"all-linear"}, true}})).size(), 14U);
  EXPECT_EQ(adapters_of(*adapted(kGpt2Small, {.target_modules = {{"all-linear"}, true}}, "gpt2")).size(), 4U);
}

TEST(Lora, NamesPatternsLayersAndExclusions) {
  EXPECT_THAT(
      adapters_of(*adapted(kAdaptedLlama, {.target_modules = {{"q_proj", "mlp.up_proj"}},
                                           .exclude_modules = {{".*0.*q_proj"}, true}})),
      ElementsAre("layers.0.mlp.up_proj 8 1", "layers.1.self_attn.q_proj 8 1", "layers.1.mlp.up_proj 8 1"));
  EXPECT_THAT(
      adapters_of(*adapted(kAdaptedLlama, {.target_modules = {{"q_proj"}}, .layers_to_transform = {1}})),
      ElementsAre("layers.1.self_attn.q_proj 8 1"));
  EXPECT_THAT(adapters_of(*adapted(kAdaptedLlama, {.target_modules = {{R"(.*\.1\..*[qk]_proj)"}, true}})),
              ElementsAre("layers.1.self_attn.q_proj 8 1", "layers.1.self_attn.k_proj 8 1"));
}

TEST(Lora, RanksAndScalesByPattern) {
  EXPECT_THAT(adapters_of(*adapted(kAdaptedLlama, {.r = 4,
                                                   .lora_alpha = 6,
                                                   .target_modules = {{"q_proj", "k_proj"}},
                                                   .layers_to_transform = {0},
                                                   .use_rslora = true,
                                                   .rank_pattern = {{"q_proj", 9}},
                                                   .alpha_pattern = {{R"(layers\.\d+\..*k_proj)", 8}}})),
              ElementsAre("layers.0.self_attn.q_proj 9 2", "layers.0.self_attn.k_proj 4 4"));
}

/// The base is frozen, what is saved whole and the biases that are asked for are not.
TEST(Lora, LearnsWhatItSaves) {
  const auto trained = [](const LoraSpec& spec) {
    const auto model = adapted(kAdaptedLlama, spec);
    EXPECT_TRUE(select(*model, {}));
    model->keep_in(ir::DType::kBf16);
    std::vector<std::string> names;
    for (const Parameter& p : model->parameters()) {
      EXPECT_EQ(p.dtype == ir::DType::kF32, p.trained) << p.name;
      for (const ParameterView& view : p.views)
        if (p.trained && !p.is_adapter) names.push_back(model->saved_name(view.name));
    }
    return names;
  };
  EXPECT_THAT(trained({}), ElementsAre());
  EXPECT_THAT(trained({.modules_to_save = {"lm_head", "norm"}}),
              ElementsAre("base_model.model.model.norm.weight", "base_model.model.lm_head.weight"));
  EXPECT_THAT(
      trained({.target_modules = {{"q_proj"}}, .layers_to_transform = {0}, .bias = LoraBias::kLoraOnly}),
      ElementsAre("base_model.model.model.layers.0.self_attn.q_proj.base_layer.bias"));
  EXPECT_EQ(trained({.bias = LoraBias::kAll}).size(), 8U);
}

/// With B zero an adapter changes no bit; with a B it does.
TEST(Lora, AddsNothingAtFirst) {
  const auto model = adapted(kAdaptedLlama, {.target_modules = {{"all-linear"}, true}});
  const auto b = std::find_if(model->parameters().begin(), model->parameters().end(),
                              [](const Parameter& p) { return p.name.ends_with("lora_B.weight"); });
  EXPECT_EQ(b->init, Init::kZeros);
  const auto a = b - 1;
  EXPECT_EQ(a->init, Init::kUniform);
  EXPECT_NEAR(a->init_std, 1 / std::sqrt(20.0), 1e-12);
}

/// Beside B: its bias, a magnitude a row; beside an embedding both factors; rows that learn; a tied head's.
TEST(Lora, KindsOfAdapters) {
  const auto saved = [](const char* config, LoraSpec spec, const char* type) {
    std::vector<std::string> names;
    const auto model = adapted(config, spec, type);
    for (const auto& [view, key] : model->adapters()->keys) names.push_back(view);
    expect_views_cover(*model);
    return names;
  };
  const std::string q = "model.layers.0.self_attn.q_proj.";
  const ModuleNames one = {{q.substr(0, q.size() - 1)}};
  EXPECT_THAT(saved(kAdaptedLlama, {.target_modules = one, .use_dora = true}, "llama"),
              ElementsAre(q + "lora_A.weight", q + "lora_B.weight", q + "lora_magnitude_vector"));
  EXPECT_THAT(saved(kAdaptedLlama, {.target_modules = one, .lora_bias = true}, "llama"),
              ElementsAre(q + "lora_A.weight", q + "lora_B.bias", q + "lora_B.weight"));
  EXPECT_THAT(saved(kAdaptedLlama,
                    {.target_modules = {{"embed_tokens"}}, .trainable_token_indices = {"", {3, 5}}}, "llama"),
              ElementsAre("model.embed_tokens.lora_embedding_A", "model.embed_tokens.lora_embedding_B",
                          "model.embed_tokens.token_adapter.trainable_tokens_delta"));
  EXPECT_THAT(saved(kGpt2Small, {.target_modules = {{"lm_head", "wpe"}}}, "gpt2"),
              ElementsAre("lm_head.lora_A.weight", "lm_head.lora_B.weight",
                          "transformer.wpe.lora_embedding_A", "transformer.wpe.lora_embedding_B"));
}

TEST(Lora, RefusesWithTheNearestNames) {
  EXPECT_THAT(lora_refusal({.target_modules = {{"q_prj"}}}), HasSubstr("'q_prj' | the nearest is q_proj"));
  EXPECT_THAT(lora_refusal({.target_modules = {{"x.*"}, true}}), HasSubstr("no linear map matches 'x.*'"));
  EXPECT_THAT(lora_refusal({.target_modules = {{"(q"}, true}}), HasSubstr("'(q' is no regular expression"));
  EXPECT_THAT(lora_refusal({.target_modules = {{"embed_tokens"}}, .use_dora = true}),
              HasSubstr("an embedding"));
  EXPECT_THAT(lora_refusal({.use_dora = true, .lora_bias = true}),
              HasSubstr("not available with lora.use_dora"));
  EXPECT_THAT(lora_refusal({.trainable_token_indices = {"", {31}}}), HasSubstr("has 31 rows"));
  EXPECT_THAT(lora_refusal({.trainable_token_indices = {"", {3}}}, kGpt2Small, "gpt2"),
              HasSubstr("the head as well"));
  EXPECT_THAT(lora_refusal({.modules_to_save = {"scores"}}),
              HasSubstr("lora.modules_to_save: no module matches"));
  EXPECT_THAT(lora_refusal({.r = 11}),
              HasSubstr("a rank of 11 for model.layers.0.self_attn.v_proj, a matrix of 10 x 20"));
  EXPECT_THAT(lora_refusal({.layers_to_transform = {7}}), HasSubstr("gives no module an adapter"));
  EXPECT_THAT(lora_refusal({}, kAdaptedLlama, "smollm3"), HasSubstr("PEFT has no defaults"));
  EXPECT_THAT(lora_refusal({.modules_to_save = {"lm_head"}}, kGpt2Small, "gpt2"), HasSubstr("is tied"));
}

}  // namespace
}  // namespace plimsoll::models
