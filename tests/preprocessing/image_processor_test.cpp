// The processor of a run: the model's file, and what data.images says over it.
#include "preprocessing/image_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"
#include "models/presets.h"

namespace plimsoll::preprocessing {
namespace {

using testing::HasSubstr;

class ImageProcessorTest : public testing::Test {
 protected:
  [[nodiscard]] Result<images::Processor> of(const std::vector<std::string>& overrides) const {
    folder_.write("config.json", R"({"model_type": "vit", "image_size": 96})");
    const auto run = settings::parse_run_config(
        "task: image_classification\nmodel: {path: " + folder_.path() + "}\n", "run.yaml", overrides);
    EXPECT_TRUE(run) << (run ? "" : run.error().message());
    return image_processor(*run, *settings::load_model_config(run->model));
  }
  void write_processor(const std::string& json) const { folder_.write("preprocessor_config.json", json); }
  const io::TemporaryFolder folder_;
};

constexpr const char* kBit = R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256},
  "crop_size": {"height": 224, "width": 224}, "do_resize": true, "do_center_crop": true, "resample": 3,
  "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true, "do_convert_rgb": true,
  "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]})";

TEST_F(ImageProcessorTest, WithoutAFileItIsTheModelsSize) {
  const auto p = of({});
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(*p, images::default_processor(96));
}

TEST_F(ImageProcessorTest, TheFileSays) {
  write_processor(kBit);
  const auto p = of({});
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(p->height, 224);
  EXPECT_EQ(p->shortest, 256);
  EXPECT_EQ(p->crop, images::Crop::kCenter);
  EXPECT_EQ(p->interpolation, images::Interpolation::kBicubic);
  EXPECT_EQ(p->mean[2], 0.406);
}

TEST_F(ImageProcessorTest, SettingsWin) {
  write_processor(kBit);
  const auto p = of({"data.images.size=112", "data.images.interpolation=lanczos", "data.images.alpha=white",
                     "data.images.mean=[0.1, 0.2, 0.3]", "data.images.orientation=ignore",
                     "data.images.backend=torch", "data.images.max_pixels=1000", "data.images.rescale=0.5"});
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(p->height, 112);
  EXPECT_EQ(p->shortest, 128) << "it keeps its proportion to the crop";
  EXPECT_EQ(p->interpolation, images::Interpolation::kLanczos);
  EXPECT_EQ(p->alpha, images::Alpha::kWhite);
  EXPECT_EQ(p->mean[1], 0.2);
  EXPECT_EQ(p->std[1], 0.224) << "what is not given is the file's";
  EXPECT_EQ(p->orientation, images::Orientation::kIgnore);
  EXPECT_EQ(p->backend, images::Backend::kTorch);
  EXPECT_EQ(p->max_pixels, 1000);
  EXPECT_EQ(p->rescale, 0.5);
}

TEST_F(ImageProcessorTest, ShortestResizesToTheSizeAndCrops) {
  const auto p = of({"data.images.size=48", "data.images.resize=shortest", "data.images.crop=center"});
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(p->resize, images::Resize::kShortest);
  EXPECT_EQ(p->shortest, 48);
  EXPECT_EQ(p->crop, images::Crop::kCenter);
  EXPECT_EQ(p->width, 48);
}

TEST_F(ImageProcessorTest, ExactResizesBothSides) {
  write_processor(kBit);
  const auto p = of({"data.images.resize=exact"});
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(p->resize_height, 224);
  EXPECT_EQ(p->resize_width, 224);
  EXPECT_EQ(p->crop, images::Crop::kNone);
}

TEST_F(ImageProcessorTest, PresetsHaveTheirOwn) {
  const auto run = settings::parse_run_config("model: {preset: vit-s-16}\n", "run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  const auto p = image_processor(*run, *settings::load_model_config(run->model));
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(*p, *images::parse_processor(models::preset_processor("vit-s-16"), "vit-s-16"));
}

TEST_F(ImageProcessorTest, TimmsConfigIsRead) {
  folder_.write("config.json", "{}");
  const auto run = settings::parse_run_config(
      "task: image_classification\nmodel: {config: {model_type: resnet, pretrained_cfg: {input_size: [3, "
      "160, "
      "160], mean: [0.5, 0.4, 0.3], std: [0.1, 0.2, 0.3], interpolation: bicubic, crop_pct: 1.0}}}\n",
      "run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  const auto p = image_processor(*run, *settings::load_model_config(run->model));
  ASSERT_TRUE(p) << p.error().message();
  EXPECT_EQ(p->height, 160);
  EXPECT_EQ(p->mean[1], 0.4);
}

TEST_F(ImageProcessorTest, WhatReadingTakesIsNeverNothing) {
  const auto run = settings::parse_run_config(
      "model: {config: {model_type: vit, image_size: 32}}\ntraining: {label_smoothing: 0.1}\n"
      "task: image_classification\ndata: {images: {augment: [flip]}}\n",
      "run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  const io::ConfigJson model = *settings::load_model_config(run->model);
  const auto unknown = image_inputs(*run, model, 0), known = image_inputs(*run, model, 123456789);
  ASSERT_TRUE(unknown && known);
  EXPECT_GT(unknown->reading_bytes, 0);
  EXPECT_EQ(known->reading_bytes, 123456789);
  EXPECT_EQ(known->augmentations.size(), 1U);
  EXPECT_EQ(known->label_smoothing, 0.1);
}

}  // namespace
}  // namespace plimsoll::preprocessing
