// Which modules get adapters, of which rank and scale, and what is refused.
#include "models/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "forward.h"
#include "models/selection.h"
#include "stacked_model.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kAdaptedLlama = R"({"model_type": "llama", "vocab_size": 31, "hidden_size": 20,
  "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
  "head_dim": 10, "max_position_embeddings": 64, "attention_bias": true, "tie_word_embeddings": false})";
constexpr const char* kGpt2Small = R"({"model_type": "gpt2", "vocab_size": 31, "n_embd": 20, "n_layer": 1,
  "n_head": 2, "n_positions": 64})";

std::unique_ptr<LanguageModel> adapted(const char* config, const LoraSpec& spec, const char* type = "llama") {
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
                        " " + std::to_string(part.rank) + " " + io::number_text(part.scale));
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
  EXPECT_THAT(trained({.modules_to_save = {"lm_head", "model.norm"}}),
              ElementsAre("base_model.model.model.norm.weight", "base_model.model.lm_head.weight"));
  // By the ending of a module's name, wherever that begins, as PEFT takes them.
  EXPECT_THAT(trained({.modules_to_save = {"norm"}}),
              ElementsAre("base_model.model.model.layers.0.input_layernorm.weight",
                          "base_model.model.model.layers.0.post_attention_layernorm.weight",
                          "base_model.model.model.layers.1.input_layernorm.weight",
                          "base_model.model.model.layers.1.post_attention_layernorm.weight",
                          "base_model.model.model.norm.weight"));
  EXPECT_THAT(trained({.modules_to_save = {"1.post_attention_layernorm", "head"}}),
              ElementsAre("base_model.model.model.layers.1.post_attention_layernorm.weight",
                          "base_model.model.lm_head.weight"));
  EXPECT_THAT(trained({.target_modules = {{"q_proj"}}, .modules_to_save = {"0.mlp"}}),
              ElementsAre("base_model.model.model.layers.0.mlp.gate_proj.weight",
                          "base_model.model.model.layers.0.mlp.up_proj.weight",
                          "base_model.model.model.layers.0.mlp.down_proj.weight"));
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
  EXPECT_THAT(lora_refusal({.target_modules = {{"x.*"}, true}}), HasSubstr("no linear layer matches 'x.*'"));
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
  EXPECT_THAT(lora_refusal({.r = 11, .init_lora_weights = LoraInit::kPissa}),
              HasSubstr("a rank of 11 for model.layers.0.self_attn.v_proj, a matrix of 10 x 20"));
  EXPECT_THAT(lora_refusal({}, kAdaptedLlama, "smollm3"), HasSubstr("PEFT has no defaults"));
  EXPECT_THAT(lora_refusal({.modules_to_save = {"lm_head"}}, kGpt2Small, "gpt2"), HasSubstr("is tied"));
}

/// A name or pattern that matches nothing is an error, wherever it stands.
TEST(Lora, NamesWhatMatchesNothing) {
  EXPECT_THAT(
      lora_refusal({.rank_pattern = {{"q_prj", 4}}}),
      HasSubstr("lora.rank_pattern: no module with an adapter matches 'q_prj' | the nearest is q_proj"));
  // What has no adapter has no rank.
  EXPECT_THAT(lora_refusal({.rank_pattern = {{"k_proj", 4}}}), HasSubstr("matches 'k_proj'"));
  EXPECT_THAT(
      lora_refusal({.alpha_pattern = {{"^q_proj", 4}}}),
      HasSubstr("lora.alpha_pattern: no module with an adapter matches '^q_proj' | the nearest is q_proj"));
  EXPECT_THAT(lora_refusal({.exclude_modules = {{"v_prj"}}}),
              HasSubstr("lora.exclude_modules: no module matches 'v_prj' | the nearest is v_proj"));
  EXPECT_THAT(lora_refusal({.exclude_modules = {{".*v_prj"}, true}}),
              HasSubstr("no module matches '.*v_prj'"));
  EXPECT_THAT(lora_refusal({.layers_to_transform = {0, 7}}),
              HasSubstr("no module of target_modules is in a layer 7 | its modules are in layers 0 to 1"));
  EXPECT_THAT(lora_refusal({.layers_to_transform = {0}, .layers_pattern = {"layer"}}),
              HasSubstr("lora.layers_pattern: no name of layers matches 'layer' | the nearest is layers"));
  EXPECT_THAT(lora_refusal({.modules_to_save = {"score"}}), HasSubstr("no module matches 'score'"));
  // All of them at once.
  const auto model = model_of(kAdaptedLlama);
  const Status added = add_adapters(*model, {.exclude_modules = {{"a"}}, .modules_to_save = {"b"}}, "llama");
  ASSERT_FALSE(added.ok());
  EXPECT_EQ(added.error().more.size(), 1U);
}

/// What is excluded is matched all the same, and so is what a setting names beside it.
TEST(Lora, TakesWhatMatchesWithoutEffect) {
  EXPECT_THAT(adapters_of(*adapted(kAdaptedLlama, {.target_modules = {{"q_proj", "v_proj"}},
                                                   .exclude_modules = {{"v_proj", "lm_head"}},
                                                   .layers_to_transform = {1},
                                                   .layers_pattern = {"layers"}})),
              ElementsAre("layers.1.self_attn.q_proj 8 1"));
}

/// PEFT opens an adapter whose names match nothing; what that was is kept for a note.
TEST(Lora, OpensAnAdapterWhoseNamesMatchNothing) {
  const auto model = model_of(kAdaptedLlama);
  const LoraSpec spec{.target_modules = {{"q_proj", "q_prj"}},
                      .exclude_modules = {{"zip"}},
                      .layers_to_transform = {1, 7},
                      .modules_to_save = {"classifier"},
                      .rank_pattern = {{"nope", 4}}};
  const Status added = add_adapters(*model, spec, "llama", /*strict=*/false);
  ASSERT_TRUE(added) << added.error().message();
  EXPECT_THAT(adapters_of(*model), ElementsAre("layers.1.self_attn.q_proj 8 1"));
  EXPECT_THAT(model->adapters()->unmatched,
              ElementsAre(HasSubstr("target_modules: no linear layer matches 'q_prj'"),
                          HasSubstr("exclude_modules: no module matches 'zip'"), HasSubstr("a layer 7"),
                          HasSubstr("rank_pattern: no module with an adapter matches 'nope'"),
                          HasSubstr("modules_to_save: no module matches 'classifier'")));
  const auto other = model_of(kAdaptedLlama);
  const Status none = add_adapters(*other, {.target_modules = {{"nope"}}}, "llama", /*strict=*/false);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBadData);
}

/// PEFT's B [out, r] and A [r, in] may have more ranks than the matrix has rows.
TEST(Lora, TakesARankAboveTheMatrix) {
  const auto model = adapted(kAdaptedLlama, {.r = 64, .lora_alpha = 64, .target_modules = {{"v_proj"}}});
  EXPECT_THAT(adapters_of(*model),
              ElementsAre("layers.0.self_attn.v_proj 64 1", "layers.1.self_attn.v_proj 64 1"));
  expect_views_cover(*model);
}

TEST(Lora, RefusesWhatIsSavedWholeAndAdapted) {
  EXPECT_THAT(lora_refusal({.modules_to_save = {"proj"}}),
              HasSubstr("'proj' takes model.layers.0.self_attn.q_proj as well, which gets an adapter"));
  EXPECT_THAT(lora_refusal({.modules_to_save = {"attn"}}), HasSubstr("'attn' takes"));
}

/// PEFT's save_embedding_layers: tables that come with the adapter, do not learn and are saved with it again.
TEST(Lora, TakesWhatTheAdaptersFileBrings) {
  LoraSpec spec{
      .brought = {{"model.embed_tokens.weight", "base_model.model.model.embed_tokens.weight", {33, 20}},
                  {"lm_head.weight", "base_model.model.lm_head.weight", {33, 20}}}};
  auto config = io::parse_config_json(kAdaptedLlama, "config.json");
  ASSERT_TRUE(config);
  EXPECT_TRUE(fit_vocabulary(spec, *config));
  EXPECT_TRUE(spec.resized);
  auto made = make_language_model(*config);
  ASSERT_TRUE(made);
  LanguageModel& model = **made;
  EXPECT_EQ(model.vocab_size(), 33);
  ASSERT_TRUE(add_adapters(model, spec, "llama", /*strict=*/false));
  EXPECT_THAT(model.adapters()->brought, ElementsAre("lm_head.weight", "model.embed_tokens.weight"));
  EXPECT_EQ(model.saved_name("lm_head.weight"), "base_model.model.lm_head.weight");
  ASSERT_TRUE(select(model, {}));
  for (const Parameter& p : model.parameters()) EXPECT_EQ(p.trained, p.is_adapter) << p.name;
  // Of the base's own size nothing is resized; a copy beside an adapter is the base's.
  config->set("vocab_size", io::Tree::of(int64_t{33}));
  spec.resized = false;
  spec.target_modules = {{"embed_tokens"}};
  spec.brought[0].key = "base_model.model.model.embed_tokens.base_layer.weight";
  EXPECT_FALSE(fit_vocabulary(spec, *config));
  made = make_language_model(*config);
  ASSERT_TRUE(add_adapters(**made, spec, "llama", /*strict=*/false));
  EXPECT_THAT((*made)->adapters()->brought, ElementsAre("lm_head.weight"));
}

TEST(Lora, RefusesAStackThatItIsAskedToAdapt) {
  const auto added = [](LoraSpec spec) {
    StackedModel model;
    const Status status = add_adapters(model, spec, "stacked");
    if (status) {
      EXPECT_THAT(adapters_of(model), Not(Contains(HasSubstr("experts"))));
    }
    return status ? std::string("added") : status.error().what;
  };
  const auto refusal = HasSubstr("layers.0.experts.up_proj.weight is a stack of linear layers [4,16,8]");
  EXPECT_THAT(added({.r = 2, .target_modules = {{"all-linear"}}}), refusal);
  EXPECT_THAT(added({.r = 2, .target_modules = {{"router", "up_proj"}}}), refusal);
  EXPECT_EQ(added({.r = 2, .target_modules = {{"router"}}}), "added");
  EXPECT_EQ(added({.r = 2, .target_modules = {{"all-linear"}}, .exclude_modules = {{"up_proj"}}}), "added");
}

}  // namespace
}  // namespace plimsoll::models
