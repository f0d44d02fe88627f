// Image models are one kind of models: code that needs pixels asks for one.
#include "models/image_model.h"

#include <gtest/gtest.h>

namespace plimsoll::models {
namespace {

class Bare final : public ImageModel {
 public:
  ir::ValueId features(ir::Builder& /*b*/, const ImageForward& forward) const override {
    return forward.pixels;
  }
  ir::ValueId scores(ir::Builder& /*b*/, ir::ValueId features) const override { return features; }
};

TEST(ImageModelTest, IsOneKindOfModel) {
  Bare image;
  const Model other;
  EXPECT_EQ(as_image_model(static_cast<const Model&>(image)), &image);
  EXPECT_EQ(as_image_model(other), nullptr);
  EXPECT_EQ(image.image_size(), 0);
  EXPECT_EQ(image.channels(), 3);
}

TEST(ImageModelTest, KnowsTheTensorsOfItsHead) {
  const Bare image;
  EXPECT_TRUE(image.is_of_head("classifier.weight"));
  EXPECT_TRUE(image.is_of_head("classifier.1.bias"));
  EXPECT_FALSE(image.is_of_head("classifiers.weight"));
  EXPECT_FALSE(image.is_of_head("score.weight"));
  EXPECT_TRUE(Model().is_of_head("score.weight"));
}

TEST(ImageModelTest, RefusesImagesWithoutPixels) {
  Bare image;
  EXPECT_TRUE(image.take_images(1, 7));
  EXPECT_FALSE(image.take_images(0, 7));
}

TEST(ImageModelTest, IsMadeOfAnImageFamilyAlone) {
  const auto made = make_image_model(*io::parse_config_json(
      R"({"model_type": "gpt2", "vocab_size": 10, "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 8})",
      "config.json"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::models
