// DINOv2: its gated MLP, and positions that are resampled for the size of the images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "image_forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;

std::unique_ptr<ImageModel> dinov2_with(const char* changes) {
  return image_model_of(io::to_json(changed(dinov2_family().sample, changes).fields()));
}

TEST(Dinov2, HasTheTensorsOfFiles) {
  const auto plain = dinov2_with("{}");
  for (const char* tensor :
       {"dinov2.encoder.layer.0.norm1.weight [60]", "dinov2.encoder.layer.1.layer_scale2.lambda1 [60]",
        "dinov2.encoder.layer.0.mlp.fc1.weight [180,60]", "dinov2.encoder.layer.0.mlp.fc2.bias [60]",
        "classifier.weight [5,120]"})
    EXPECT_THAT(tensor_list(*plain), Contains(tensor));
  EXPECT_TRUE(plain->ignores_tensor("dinov2.embeddings.mask_token"));
  const auto gated = dinov2_with(R"({"use_swiglu_ffn": true})");
  for (const char* tensor : {"dinov2.encoder.layer.0.mlp.weights_in.weight [240,60]",
                             "dinov2.encoder.layer.0.mlp.weights_out.weight [60,120]"})
    EXPECT_THAT(tensor_list(*gated), Contains(tensor));
  expect_images_agree(*gated, 2, 35, 35);
}

TEST(Dinov2, ResamplesPositionsForOtherSizes) {
  const auto model = dinov2_with("{}");
  EXPECT_TRUE(model->constants().empty());
  ASSERT_TRUE(model->take_images(49, 28));
  ASSERT_EQ(model->constants().size(), 1U);
  EXPECT_EQ(model->constants().front().shape, (ir::Shape{28, 25}));
  expect_images_agree(*model, 2, 49, 28);
  ASSERT_TRUE(model->take_images(35, 35));
  EXPECT_TRUE(model->constants().empty());
  EXPECT_FALSE(model->take_images(35, 6));
}

TEST(Dinov2, WantsASquareOfPositions) {
  EXPECT_FALSE(make_image_model(changed(dinov2_family().sample, R"({"image_size": [35, 21]})")));
}

}  // namespace
}  // namespace plimsoll::models
