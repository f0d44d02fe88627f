// ConvNeXt: its tensors by the names of files, and the fields that are refused.
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

std::unique_ptr<ImageModel> convnext_with(const char* changes) {
  return image_model_of(io::to_json(changed(convnext_family().sample, changes).fields()));
}

TEST(ConvNext, HasTheTensorsOfFiles) {
  const auto model = convnext_with("{}");
  std::vector<std::string> tensors;
  for (const Parameter& p : model->parameters())
    for (const ParameterView& view : p.views)
      tensors.push_back(view.name + " " + to_string(view.file_shape()));
  for (const char* tensor :
       {"convnext.embeddings.patch_embeddings.weight [12,3,3,3]", "convnext.embeddings.layernorm.bias [12]",
        "convnext.encoder.stages.0.layers.0.dwconv.weight [12,1,7,7]",
        "convnext.encoder.stages.1.downsampling_layer.0.weight [12]",
        "convnext.encoder.stages.1.downsampling_layer.1.weight [20,12,2,2]",
        "convnext.encoder.stages.1.layers.1.layer_scale_parameter [20]",
        "convnext.encoder.stages.1.layers.1.pwconv1.weight [80,20]", "convnext.layernorm.weight [20]",
        "classifier.weight [5,20]"})
    EXPECT_THAT(tensors, Contains(tensor));
}

TEST(ConvNext, LeavesTheScaleOutWhereItIsNotPositive) {
  const auto model = convnext_with(R"({"layer_scale_init_value": 0.0})");
  EXPECT_THAT(tensor_list(*model), Not(Contains(HasSubstr("layer_scale_parameter"))));
  expect_images_agree(*model, 2, 23, 30);
}

TEST(ConvNext, TakesImagesThatItsStagesLeaveSomething) {
  const auto model = convnext_with("{}");
  EXPECT_TRUE(model->take_images(6, 100));
  EXPECT_FALSE(model->take_images(5, 100));
}

TEST(ConvNext, RefusesStagesThatDisagree) {
  for (const char* change : {R"({"num_stages": 4})", R"({"depths": [1]})", R"({"depths": 3})",
                             R"({"hidden_act": "relu"})", R"({"hidden_sizes": [0, 4]})"})
    EXPECT_FALSE(make_image_model(changed(convnext_family().sample, change))) << change;
}

}  // namespace
}  // namespace plimsoll::models
