// ModernBERT: its tensors by the names of files, both spellings of its config, what layers see, the mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "changed_config.h"
#include "encoder_forward.h"
#include "models/classifier.h"
#include "models/families.h"
#include "models/modernbert_config.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

io::ConfigJson with(const char* changes) { return changed(modernbert_family().sample, changes); }
std::unique_ptr<LanguageModel> model_with(const char* changes) {
  return model_of(io::to_json(with(changes).fields()));
}

TEST(ModernBert, HasTheTensorsOfFiles) {
  const auto model = model_with("{}");
  const std::vector<std::string> tensors = tensor_list(*model);
  for (const char* tensor :
       {"model.embeddings.tok_embeddings.weight [211,60]", "model.embeddings.norm.weight [60]",
        "model.layers.0.attn.Wqkv.weight [180,60]", "model.layers.0.attn.Wo.weight [60,60]",
        "model.layers.1.attn_norm.weight [60]", "model.layers.0.mlp_norm.weight [60]",
        "model.layers.2.mlp.Wi.weight [168,60]", "model.layers.2.mlp.Wo.weight [60,84]",
        "model.final_norm.weight [60]", "head.dense.weight [60,60]", "head.norm.weight [60]",
        "classifier.weight [5,60]", "classifier.bias [5]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_EQ(tensors.size(), 2U + 6 * 3 - 1 + 1 + 4) << "no biases, no norm before the first attention";
  EXPECT_TRUE(model->ignores_tensor("decoder.bias"));
  EXPECT_TRUE(model->is_drawn_where_missing("head.norm.weight")) << "of a bare model's file";
  const std::vector<std::string> biased = tensor_list(*model_with(
      R"({"norm_bias": true, "attention_bias": true, "mlp_bias": true, "classifier_bias": true})"));
  for (const char* tensor :
       {"model.layers.0.mlp_norm.bias [60]", "model.layers.0.attn.Wqkv.bias [180]",
        "model.layers.1.attn.Wo.bias [60]", "model.layers.1.mlp.Wi.bias [168]",
        "model.layers.1.mlp.Wo.bias [60]", "head.dense.bias [60]", "head.norm.bias [60]"})
    EXPECT_THAT(biased, Contains(tensor));
}

TEST(ModernBert, HasAMaskedHeadWithTheTableOfWords) {
  const auto config = as_masked_lm(with("{}"), {});
  ASSERT_TRUE(config) << config.error().message();
  const auto model = *make_language_model(*config);
  const std::vector<std::string> tensors = tensor_list(*model);
  for (const char* tensor : {"head.dense.weight [60,60]", "head.norm.weight [60]", "decoder.bias [211]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_THAT(tensors, Not(Contains(HasSubstr("decoder.weight"))));
  ASSERT_TRUE(model->tied_head());
  EXPECT_EQ(model->tied_head()->head, "decoder.weight");
  EXPECT_EQ(model->tied_head()->embedding, "model.embeddings.tok_embeddings.weight");
  EXPECT_TRUE(model->ignores_tensor("classifier.weight"));
  EXPECT_THAT(tensor_list(**make_language_model(*as_masked_lm(with(R"({"decoder_bias": false})"), {}))),
              Not(Contains(HasSubstr("decoder"))));
}

TEST(ModernBert, AnswersWithTheClassifiersNames) {
  const auto config = as_question_answering(with("{}"), {});
  ASSERT_TRUE(config) << config.error().message();
  const auto model = *make_language_model(*config);
  EXPECT_TRUE(model->has_span_head());
  EXPECT_THAT(tensor_list(*model), Contains("classifier.weight [2,60]"));
  EXPECT_EQ(model->head_module(), "classifier");
}

TEST(ModernBert, BothSpellingsOfItsConfigAreOne) {
  const ModernBertConfig old = *read_modernbert(with("{}"));
  EXPECT_THAT(old.windows, ElementsAre(0, 8, 0)) << "seven on each side, and itself";
  EXPECT_EQ(old.rope.theta, 160000);
  EXPECT_EQ(old.sliding_rope.theta, 10000);
  const ModernBertConfig now =
      *read_modernbert(with(R"({"global_attn_every_n_layers": null, "global_rope_theta": null,
    "local_rope_theta": null, "layer_types": ["sliding_attention", "full_attention", "full_attention"],
    "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 7000.0},
    "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 600.0}}})"));
  EXPECT_THAT(now.windows, ElementsAre(8, 0, 0));
  EXPECT_EQ(now.rope.theta, 7000);
  EXPECT_EQ(now.sliding_rope.theta, 600);
  EXPECT_EQ(now.sliding_rope.kind, RopeConfig::Kind::kLinear);
  EXPECT_TRUE(now.unknown_fields.empty());
  EXPECT_THAT(read_modernbert(with(R"({"rope_parameters": {"rope_theta": 7000.0}})"))->unknown_fields,
              ElementsAre("rope_parameters.rope_theta"))
      << "of no type of layer, as in transformers";
  EXPECT_EQ(read_modernbert(with(R"({"local_rope_theta": null})"))->sliding_rope.theta, 160000)
      << "as transformers 4";
}

TEST(ModernBert, LayersThatSlideSeeBothSides) {
  // A single layer: what changes a row is what it sees.
  const auto config =
      as_masked_lm(with(R"({"num_hidden_layers": 1, "layer_types": ["sliding_attention"]})"), {});
  const auto model = *make_language_model(*config);
  const std::vector<bool> influenced = positions_influenced(*model, 1, 30, 0, 12);
  for (int64_t t = 0; t < 30; ++t) EXPECT_EQ(influenced[static_cast<size_t>(t)], std::abs(t - 12) < 8) << t;
}

TEST(ModernBert, TheMeanLeavesPaddingOut) {
  const auto model = model_with(R"({"classifier_pooling": "mean"})");
  const std::vector<int64_t> lengths = {33, 1, 20};
  const PaddedBatch batch = padded_batch(*model, lengths, 50);
  const std::vector<float> scores = compute_encoder(*model, batch);
  expect_close(scores, interpret_encoder(*model, batch));
  EXPECT_NE(scores, compute_encoder(*model_with("{}"), batch));
  EXPECT_EQ(compute_encoder(*model, padded_batch(*model, lengths, 33)), scores) << "bit for bit";
  EXPECT_EQ(compute_encoder(*model, padded_batch(*model, {29, 29}, 29)),
            compute_encoder(*model, padded_batch(*model, {29, 29}, 29), {.documents = false}));
}

TEST(ModernBert, DrawsAsItsConfigSays) {
  const auto model = model_with("{}");
  const auto deviation = [&](std::string_view name) {
    for (const Parameter& p : model->parameters())
      if (p.name == name) return p.init_std;
    return -1.0;
  };
  // A normal distribution within two deviations has 0.8796 of the deviation.
  EXPECT_NEAR(deviation("model.layers.1.mlp.Wi.weight"), 0.1 * 0.87963, 1e-6);
  EXPECT_NEAR(deviation("model.layers.1.mlp.Wo.weight"), 0.1 * 0.87963 / std::sqrt(6), 1e-6);
  EXPECT_NEAR(deviation("classifier.weight"), 0.87963 / std::sqrt(60), 1e-6);
}

TEST(ModernBert, RefusesWhatItCannotBe) {
  const auto message = [](const char* changes) {
    const auto made = make_model(with(changes));
    return made ? std::string() : made.error().message();
  };
  EXPECT_THAT(message(R"({"num_attention_heads": 7})"), HasSubstr("a divisor of hidden_size (60)"));
  EXPECT_THAT(message(R"({"num_attention_heads": 4})"), HasSubstr("rotation takes pairs"));
  EXPECT_THAT(message(R"({"layer_types": ["full_attention"]})"), HasSubstr("a list of 3 attention types"));
  EXPECT_THAT(message(R"({"layer_types": ["full_attention", "other", "full_attention"]})"),
              HasSubstr("layer_types"));
  EXPECT_THAT(message(R"({"global_attn_every_n_layers": 0})"), HasSubstr("global_attn_every_n_layers"));
  EXPECT_THAT(message(R"({"local_attention": 0})"), HasSubstr("local_attention"));
  EXPECT_THAT(message(R"({"classifier_pooling": "max"})"), HasSubstr("cls or mean"));
  EXPECT_THAT(message(R"({"hidden_activation": "mish"})"), HasSubstr("hidden_activation"));
  EXPECT_THAT(message(R"({"rope_parameters": {"full_attention": {"rope_type": "ntk"}}})"),
              HasSubstr("rope_type"));
}

}  // namespace
}  // namespace plimsoll::models
