// BERT: its tensors by the names of files, its defaults, the fields that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "encoder_forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::string sample_with(const char* changes) {
  return io::to_json(changed(bert_family().sample, changes).fields());
}

TEST(Bert, HasTheTensorsOfFiles) {
  const auto model = model_of(std::string(bert_family().sample));
  const std::vector<std::string> tensors = tensor_list(*model);
  for (const char* tensor :
       {"bert.embeddings.word_embeddings.weight [211,60]",
        "bert.embeddings.position_embeddings.weight [128,60]",
        "bert.embeddings.token_type_embeddings.weight [3,60]", "bert.embeddings.LayerNorm.bias [60]",
        "bert.encoder.layer.1.attention.self.query.weight [60,60]",
        "bert.encoder.layer.1.attention.self.value.bias [60]",
        "bert.encoder.layer.0.attention.output.dense.weight [60,60]",
        "bert.encoder.layer.0.attention.output.LayerNorm.weight [60]",
        "bert.encoder.layer.0.intermediate.dense.weight [84,60]",
        "bert.encoder.layer.0.output.dense.weight [60,84]", "bert.encoder.layer.0.output.LayerNorm.bias [60]",
        "bert.pooler.dense.weight [60,60]", "classifier.weight [5,60]", "classifier.bias [5]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_EQ(tensors.size(), 5U + 2 * 16 + 2 + 2);
}

TEST(Bert, KnowsTheNamesOfOtherFiles) {
  const auto model = model_of(std::string(bert_family().sample));
  EXPECT_EQ(model->other_name("bert.embeddings.LayerNorm.weight"), "bert.embeddings.LayerNorm.gamma");
  EXPECT_EQ(model->other_name("bert.encoder.layer.0.output.LayerNorm.bias"),
            "bert.encoder.layer.0.output.LayerNorm.beta");
  EXPECT_EQ(model->other_name("classifier.weight"), "");
  for (const char* ignored : {"bert.embeddings.position_ids", "cls.predictions.decoder.weight",
                              "cls.seq_relationship.bias", "qa_outputs.weight"})
    EXPECT_TRUE(model->ignores_tensor(ignored)) << ignored;
  for (const char* read : {"bert.pooler.dense.weight", "classifier.weight", "bert.embeddings.more"})
    EXPECT_FALSE(model->ignores_tensor(read)) << read;
}

TEST(Bert, ItsPoolerIsDrawnWhereAFileLacksIt) {
  const auto model = model_of(std::string(bert_family().sample));
  EXPECT_TRUE(model->is_drawn_where_missing("bert.pooler.dense.bias"));
  EXPECT_FALSE(model->is_of_head("bert.pooler.dense.bias"));
  EXPECT_FALSE(model->is_drawn_where_missing("bert.embeddings.LayerNorm.bias"));
  EXPECT_TRUE(model->is_of_head("classifier.bias"));
}

TEST(Bert, BeginsAsItsConfigSays) {
  const auto model = model_of(std::string(bert_family().sample));
  for (const Parameter& p : model->parameters()) {
    const bool is_norm = p.name.find("LayerNorm") != std::string::npos;
    const bool is_bias = p.name.ends_with(".bias");
    EXPECT_EQ(p.init, is_bias ? Init::kZeros : is_norm ? Init::kOnes : Init::kNormal) << p.name;
    EXPECT_TRUE(p.init != Init::kNormal || p.init_std == 0.1) << p.name;
  }
}

TEST(Bert, WhatItsConfigLeavesOutIsTheClasses) {
  const auto model = model_of(R"({"model_type": "bert"})");
  EXPECT_EQ(model->num_parameters(), 109'482'240);
  EXPECT_EQ(model->max_positions(), 512);
  EXPECT_EQ(model->num_token_types(), 2);
}

TEST(Bert, TakesOtherActivations) {
  for (const char* name : {"relu", "silu", "swish", "tanh", "gelu_new", "quick_gelu"}) {
    const auto model = model_of(sample_with(("{\"hidden_act\": \"" + std::string(name) + "\"}").c_str()));
    const PaddedBatch batch = padded_batch(*model, {17, 9}, 17);
    SCOPED_TRACE(name);
    expect_close(compute_encoder(*model, batch), interpret_encoder(*model, batch));
  }
}

TEST(Bert, RefusesWhatWouldChangeTheNumbers) {
  for (const Refusal& row :
       {Refusal{R"({"is_decoder": true})", "is_decoder"},
        Refusal{R"({"add_cross_attention": true})", "add_cross_attention"},
        Refusal{R"({"position_embedding_type": "relative_key"})", "position_embedding_type"},
        Refusal{R"({"hidden_act": "mish"})", "hidden_act"},
        Refusal{R"({"num_attention_heads": 7})", "a divisor of hidden_size"},
        Refusal{R"({"pad_token_id": 211})", "pad_token_id"},
        Refusal{R"({"type_vocab_size": 0})", "type_vocab_size"},
        Refusal{R"({"pruned_heads": {"0": [1]}})", "pruned_heads"},
        Refusal{R"({"hidden_dropout_prob": 1.0})", "hidden_dropout_prob"}}) {
    const auto made = make_model(changed(bert_family().sample, row.changes));
    ASSERT_FALSE(made) << row.changes;
    EXPECT_EQ(made.error().code, ErrorCode::kBadData);
    EXPECT_THAT(made.error().message(), HasSubstr(row.what));
  }
}

}  // namespace
}  // namespace plimsoll::models
