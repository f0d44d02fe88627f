// GPT-2's parameters as transformers names them, and its forward graph on odd sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "forward.h"

namespace plimsoll::models {
namespace {

using testing::UnorderedElementsAre;

std::string gpt2(int layers = 1) {
  return R"({"model_type": "gpt2", "vocab_size": 211, "n_positions": 128, "n_embd": 60, "n_head": 3, "n_inner": 131,
    "initializer_range": 0.03, "n_layer": )" +
         std::to_string(layers) + "}";
}

TEST(Gpt2Graph, HasTransformersParameters) {
  const auto model = model_of(gpt2());
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

/// The same with further fields.
std::string config_with(const std::string& fields) {
  std::string json = gpt2(2);
  return json.insert(json.size() - 1, ", " + fields);
}

TEST(Gpt2Graph, AnUntiedHeadIsAParameter) {
  const auto model = model_of(config_with(R"("tie_word_embeddings": false)"));
  EXPECT_THAT(tensor_list(*model), testing::Contains("lm_head.weight [211,60]"));
  EXPECT_FALSE(model->tied_head());
  EXPECT_TRUE(model_of(gpt2(2))->tied_head());
  expect_forward_agrees(*model, 2, 7);
}

/// The attributes of all ops of that name, in order.
std::vector<ir::Attrs> attrs_of(const ir::Graph& graph, std::string_view op) {
  std::vector<ir::Attrs> all;
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->name == op) all.push_back(graph.op(id).attrs);
  return all;
}

TEST(Gpt2Graph, ScalesScoresAsAskedFor) {
  const auto scales = [](const std::string& fields) {
    std::vector<double> all;
    for (const auto& attrs : attrs_of(forward_graph(*model_of(config_with(fields)), 1, 3).graph, "attention"))
      all.push_back(attrs.f64("scale"));
    return all;
  };
  const double root = 1 / std::sqrt(20.0);
  EXPECT_THAT(scales(R"("n_ctx": 128)"), testing::ElementsAre(root, root));
  EXPECT_THAT(scales(R"("scale_attn_weights": false)"), testing::ElementsAre(1.0, 1.0));
  EXPECT_THAT(scales(R"("scale_attn_by_inverse_layer_idx": true)"), testing::ElementsAre(root, root / 2));
}

TEST(Gpt2Graph, DropsInTrainingAlone) {
  const auto model = model_of(config_with(R"("embd_pdrop": 0.1, "resid_pdrop": 0.2, "attn_pdrop": 0.3)"));
  const ForwardGraph evaluation = forward_graph(*model, 2, 5);
  EXPECT_THAT(attrs_of(evaluation.graph, "dropout"), testing::IsEmpty());
  for (const auto& attrs : attrs_of(evaluation.graph, "attention")) EXPECT_EQ(attrs.find("p"), nullptr);

  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto state = [&](const char* name, ir::Shape shape) {
    return b.state({name, {ir::DType::kI32, shape}, ir::StateClass::kInput});
  };
  (void)model->logits(b,
                      {.tokens = state("tokens", {2, 5}), .training = true, .random = state("random", {4})});
  ASSERT_TRUE(b.status().ok());
  std::vector<double> p;
  std::set<int64_t> keys;
  for (const char* op : {"dropout", "attention"})
    for (const auto& attrs : attrs_of(graph, op)) {
      p.push_back(attrs.f64("p"));
      keys.insert(attrs.i64("key"));
    }
  EXPECT_THAT(p, testing::ElementsAre(0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.3));
  EXPECT_EQ(keys.size(), p.size()) << "two of them draw the same numbers";
}

TEST(Gpt2Graph, InitialisesAsPublished) {
  const auto model = model_of(gpt2(2));
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
  const auto model = model_of(gpt2(2));
  for (const auto& [batch, length] : {std::pair<int64_t, int64_t>{1, 1}, {3, 37}, {3, 1}, {1, 128}}) {
    const ForwardGraph f = forward_graph(*model, batch, length);
    EXPECT_EQ(f.type, (ir::TensorType{ir::DType::kF32, ir::Shape{batch, length, 211}}));
    for (const Parameter& p : model->parameters()) EXPECT_NE(f.graph.find_state(p.name), nullptr) << p.name;
  }
}

TEST(Gpt2Graph, ForwardIsTheInterpreters) {
  expect_forward_agrees(*model_of(gpt2(2)), 3, 37);
  expect_forward_agrees(*model_of(gpt2(1)), 3, 1);
  expect_forward_agrees(*model_of(config_with(R"("activation_function": "gelu")")), 2, 9);
  expect_forward_agrees(*model_of(config_with(R"("activation_function": "quick_gelu")")), 2, 9);
}

TEST(Gpt2Graph, ATokenChangesNothingBeforeIt) {
  const auto model = model_of(gpt2(2));
  expect_influence(*model, 2, 31, 1, 0, 31);
  expect_influence(*model, 2, 31, 0, 13, 31 - 13);
  expect_influence(*model, 2, 31, 1, 30, 1);
}

TEST(Gpt2Graph, PositionsAreAbsolute) {
  // The same token everywhere: only its position can make logits differ.
  const auto model = model_of(gpt2());
  const std::vector<float> logits = CpuForward(*model, 1, 5)(std::vector<int32_t>(5, 7));
  for (size_t t = 1; t < 5; ++t)
    EXPECT_FALSE(
        std::equal(logits.begin(), logits.begin() + 211, logits.begin() + static_cast<int64_t>(t) * 211));
}

}  // namespace
}  // namespace plimsoll::models
