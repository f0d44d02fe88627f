// data.images: what it takes, what contradicts, and that it reads back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

Result<RunConfig> parse_images(const std::string& images, const std::string& task = "image_classification") {
  return parse_run_config(
      "task: " + task + "\nmodel: {config: {model_type: vit}}\ndata: {images: " + images + "}\n", "run.yaml");
}

std::string image_refusal(const std::string& images, const std::string& task = "image_classification") {
  const auto run = parse_images(images, task);
  return run ? "accepted" : run.error().message() + " | " + run.error().hint;
}

TEST(ImageSettings, ReadBackAsTheyAreRecorded) {
  const auto run = parse_images(
      "{size: 96, resize: shortest, crop: center, interpolation: bicubic, rescale: 1, mean: [0, 0.5, 1], "
      "std: "
      "[1, 2, 3], orientation: ignore, alpha: white, max_pixels: 1000, backend: torch, augment: "
      "[random_resized_crop, {flip: {p: 0.25}}]}");
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->data.images.size, 96);
  EXPECT_EQ(run->data.images.augment.entries.items.size(), 2U);
  const auto again = parse_run_config(run_config_yaml(*run), "again.yaml");
  ASSERT_TRUE(again) << again.error().message();
  for (const Setting& setting : settings())
    EXPECT_EQ(setting_text(setting, *again), setting_text(setting, *run)) << setting.path;
}

TEST(ImageSettings, WrongValuesAreNamed) {
  EXPECT_THAT(image_refusal("{size: 0}"), HasSubstr("data.images.size is 0"));
  EXPECT_THAT(image_refusal("{resize: longest}"), HasSubstr("auto, none, shortest, exact"));
  EXPECT_THAT(image_refusal("{mean: [0.5]}"), HasSubstr("data.images.mean has 1 numbers"));
  EXPECT_THAT(image_refusal("{std: [0.5, 0, 1]}"), HasSubstr("data.images.std"));
  EXPECT_THAT(image_refusal("{augment: [flop]}"), HasSubstr("data.images.augment"));
  EXPECT_THAT(image_refusal("{augment: [[flip]]}"), HasSubstr("a list of names or {name: parameters}"));
  EXPECT_THAT(image_refusal("{augment: 3}"), HasSubstr("data.images.augment is 3"));
}

TEST(ImageSettings, HaveNoEffectOnTexts) {
  EXPECT_THAT(image_refusal("{size: 64}", "causal_lm"), HasSubstr("has no effect with task causal_lm"));
  EXPECT_EQ(image_refusal("{size: 64}", "auto"), "accepted") << "the model says which task it is";
}

}  // namespace
}  // namespace plimsoll::settings
