// SmolLM3: its config.json, and the graph of layers with and without positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "changed_config.h"
#include "forward.h"
#include "models/decoder_config.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kSmall =
    R"({"model_type": "smollm3", "vocab_size": 211, "hidden_size": 60, "intermediate_size": 77,
  "num_hidden_layers": 5, "num_attention_heads": 3, "num_key_value_heads": 1, "pad_token_id": null})";

std::unique_ptr<LanguageModel> model_with(const std::string& changes) {
  auto model = make_language_model(changed(kSmall, changes));
  PLIMSOLL_CHECK(model.ok(), model ? "" : model.error().message());
  return std::move(*model);
}

DecoderConfig config_with(const std::string& changes) {
  const auto c = parse_as("smollm3", changed(kSmall, changes));
  PLIMSOLL_CHECK(c.ok(), c ? "" : c.error().message());
  return *c;
}

TEST(SmolLM3Config, TakesTransformersDefaults) {
  const DecoderConfig c = config_with("{}");
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(c.head_dim, 20);
  EXPECT_EQ(c.max_position_embeddings, 32768);
  EXPECT_EQ(c.rope.theta, 2e6);
  EXPECT_FALSE(c.qkv_bias || c.o_bias || c.mlp_bias || c.qk_norm);
  EXPECT_THAT(c.rope_layers, ElementsAre(true, true, true, false, true));
  EXPECT_THAT(c.windows, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(config_with(R"({"rope_parameters": {"rope_type": "default"}})").rope.theta, 2e6);
  EXPECT_EQ(config_with(R"({"pad_token_id": 4})").pad_token_id, 4);
  const DecoderConfig biased = config_with(R"({"attention_bias": true, "mlp_bias": true})");
  EXPECT_TRUE(biased.qkv_bias && biased.o_bias && biased.mlp_bias);
}

TEST(SmolLM3Config, SaysWhichLayersRotate) {
  EXPECT_THAT(config_with(R"({"no_rope_layer_interval": 2})").rope_layers,
              ElementsAre(true, false, true, false, true));
  EXPECT_THAT(config_with(R"({"no_rope_layer_interval": 1})").rope_layers, Not(Contains(true)));
  // The list is first, and may be longer than the model is deep.
  const char* listed = R"({"no_rope_layer_interval": 2, "no_rope_layers": [0, 1, 1, 1, 0, 0, 1]})";
  EXPECT_THAT(config_with(listed).rope_layers, ElementsAre(false, true, true, true, false));
}

TEST(SmolLM3Config, SlidesWhereLayersHaveNoPositions) {
  const auto windows = [](const char* changes) { return config_with(changes).windows; };
  // As SmolLM3Config of transformers 5.23 fills layer_types.
  EXPECT_THAT(windows(R"({"sliding_window": 7})"), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(windows(R"({"use_sliding_window": true})"), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(windows(R"({"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 1})"),
              ElementsAre(0, 0, 0, 7, 0));
  EXPECT_THAT(
      windows(R"({"use_sliding_window": true, "sliding_window": 7, "layer_types": ["sliding_attention",
                  "full_attention", "full_attention", "full_attention", "sliding_attention"]})"),
      ElementsAre(7, 0, 0, 0, 7));
}

TEST(SmolLM3Config, RefusesByTheFieldsName) {
  const Refusal rows[] = {
      {R"({"no_rope_layers": [1, 0, 1, 1]})", "no_rope_layers is a list, expected a list of 5 numbers"},
      {R"({"no_rope_layers": []})", "no_rope_layers"},
      {R"({"no_rope_layers": [1, 0, 2, 1, 1]})", "no_rope_layers"},
      {R"({"no_rope_layers": "none"})", "no_rope_layers"},
      {R"({"no_rope_layer_interval": 0})", "no_rope_layer_interval is 0"},
      {R"({"pad_token_id": 211})", "pad_token_id is 211"},
      {R"({"sliding_window": 0})", "sliding_window is 0"},
      {R"({"layer_types": ["full_attention"]})", "layer_types is a list"},
      {R"({"sliding_window": 7, "layer_types": ["full_attention", "full_attention", "full_attention",
           "full_attention", "sliding_attention"]})",
       "no sliding_attention without use_sliding_window"},
      {R"({"num_experts": 8})", "num_experts"},
      {R"({"model_type": "llama"})", "model_type is \"llama\", expected smollm3"},
  };
  for (const Refusal& row : rows) {
    const auto c = parse_as("smollm3", changed(kSmall, row.changes));
    ASSERT_FALSE(c) << row.changes;
    EXPECT_EQ(c.error().code, ErrorCode::kBadData);
    EXPECT_THAT(c.error().what, HasSubstr(row.what)) << row.changes;
  }
  // Left out it would be transformers' own, beyond this vocabulary.
  const auto c = parse_as("smollm3", *io::parse_config_json(R"({"model_type": "smollm3", "vocab_size": 9,
      "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
      "num_key_value_heads": 2})",
                                                            "x"));
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().what, HasSubstr("pad_token_id is missing"));
}

TEST(SmolLM3Graph, HasLlamasTensors) {
  const auto model = model_with(R"({"num_hidden_layers": 1})");
  EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("lm_head"))));  // tied
  EXPECT_EQ(model->parameters().size(), 8U);
  EXPECT_EQ(model->num_parameters(), 211 * 60 + 100 * 60 + 60 * 60 + 3 * 77 * 60 + 3 * 60);
  EXPECT_EQ(parse_as("smollm3", changed(kSmall, R"({"num_hidden_layers": 1})"))->num_parameters(),
            model->num_parameters());
  expect_views_cover(*model);
}

TEST(SmolLM3Graph, RotatesInTheLayersThatSaySo) {
  const auto rotations = [](const char* changes, bool with_passes) {
    ForwardGraph f = forward_graph(*model_with(changes), 2, 7);
    if (with_passes) {
      PLIMSOLL_CHECK(passes::Pipeline({.grad = false}).forward(f.graph, {}).ok());
    }
    std::vector<std::string> layers;
    for (const ir::OpId id : f.graph.order())
      if (f.graph.op(id).def->name == (with_passes ? "rope_packed" : "rope"))
        layers.push_back(f.graph.op(id).layer.substr(0, sizeof("layers.0") - 1));
    return layers;
  };
  const char* some = R"({"num_hidden_layers": 3, "no_rope_layers": [1, 0, 1]})";
  EXPECT_THAT(rotations(some, false), ElementsAre("layers.0", "layers.0", "layers.2", "layers.2"));
  EXPECT_THAT(rotations(some, true), ElementsAre("layers.0", "layers.2"));
  const char* none = R"({"no_rope_layer_interval": 1})";
  EXPECT_THAT(rotations(none, false), ElementsAre());
  EXPECT_TRUE(model_with(none)->constants().empty());
}

TEST(SmolLM3Graph, ForwardIsTheInterpreters) {
  expect_forward_agrees(*model_with(R"({"num_hidden_layers": 3, "no_rope_layers": [0, 1, 0]})"), 2, 23);
  expect_forward_agrees(*model_with(R"({"num_hidden_layers": 2, "no_rope_layer_interval": 1,
      "attention_bias": true, "mlp_bias": true, "tie_word_embeddings": false})"),
                        3, 19);
  expect_forward_agrees(*model_with(R"({"num_hidden_layers": 2, "no_rope_layer_interval": 2,
      "use_sliding_window": true, "sliding_window": 5})"),
                        2, 23);
}

TEST(SmolLM3Graph, ALayerWithoutPositionsSeesASet) {
  // What stands before the last token may change places there, and nowhere else.
  constexpr size_t kLength = 24, kVocab = 211;
  const auto apart = [](const char* changes) {
    const auto model = model_with(changes);
    std::vector<int32_t> tokens = some_tokens(*model, 1, kLength);
    CpuForward forward(*model, 1, kLength);
    const std::vector<float> before = forward(tokens);
    std::reverse(tokens.begin(), tokens.end() - 1);
    const std::vector<float> after = forward(tokens);
    float most = 0;
    for (size_t i = (kLength - 1) * kVocab; i < kLength * kVocab; ++i)
      most = std::max(most, std::abs(after[i] - before[i]));
    return most;
  };
  EXPECT_LT(apart(R"({"num_hidden_layers": 1, "no_rope_layers": [0]})"), 1e-4F);
  EXPECT_GT(apart(R"({"num_hidden_layers": 1, "no_rope_layers": [1]})"), 1e-2F);
}

TEST(SmolLM3Graph, AWindowLimitsHowFarATokenReaches) {
  const char* slides = R"({"num_hidden_layers": 1, "no_rope_layer_interval": 1, "use_sliding_window": true,
                           "sliding_window": 5})";
  expect_influence(*model_with(slides), 2, 31, 0, 3, 5);
  expect_influence(*model_with(R"({"num_hidden_layers": 1, "no_rope_layer_interval": 1})"), 2, 31, 0, 3, 28);
}

}  // namespace
}  // namespace plimsoll::models
