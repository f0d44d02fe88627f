// Which tensors are kept in few bits, and what the model computes with them.
#include "models/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward.h"
#include "models/lora.h"
#include "models/selection.h"
#include "stacked_model.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

constexpr const char* kQuantizable = R"({"model_type": "qwen2", "vocab_size": 31, "hidden_size": 24,
  "intermediate_size": 28, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
  "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "tie_word_embeddings": false})";

std::string dtypes_of(const Model& model, std::string_view within) {
  std::string text;
  for (const Parameter& p : model.parameters())
    if (p.name.find(within) != std::string::npos)
      text += p.name + " " + std::string(ir::name(p.dtype)) + (p.part_of.empty() ? "" : " of " + p.part_of) +
              "\n";
  return text;
}

TEST(Quantize, LinearMapsOfBlocksATensorEach) {
  const auto model = model_of(kQuantizable);
  ASSERT_TRUE(add_adapters(*model, {.r = 2}, "qwen2").ok());
  ASSERT_TRUE(select(*model, {}).ok());
  ASSERT_TRUE(
      quantize(*model, {ir::DType::kNf4Double, true, {"down_proj", "layers.1.self_attn.k_proj"}}).ok());
  const std::string first = dtypes_of(*model, "layers.0.");
  EXPECT_THAT(first, HasSubstr("model.layers.0.self_attn.q_proj.weight nf4_double of "));
  EXPECT_THAT(first, HasSubstr("model.layers.0.self_attn.k_proj.weight nf4_double of "));
  EXPECT_THAT(first, HasSubstr("model.layers.0.mlp.up_proj.weight nf4_double of "));
  EXPECT_THAT(first, HasSubstr("model.layers.0.mlp.down_proj.weight f32\n"));
  EXPECT_THAT(dtypes_of(*model, "layers.1."), HasSubstr("model.layers.1.self_attn.k_proj.weight f32 of "));
  for (const char* whole : {"embed_tokens", "norm", "lm_head", "lora_", "bias"})
    EXPECT_EQ(dtypes_of(*model, whole).find("nf4"), std::string::npos) << whole;
}

TEST(Quantize, SaysWhatStandsAgainstIt) {
  const auto refusal = [](const LoraSpec& lora, bool adapts, const QuantizeSpec& spec) {
    const auto model = model_of(kQuantizable);
    if (adapts) {
      EXPECT_TRUE(add_adapters(*model, lora, "qwen2").ok());
    }
    const Status status = quantize(*model, spec);
    EXPECT_FALSE(status.ok());
    return status ? std::string() : status.error().what + " | " + status.error().hint;
  };
  EXPECT_THAT(refusal({}, false, {}), HasSubstr("no linear layer of the model is frozen"));
  EXPECT_THAT(refusal({.init_lora_weights = LoraInit::kPissa}, true, {.stored = true}),
              HasSubstr("the model's files are quantized"));
  const auto loftq = [](Loftq how) {
    return LoraSpec{.init_lora_weights = LoraInit::kLoftq, .loftq_config = std::move(how)};
  };
  EXPECT_THAT(refusal(loftq({.bits = 8}), true, {}), HasSubstr("loftq_bits is 8"));
  EXPECT_THAT(refusal(loftq({.iterations = 2}), true, {.stored = true}), HasSubstr("LoftQ in 2 iterations"));
  EXPECT_THAT(refusal(loftq({.bits = 4, .dtype = ir::DType::kFp4}), true, {}),
              HasSubstr("was initialised with LoftQ for weights in fp4, and they are in nf4"));
  EXPECT_THAT(refusal({}, true, {ir::DType::kNf4, true, {"gate_prj"}}),
              HasSubstr("no linear layer is named gate_prj"));
}

TEST(Quantize, LoftqNeedsWeightsInFewBits) {
  const auto model = model_of(kQuantizable);
  EXPECT_TRUE(check_whole(*model).ok());
  ASSERT_TRUE(add_adapters(*model, {.init_lora_weights = LoraInit::kLoftq}, "qwen2").ok());
  const Status status = check_whole(*model);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().what, HasSubstr("the weights are not quantized"));
  ASSERT_TRUE(select(*model, {}).ok());
  EXPECT_TRUE(quantize(*model, {}).ok());
}

TEST(Quantize, RefusesAStackThatNobodySkips) {
  StackedModel model;
  const Status refused = quantize(model, {.learns = false});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().what, HasSubstr("layers.0.experts.up_proj.weight is a stack of linear layers"));
  ASSERT_TRUE(quantize(model, {.learns = false, .skip_modules = {"experts.up_proj"}}));
  EXPECT_EQ(dtypes_of(model, "layers.0."),
            "layers.0.norm.weight f32\nlayers.0.router.weight nf4\nlayers.0.experts.up_proj.weight f32\n");
  StackedModel stored;  // files of a directory have a stack whole
  EXPECT_TRUE(quantize(stored, {.learns = false, .stored = true}));
}

}  // namespace
}  // namespace plimsoll::models
