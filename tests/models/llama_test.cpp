// The parameters of the families of Llama's kind as transformers names them, and their forward graphs on odd
// sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "forward.h"

namespace plimsoll::models {
namespace {

using testing::UnorderedElementsAre;

/// One KV head, head_dim 20, nothing divides anything; `extra` are further fields.
std::string llama(const std::string& extra = "", const char* type = "llama") {
  return std::string(R"({"model_type": ")") + type + R"(", "vocab_size": 211, "hidden_size": 60,
    "intermediate_size": 77, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 20,
    "max_position_embeddings": 512, "num_hidden_layers": )" +
         (extra.empty() ? "2" : extra) + "}";
}
constexpr const char* kBiases = R"(1, "attention_bias": true, "mlp_bias": true)";
constexpr const char* kTied = R"(1, "tie_word_embeddings": true)";
constexpr const char* kSomeSlide =
    R"(2, "use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1)";
constexpr const char* kWindow = R"(2, "sliding_window": 5)";

TEST(LlamaGraph, HasTransformersParameters) {
  const auto model = model_of(llama(kBiases));
  EXPECT_THAT(
      tensor_list(*model),
      UnorderedElementsAre(
          "model.embed_tokens.weight [211,60]", "model.layers.0.self_attn.q_proj.weight [60,60]",
          "model.layers.0.self_attn.q_proj.bias [60]", "model.layers.0.self_attn.k_proj.weight [20,60]",
          "model.layers.0.self_attn.k_proj.bias [20]", "model.layers.0.self_attn.v_proj.weight [20,60]",
          "model.layers.0.self_attn.v_proj.bias [20]", "model.layers.0.self_attn.o_proj.weight [60,60]",
          "model.layers.0.self_attn.o_proj.bias [60]", "model.layers.0.mlp.gate_proj.weight [77,60]",
          "model.layers.0.mlp.gate_proj.bias [77]", "model.layers.0.mlp.up_proj.weight [77,60]",
          "model.layers.0.mlp.up_proj.bias [77]", "model.layers.0.mlp.down_proj.weight [60,77]",
          "model.layers.0.mlp.down_proj.bias [60]", "model.layers.0.input_layernorm.weight [60]",
          "model.layers.0.post_attention_layernorm.weight [60]", "model.norm.weight [60]",
          "lm_head.weight [211,60]"));
  EXPECT_EQ(model->num_parameters(), 49334);  // counted by transformers
  expect_views_cover(*model);
}

TEST(LlamaGraph, ATiedHeadIsTheEmbedding) {
  const auto model = model_of(llama(kTied));
  EXPECT_THAT(
      tensor_list(*model),
      UnorderedElementsAre(
          "model.embed_tokens.weight [211,60]", "model.layers.0.self_attn.q_proj.weight [60,60]",
          "model.layers.0.self_attn.k_proj.weight [20,60]", "model.layers.0.self_attn.v_proj.weight [20,60]",
          "model.layers.0.self_attn.o_proj.weight [60,60]", "model.layers.0.mlp.gate_proj.weight [77,60]",
          "model.layers.0.mlp.up_proj.weight [77,60]", "model.layers.0.mlp.down_proj.weight [60,77]",
          "model.layers.0.input_layernorm.weight [60]", "model.layers.0.post_attention_layernorm.weight [60]",
          "model.norm.weight [60]"));
  expect_views_cover(*model);
}

TEST(LlamaGraph, Qwen2HasBiasesOnQkvAlone) {
  const auto tensors = tensor_list(*model_of(llama("1", "qwen2")));
  EXPECT_THAT(tensors, testing::IsSupersetOf({"model.layers.0.self_attn.q_proj.bias [60]",
                                              "model.layers.0.self_attn.k_proj.bias [20]",
                                              "model.layers.0.self_attn.v_proj.bias [20]"}));
  EXPECT_EQ(std::ranges::count_if(tensors, [](const auto& t) { return t.find(".bias ") != t.npos; }), 3);
}

TEST(LlamaGraph, Qwen3HasNormsOfQueriesAndKeys) {
  const auto model = model_of(llama("1", "qwen3"));
  const auto tensors = tensor_list(*model);
  EXPECT_THAT(tensors, testing::IsSupersetOf({"model.layers.0.self_attn.q_norm.weight [20]",
                                              "model.layers.0.self_attn.k_norm.weight [20]"}));
  EXPECT_EQ(std::ranges::count_if(tensors, [](const auto& t) { return t.find(".bias ") != t.npos; }), 0);
  expect_views_cover(*model);
}

TEST(LlamaGraph, JoinsWhatOneGemmMultiplies) {
  const auto model = model_of(llama(kBiases));
  // In the order in which the graph splits the product.
  const std::map<std::string, std::vector<std::string>> joined = {
      {"self_attn.qkv_proj.weight [100,60]", {"q_proj.weight", "k_proj.weight", "v_proj.weight"}},
      {"self_attn.qkv_proj.bias [100]", {"q_proj.bias", "k_proj.bias", "v_proj.bias"}},
      {"mlp.gate_up_proj.weight [154,60]", {"gate_proj.weight", "up_proj.weight"}},
      {"mlp.gate_up_proj.bias [154]", {"gate_proj.bias", "up_proj.bias"}},
  };
  std::map<std::string, std::vector<std::string>> found;
  const std::string layer = "model.layers.0.";
  for (const Parameter& p : model->parameters()) {
    if (p.views.size() == 1) continue;
    auto& views = found[p.name.substr(layer.size()) + " " + to_string(p.shape)];
    const size_t module = p.name.find('.', layer.size()) + 1;
    for (const ParameterView& view : p.views) views.push_back(view.name.substr(module));
  }
  EXPECT_EQ(found, joined);
}

TEST(LlamaGraph, InitialisesAsTransformersDoes) {
  const auto model = model_of(llama(std::string(kBiases) + R"(, "initializer_range": 0.03)"));
  for (const Parameter& p : model->parameters()) {
    const Init expected = p.kind != ParameterKind::kVector ? Init::kNormal
                          : p.name.ends_with(".bias")      ? Init::kZeros
                                                           : Init::kOnes;
    EXPECT_EQ(p.init, expected) << p.name;
    if (p.init == Init::kNormal) {
      EXPECT_EQ(p.init_std, 0.03) << p.name;
    }
  }
}

TEST(LlamaGraph, BuildsForOddShapes) {
  const std::string configs[] = {llama(), llama(kBiases), llama(kTied), llama(kWindow, "mistral"),
                                 llama(R"(1, "rope_scaling": {"rope_type": "linear", "factor": 2.5})")};
  for (const std::string& json : configs) {
    const auto model = model_of(json);
    for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 37}, {3, 1}, {1, 512}}) {
      const ForwardGraph f = forward_graph(*model, batch, length);
      EXPECT_EQ(f.type, (ir::TensorType{ir::DType::kF32, ir::Shape{batch, length, 211}})) << json;
      // Every parameter is read.
      for (const Parameter& p : model->parameters()) EXPECT_NE(f.graph.find_state(p.name), nullptr) << p.name;
    }
  }
}

TEST(LlamaGraph, ForwardIsTheInterpreters) {
  expect_forward_agrees(*model_of(llama()), 3, 37);
  expect_forward_agrees(*model_of(llama()), 3, 1);
  expect_forward_agrees(*model_of(llama(kBiases)), 1, 19);
  expect_forward_agrees(*model_of(llama(kTied)), 2, 7);
  expect_forward_agrees(*model_of(llama(kWindow, "mistral")), 2, 23);
  expect_forward_agrees(*model_of(llama(kSomeSlide, "qwen2")), 2, 23);
  expect_forward_agrees(*model_of(llama(kSomeSlide, "qwen3")), 2, 23);
  expect_forward_agrees(*model_of(llama(R"(2, "attention_bias": true)", "qwen3")), 3, 37);
  expect_forward_agrees(*model_of(llama(R"(1, "rope_scaling": {"rope_type": "yarn", "factor": 4})")), 2, 19);
}

TEST(LlamaGraph, ATokenChangesNothingBeforeIt) {
  const auto model = model_of(llama());
  expect_influence(*model, 2, 31, 1, 0, 31);
  expect_influence(*model, 2, 31, 0, 13, 31 - 13);
  expect_influence(*model, 2, 31, 1, 30, 1);
}

TEST(LlamaGraph, AWindowLimitsHowFarATokenReaches) {
  // Through each layer to window - 1 later positions.
  expect_influence(*model_of(llama(R"(1, "sliding_window": 5)", "mistral")), 2, 31, 0, 3, 5);
  expect_influence(*model_of(llama(kWindow, "mistral")), 2, 31, 1, 11, 9);
  // One of two layers slides: the other reaches the end.
  expect_influence(*model_of(llama(kSomeSlide, "qwen2")), 1, 31, 0, 3, 28);
  // A window as long as the sequence is none.
  expect_influence(*model_of(llama(R"(1, "sliding_window": 31)", "mistral")), 1, 31, 0, 0, 31);
}

TEST(LlamaGraph, PositionsAreRelative) {
  // Rotary positions: with a window, what lies before it does not matter, so a shifted text has shifted
  // logits.
  const auto model = model_of(llama(R"(1, "sliding_window": 4)", "mistral"));
  constexpr size_t kLength = 24, kShift = 7, kVocab = 211;
  std::vector<int32_t> tokens = some_tokens(*model, 1, kLength);
  CpuForward forward(*model, 1, kLength);
  const std::vector<float> before = forward(tokens);
  std::rotate(tokens.begin(), tokens.begin() + kShift, tokens.end());
  const std::vector<float> after = forward(tokens);
  for (size_t t = 3; t < kLength - kShift; ++t)
    for (size_t v = 0; v < kVocab; ++v)
      EXPECT_NEAR(after[t * kVocab + v], before[(t + kShift) * kVocab + v], 1e-4F) << t;
}

}  // namespace
}  // namespace plimsoll::models
