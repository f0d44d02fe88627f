// Which tensors learn, and that dividing a storage changes nothing but that.
#include "models/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "forward.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

constexpr const char* kQwen3 = R"({"model_type": "qwen3", "vocab_size": 31, "hidden_size": 20,
  "intermediate_size": 28, "num_hidden_layers": 3, "num_attention_heads": 2, "num_key_value_heads": 1,
  "head_dim": 10, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "attention_bias": true,
  "tie_word_embeddings": true})";

/// Storages with their role: "+2" learns in group 2, "-" is frozen.
std::vector<std::string> roles_of(const Model& model, std::string_view within) {
  std::vector<std::string> roles;
  for (const Parameter& p : model.parameters())
    if (p.name.find(within) != std::string::npos)
      roles.push_back(p.name.substr(p.name.find(within) + within.size()) +
                      (p.trained ? " +" + std::to_string(p.group) : " -"));
  return roles;
}

std::string refusal(const Selection& selection) {
  const auto model = model_of(kQwen3);
  const Status status = select(*model, selection);
  EXPECT_FALSE(status.ok());
  if (status) return "";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  return status.error().what + " | " + status.error().hint;
}

/// What the update would not treat each for itself lies in storages of its own; what is frozen stays.
TEST(Selection, DividesWhatMayNotLieTogether) {
  const auto model = model_of(kQwen3);
  const int64_t all = model->num_parameters();
  Selection selection{.freeze = {"model.layers.1.*"}};
  selection.lie_together = [](std::span<const ir::Shape> shapes) { return shapes.front().rank() == 1; };
  ASSERT_TRUE(select(*model, selection).ok());
  EXPECT_THAT(roles_of(*model, "layers.0.self_attn.qkv"), testing::ElementsAre("_proj.bias +0"));
  EXPECT_THAT(roles_of(*model, "layers.0.self_attn.k_proj"), testing::ElementsAre(".weight +0"));
  EXPECT_THAT(roles_of(*model, "layers.1.self_attn.qkv"),
              testing::ElementsAre("_proj.weight -", "_proj.bias -"));
  EXPECT_THAT(roles_of(*model, "layers.0.self_attn.o_proj"), testing::ElementsAre(".weight +0", ".bias +0"));
  EXPECT_EQ(model->num_parameters(), all);
}

TEST(Selection, StoragesOfOneRoleStayWhole) {
  const auto model = model_of(kQwen3);
  const size_t storages = model->parameters().size();
  const int64_t all = model->num_parameters();
  ASSERT_TRUE(select(*model, {.freeze = {"model.layers.[01].*", "model.embed_tokens.weight"},
                              .unfreeze = {"*.1.mlp.*"},
                              .groups = {{"*norm.weight"}, {"*.bias", "*"}}})
                  .ok());
  EXPECT_EQ(model->parameters().size(), storages);
  EXPECT_THAT(roles_of(*model, "layers.0.self_attn."),
              testing::ElementsAre("qkv_proj.weight -", "qkv_proj.bias -", "q_norm.weight -",
                                   "k_norm.weight -", "o_proj.weight -", "o_proj.bias -"));
  EXPECT_THAT(roles_of(*model, "layers.1.mlp."),
              testing::ElementsAre("gate_up_proj.weight +2", "down_proj.weight +2"));
  EXPECT_THAT(roles_of(*model, "layers.2.self_attn."),
              testing::ElementsAre("qkv_proj.weight +2", "qkv_proj.bias +2", "q_norm.weight +1",
                                   "k_norm.weight +1", "o_proj.weight +2", "o_proj.bias +2"));
  EXPECT_THAT(roles_of(*model, "model.embed"), testing::ElementsAre("_tokens.weight -"));
  EXPECT_EQ(model->num_parameters(), all);
  EXPECT_LT(model->num_trained(), all / 2);
}

TEST(Selection, StoragesOfSeveralRolesAreDivided) {
  const auto model = model_of(kQwen3);
  const auto before = tensor_list(*model);
  ASSERT_TRUE(select(*model, {.freeze = {"*.0.self_attn.q_proj.*"}, .groups = {{"*.up_proj.weight"}}}).ok());
  EXPECT_EQ(tensor_list(*model), before);
  EXPECT_THAT(roles_of(*model, "layers.0.self_attn."),
              testing::ElementsAre("q_proj.weight -", "k_proj.weight +0", "v_proj.weight +0", "q_proj.bias -",
                                   "k_proj.bias +0", "v_proj.bias +0", "q_norm.weight +0", "k_norm.weight +0",
                                   "o_proj.weight +0", "o_proj.bias +0"));
  EXPECT_THAT(roles_of(*model, "layers.1.mlp."),
              testing::ElementsAre("gate_proj.weight +0", "up_proj.weight +1", "down_proj.weight +0"));
  expect_views_cover(*model);
}

/// A frozen tensor has no hyper-parameters, so that its group cuts nothing.
TEST(Selection, AGroupOfFrozenTensorsDividesNothing) {
  const auto model = model_of(kQwen3);
  const size_t storages = model->parameters().size();
  ASSERT_TRUE(select(*model, {.freeze = {"*_proj.*"}, .groups = {{"*.q_proj.weight"}}}).ok());
  EXPECT_EQ(model->parameters().size(), storages);
}

TEST(Selection, RefusesWhatMatchesNothing) {
  EXPECT_THAT(refusal({.freeze = {"model.layer.0.*"}}),
              testing::AllOf(HasSubstr("training.freeze: no parameter matches 'model.layer.0.*'"),
                             HasSubstr("the nearest is model.layers.0.")));
  EXPECT_THAT(refusal({.freeze = {"*.0.*"}, .unfreeze = {"q_proj"}}),
              testing::AllOf(HasSubstr("training.unfreeze: no parameter matches 'q_proj'"),
                             HasSubstr("model.layers.0.self_attn.q_proj.weight, "
                                       "model.layers.0.self_attn.q_proj.bias")));
  EXPECT_THAT(refusal({.freeze = {"transformer.h.0"}}), HasSubstr("the first is model.embed_tokens.weight;"));
  EXPECT_THAT(refusal({.groups = {{"*"}, {"*.bais"}}}),
              HasSubstr("training.param_groups[1]: no parameter matches '*.bais'"));
  EXPECT_THAT(refusal({.freeze = {"lm_head.weight"}}),
              HasSubstr("lm_head.weight is tied to model.embed_tokens.weight"));
  EXPECT_THAT(refusal({.freeze = {"*"}}), HasSubstr("nothing is left to train"));
}

/// q frozen, k and v not: the same logits, by the interpreter and by the CPU's fused passes.
TEST(Selection, ADividedModelAnswersAlike) {
  const auto whole = model_of(kQwen3), divided = model_of(kQwen3);
  ASSERT_TRUE(select(*divided, {.freeze = {"*.q_proj.*", "*.up_proj.*"}}).ok());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 14; ++i) tokens.push_back(i * 7 % 31);
  EXPECT_EQ(CpuForward(*divided, 2, 7)(tokens), CpuForward(*whole, 2, 7)(tokens));
}

/// Whatever multiplies with weights goes through models/linear.h.
TEST(Linear, IsTheOnlyWay) {
  const auto folder = std::filesystem::path(PLIMSOLL_TEST_DIR).parent_path() / "src" / "models";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream in(entry.path());
    std::ostringstream text;
    text << in.rdbuf();
    if (entry.path().filename() != "linear.cpp") {
      EXPECT_EQ(text.str().find("ops::linear("), std::string::npos) << entry.path();
    }
  }
}

}  // namespace
}  // namespace plimsoll::models
