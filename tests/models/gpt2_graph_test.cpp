// GPT-2's parameters as transformers names them, and its forward graph on odd sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward.h"

namespace plimsoll::models {
namespace {

using testing::UnorderedElementsAre;

std::string config(int layers = 1) {
  return R"({"model_type": "gpt2", "vocab_size": 211, "n_positions": 128, "n_embd": 60, "n_head": 3, "n_inner": 131,
    "initializer_range": 0.03, "n_layer": )" +
         std::to_string(layers) + "}";
}

TEST(Gpt2Graph, HasTransformersParameters) {
  const auto model = model_of(config());
  EXPECT_THAT(tensor_list(*model),
              UnorderedElementsAre(
                  "transformer.wte.weight [211,60]", "transformer.wpe.weight [128,60]",
                  "transformer.h.0.ln_1.weight [60]", "transformer.h.0.ln_1.bias [60]",
                  "transformer.h.0.attn.c_attn.weight [60,180]", "transformer.h.0.attn.c_attn.bias [180]",
                  "transformer.h.0.attn.c_proj.weight [60,60]", "transformer.h.0.attn.c_proj.bias [60]",
                  "transformer.h.0.ln_2.weight [60]", "transformer.h.0.ln_2.bias [60]",
                  "transformer.h.0.mlp.c_fc.weight [60,131]", "transformer.h.0.mlp.c_fc.bias [131]",
                  "transformer.h.0.mlp.c_proj.weight [131,60]", "transformer.h.0.mlp.c_proj.bias [60]",
                  "transformer.ln_f.weight [60]", "transformer.ln_f.bias [60]"));
  EXPECT_EQ(model->num_parameters(), 51251);  // counted by transformers
  EXPECT_EQ(model->max_positions(), 128);
  expect_views_cover(*model);
}

TEST(Gpt2Graph, CountsWhatEachTokenIsMultipliedWith) {
  const int64_t layer = 60 * 180 + 60 * 60 + 2 * 60 * 131, head = 211 * 60;  // positions are looked up
  EXPECT_EQ(model_of(config(1))->num_matmul_parameters(), layer + head);
  EXPECT_EQ(model_of(config(3))->num_matmul_parameters(), 3 * layer + head);
}

TEST(Gpt2Graph, InitialisesAsPublished) {
  const auto model = model_of(config(2));
  for (const Parameter& p : model->parameters()) {
    const bool norm = p.name.find(".ln_") != std::string::npos;
    const Init expected = p.name.ends_with(".bias") ? Init::kZeros : norm ? Init::kOnes : Init::kNormal;
    EXPECT_EQ(p.init, expected) << p.name;
    // Onto the residual stream: 1/sqrt(2 layers).
    const double std = p.name.ends_with("c_proj.weight") ? 0.015 : 0.03;
    if (expected == Init::kNormal) {
      EXPECT_DOUBLE_EQ(p.init_std, std) << p.name;
    }
  }
}

TEST(Gpt2Graph, BuildsForOddShapes) {
  const auto model = model_of(config(2));
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 37}, {3, 1}, {1, 128}}) {
    const ForwardGraph f = forward_graph(*model, batch, length);
    EXPECT_EQ(f.type, (ir::TensorType{ir::DType::kF32, ir::Shape{batch, length, 211}}));
    for (const Parameter& p : model->parameters()) EXPECT_NE(f.graph.find_state(p.name), nullptr) << p.name;
  }
}

TEST(Gpt2Graph, ForwardIsTheInterpreters) {
  expect_forward_agrees(*model_of(config(2)), 3, 37);
  expect_forward_agrees(*model_of(config(1)), 3, 1);
}

TEST(Gpt2Graph, ATokenChangesNothingBeforeIt) {
  const auto model = model_of(config(2));
  expect_influence(*model, 2, 31, 1, 0, 31);
  expect_influence(*model, 2, 31, 0, 13, 31 - 13);
  expect_influence(*model, 2, 31, 1, 30, 1);
}

TEST(Gpt2Graph, PositionsAreAbsolute) {
  // The same token everywhere: only its position can make logits differ.
  const auto model = model_of(config());
  const std::vector<float> logits = CpuForward(*model, 1, 5)(std::vector<int32_t>(5, 7));
  for (size_t t = 1; t < 5; ++t)
    EXPECT_FALSE(
        std::equal(logits.begin(), logits.begin() + 211, logits.begin() + static_cast<int64_t>(t) * 211));
}

}  // namespace
}  // namespace plimsoll::models
