// ViT: its tensors by the names of files, the fields that are refused, the images that it takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "image_forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::string sample_with(const char* changes) {
  return io::to_json(changed(vit_family().sample, changes).fields());
}

TEST(Vit, HasTheTensorsOfFiles) {
  const auto model = image_model_of(std::string(vit_family().sample));
  std::vector<std::string> tensors;
  for (const Parameter& p : model->parameters())
    for (const ParameterView& view : p.views)
      tensors.push_back(view.name + " " + to_string(view.file_shape()));
  for (const char* tensor :
       {"vit.embeddings.cls_token [1,1,60]", "vit.embeddings.position_embeddings [1,26,60]",
        "vit.embeddings.patch_embeddings.projection.weight [60,3,7,7]",
        "vit.encoder.layer.1.attention.attention.key.weight [60,60]",
        "vit.encoder.layer.1.attention.attention.value.bias [60]",
        "vit.encoder.layer.0.attention.output.dense.weight [60,60]",
        "vit.encoder.layer.0.intermediate.dense.weight [84,60]",
        "vit.encoder.layer.0.output.dense.weight [60,84]", "vit.encoder.layer.0.layernorm_after.bias [60]",
        "vit.layernorm.weight [60]", "classifier.weight [5,60]", "classifier.bias [5]"})
    EXPECT_THAT(tensors, Contains(tensor));
  EXPECT_EQ(tensors.size(), 4U + 2 * 16 + 4);
  EXPECT_TRUE(model->ignores_tensor("vit.pooler.dense.weight"));
  EXPECT_FALSE(model->ignores_tensor("vit.layernorm.weight"));
}

TEST(Vit, LeavesBiasesOutWhereItsConfigDoes) {
  const auto model = image_model_of(sample_with(R"({"qkv_bias": false})"));
  EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("query.bias"))));
  EXPECT_THAT(tensor_list(*model), Contains(HasSubstr("output.dense.bias")));
  expect_images_agree(*model, 2, 35, 35);
}

TEST(Vit, TakesImagesOfItsSizeAlone) {
  const auto model = image_model_of(std::string(vit_family().sample));
  EXPECT_EQ(model->image_size(), 35);
  EXPECT_TRUE(model->take_images(35, 35));
  const Status other = model->take_images(42, 42);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("42 x 42"));
  EXPECT_THAT(other.error().hint, HasSubstr("interpolate_pos_encoding=true"));
  const auto wide = image_model_of(sample_with(R"({"image_size": [21, 35]})"));
  EXPECT_TRUE(wide->take_images(21, 35));
  EXPECT_FALSE(wide->take_images(35, 21));
  expect_images_agree(*wide, 2, 21, 35);
}

TEST(Vit, ResamplesItsPositionsWhereItsConfigAsks) {
  const auto model = image_model_of(sample_with(R"({"interpolate_pos_encoding": true})"));
  expect_images_agree(*model, 2, 35, 35);
  ASSERT_TRUE(model->take_images(42, 49));
  expect_images_agree(*model, 2, 42, 49);
  EXPECT_FALSE(model->take_images(6, 49)) << "less than a patch";
  const auto wide = make_image_model(
      changed(vit_family().sample, R"({"interpolate_pos_encoding": true, "image_size": [21, 35]})"));
  ASSERT_FALSE(wide);
  EXPECT_THAT(wide.error().message(), HasSubstr("interpolate_pos_encoding"));
}

TEST(Vit, RefusesWhatWouldChangeTheNumbers) {
  for (const char* change : {R"({"hidden_act": "relu"})", R"({"num_attention_heads": 7})",
                             R"({"patch_size": 36})", R"({"patch_size": [1, 2, 3]})", R"({"head_dim": 8})"}) {
    const auto made = make_image_model(changed(vit_family().sample, change));
    ASSERT_FALSE(made) << change;
    EXPECT_EQ(made.error().code, ErrorCode::kBadData);
  }
}

}  // namespace
}  // namespace plimsoll::models
