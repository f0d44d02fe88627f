// DistilBERT: its tensors by the names of files, both spellings of its sizes, the fields that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "encoder_forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST(Distilbert, HasTheTensorsOfFiles) {
  const auto model = model_of(std::string(distilbert_family().sample));
  const std::vector<std::string> tensors = tensor_list(*model);
  for (const char* tensor : {"distilbert.embeddings.word_embeddings.weight [211,60]",
                             "distilbert.embeddings.LayerNorm.weight [60]",
                             "distilbert.transformer.layer.1.attention.q_lin.weight [60,60]",
                             "distilbert.transformer.layer.1.attention.v_lin.bias [60]",
                             "distilbert.transformer.layer.0.attention.out_lin.weight [60,60]",
                             "distilbert.transformer.layer.0.sa_layer_norm.weight [60]",
                             "distilbert.transformer.layer.0.ffn.lin1.weight [84,60]",
                             "distilbert.transformer.layer.0.ffn.lin2.weight [60,84]",
                             "distilbert.transformer.layer.0.output_layer_norm.bias [60]",
                             "pre_classifier.weight [60,60]", "classifier.weight [5,60]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_THAT(tensors, Not(Contains(HasSubstr("token_type"))));
  EXPECT_EQ(model->num_token_types(), 0);
  EXPECT_TRUE(model->is_of_head("pre_classifier.bias"));
  for (const char* ignored : {"vocab_transform.weight", "vocab_layer_norm.bias", "vocab_projector.weight"})
    EXPECT_TRUE(model->ignores_tensor(ignored)) << ignored;
}

TEST(Distilbert, ReadsItsSizesByEitherName) {
  const auto model = make_model(*io::parse_config_json(
      R"({"model_type": "distilbert", "vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 1,
          "num_attention_heads": 2, "hidden_dim": 20})",
      "config.json"));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_THAT(tensor_list(**model), Contains("distilbert.embeddings.word_embeddings.weight [31,12]"));
}

TEST(Distilbert, RefusesWhatWouldChangeTheNumbers) {
  for (const Refusal& row :
       {Refusal{R"({"sinusoidal_pos_embds": true})", "sinusoidal_pos_embds"},
        Refusal{R"({"hidden_size": 61})", "dim"}, Refusal{R"({"n_heads": 7})", "a divisor of dim"},
        Refusal{R"({"activation": "mish"})", "activation"}}) {
    const auto made = make_model(changed(distilbert_family().sample, row.changes));
    ASSERT_FALSE(made) << row.changes;
    EXPECT_EQ(made.error().code, ErrorCode::kBadData);
    EXPECT_THAT(made.error().message(), HasSubstr(row.what));
  }
}

}  // namespace
}  // namespace plimsoll::models
