// RoBERTa: its tensors by the names of files, its positions, the fields that are refused.
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

TEST(Roberta, HasTheTensorsOfFiles) {
  const auto model = model_of(std::string(roberta_family().sample));
  const std::vector<std::string> tensors = tensor_list(*model);
  for (const char* tensor :
       {"roberta.embeddings.word_embeddings.weight [211,60]",
        "roberta.embeddings.position_embeddings.weight [130,60]",
        "roberta.embeddings.token_type_embeddings.weight [1,60]",
        "roberta.encoder.layer.1.attention.self.key.weight [60,60]", "classifier.dense.weight [60,60]",
        "classifier.dense.bias [60]", "classifier.out_proj.weight [5,60]", "classifier.out_proj.bias [5]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_THAT(tensors, Not(Contains(HasSubstr("pooler"))));
  for (const char* ignored : {"roberta.embeddings.position_ids", "roberta.pooler.dense.weight",
                              "lm_head.decoder.weight", "classifier.weight"})
    EXPECT_TRUE(model->ignores_tensor(ignored)) << ignored;
  EXPECT_TRUE(model->is_of_head("classifier.dense.weight"));
  EXPECT_FALSE(model->is_drawn_where_missing("classifier.dense.weight"));
}

TEST(Roberta, ItsBareModelHasAPooler) {
  const auto model = make_model(changed(roberta_family().sample, R"({"architectures": ["RobertaModel"]})"));
  ASSERT_TRUE(model);
  EXPECT_THAT(tensor_list(**model), Contains("roberta.pooler.dense.weight [60,60]"));
}

TEST(Roberta, PositionsBeginBehindThePaddingToken) {
  const auto model = model_of(std::string(roberta_family().sample));
  EXPECT_EQ(model->max_positions(), 128);
  const auto other =
      model_of(io::to_json(changed(roberta_family().sample, R"({"pad_token_id": 4})").fields()));
  EXPECT_EQ(other->max_positions(), 125);
  // As long as it can be: the last row of the table is read, and none behind it.
  const PaddedBatch batch = padded_batch(*model, {128, 3}, 128);
  expect_close(compute_encoder(*model, batch), interpret_encoder(*model, batch));
  EXPECT_NE(interpret_encoder(*model, padded_batch(*model, {9, 3}, 9)),
            interpret_encoder(*other, padded_batch(*model, {9, 3}, 9)));
}

TEST(Roberta, RefusesPositionsWithoutAStart) {
  for (const Refusal& row : {Refusal{R"({"pad_token_id": null})", "pad_token_id"},
                             Refusal{R"({"pad_token_id": 200})", "max_position_embeddings"},
                             Refusal{R"({"max_position_embeddings": 2})", "max_position_embeddings"}}) {
    const auto made = make_model(changed(roberta_family().sample, row.changes));
    ASSERT_FALSE(made) << row.changes;
    EXPECT_THAT(made.error().message(), HasSubstr(row.what));
  }
}

TEST(Roberta, ItsKinDifferInTheirNamesAlone) {
  for (const Family* kin : {&xlm_roberta_family(), &camembert_family()}) {
    const auto model = model_of(std::string(kin->sample));
    EXPECT_EQ(tensor_list(*model), tensor_list(*model_of(std::string(roberta_family().sample))));
  }
}

}  // namespace
}  // namespace plimsoll::models
