// Processor files of transformers and timm: what they mean, and what is refused because it would change
// pixels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "images/processor.h"
#include "io/json.h"

namespace plimsoll::images {
namespace {

using testing::HasSubstr;

Processor parsed_processor(std::string_view text) {
  return parse_processor(text, "preprocessor_config.json").value();
}

std::string file_refusal(std::string_view text) {
  const auto processor = parse_processor(text, "preprocessor_config.json");
  return processor.ok() ? "" : processor.error().message();
}

TEST(ProcessorFile, ViTWarpsToASquare) {
  const Processor processor =
      parsed_processor(R"({"image_processor_type": "ViTImageProcessor", "size": 96, "resample": 3,
      "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]})");
  Processor expected = default_processor(96);
  expected.interpolation = Interpolation::kBicubic;
  expected.mean = {0.1, 0.2, 0.3};
  expected.std = {0.4, 0.5, 0.6};
  EXPECT_EQ(processor, expected);
  EXPECT_EQ(parsed_processor("{}"), default_processor(224));
}

TEST(ProcessorFile, BitCropsTheMiddleOfTheShortestSide) {
  const Processor processor =
      parsed_processor(R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}})");
  EXPECT_EQ(processor.resize, Resize::kShortest);
  EXPECT_EQ(processor.shortest, 256);
  EXPECT_EQ(processor.crop, Crop::kCenter);
  EXPECT_EQ(processor.height, 224);
  EXPECT_EQ(processor.interpolation, Interpolation::kBicubic);
  EXPECT_EQ(processor.mean[0], 0.48145466);
}

TEST(ProcessorFile, ConvNextCropsBelow384AndWarpsFromThere) {
  const Processor small = parsed_processor(
      R"({"feature_extractor_type": "ConvNextFeatureExtractor", "size": 224, "crop_pct": 0.875})");
  EXPECT_EQ(small.shortest, 256);
  EXPECT_EQ(small.height, 224);
  EXPECT_EQ(small.crop, Crop::kCenter);
  const Processor large = parsed_processor(
      R"({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 384}})");
  EXPECT_EQ(large.resize, Resize::kExact);
  EXPECT_EQ(large.crop, Crop::kNone);
  EXPECT_EQ(large.width, 384);
}

TEST(ProcessorFile, FastMeansTorchvisionsPixels) {
  EXPECT_EQ(parsed_processor(R"({"image_processor_type": "ViTImageProcessorFast"})").backend,
            Backend::kTorch);
  EXPECT_EQ(parsed_processor(R"({"image_processor_type": "ViTImageProcessor"})").backend, Backend::kPil);
}

TEST(ProcessorFile, StepsCanBeOff) {
  const Processor processor =
      parsed_processor(R"({"do_resize": false, "do_rescale": false, "do_normalize": false, "size": 32})");
  EXPECT_EQ(processor.resize, Resize::kNone);
  EXPECT_EQ(processor.rescale, 1);
  EXPECT_EQ(processor.mean, (std::array<double, 3>{0, 0, 0}));
  EXPECT_EQ(processor.std, (std::array<double, 3>{1, 1, 1}));
}

TEST(ProcessorFile, RefusesWhatWouldChangePixels) {
  EXPECT_THAT(file_refusal(R"({"do_pad": true})"), HasSubstr("do_pad is true"));
  EXPECT_THAT(file_refusal(R"({"size": {"shortest_edge": 800, "longest_edge": 1333}})"),
              HasSubstr("longest_edge"));
  EXPECT_THAT(file_refusal(R"({"image_processor_type": "DetrImageProcessor"})"),
              HasSubstr("DetrImageProcessor"));
  EXPECT_THAT(file_refusal(R"({"resample": 5})"), HasSubstr("resample is 5"));
  EXPECT_THAT(file_refusal(R"({"size": {"shortest_edge": 224}})"), HasSubstr("crop: center"));
  EXPECT_THAT(file_refusal(R"({"size": -1})"), HasSubstr("size is -1"));
  EXPECT_THAT(file_refusal(R"({"image_std": [1, 0, 1]})"), HasSubstr("std"));
  EXPECT_THAT(file_refusal(R"({"image_mean": [1, 2]})"), HasSubstr("three numbers"));
  EXPECT_THAT(file_refusal("[]"), HasSubstr("object"));
}

TEST(ProcessorFile, IsWrittenSoThatItReadsBack) {
  std::vector<Processor> all = {default_processor(224)};
  all.push_back(
      parsed_processor(R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 256}})"));
  all.push_back(parsed_processor(R"({"image_processor_type": "ConvNextImageProcessor", "size": 288})"));
  all.push_back(
      parsed_processor(R"({"image_processor_type": "DeiTImageProcessor", "size": 256, "resample": 1})"));
  all.push_back(
      parsed_processor(R"({"do_resize": false, "do_rescale": false, "do_normalize": false, "size": 32})"));
  for (const Processor& processor : all) {
    const Processor again = parsed_processor(processor_json(processor));
    EXPECT_EQ(processor_json(again), processor_json(processor));
    EXPECT_EQ(again.height, processor.height);
    EXPECT_EQ(again.resize, processor.resize);
    EXPECT_EQ(again.crop, processor.crop);
    EXPECT_EQ(again.shortest, processor.shortest);
    EXPECT_EQ(again.mean, processor.mean);
    EXPECT_EQ(again.rescale, processor.rescale);
  }
}

TEST(TimmProcessor, CropsAsTimmEvaluates) {
  const auto tree =
      io::parse_json(R"({"input_size": [3, 224, 224], "crop_pct": 0.95, "interpolation": "bicubic",
      "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]})");
  const Processor processor = timm_processor(*tree, "config.json").value();
  EXPECT_EQ(processor.shortest, 235);
  EXPECT_EQ(processor.height, 224);
  EXPECT_TRUE(processor.round_offset);
  EXPECT_EQ(processor.std[2], 0.25);
}

TEST(TimmProcessor, RefusesOtherCrops) {
  const auto tree = io::parse_json(R"({"input_size": [3, 224, 224], "crop_mode": "border"})");
  const auto processor = timm_processor(*tree, "config.json");
  ASSERT_FALSE(processor.ok());
  EXPECT_THAT(processor.error().what, HasSubstr("crop_mode"));
}

TEST(TimmProcessor, NumbersThatCannotBeAreTheFiles) {
  const auto tree = io::parse_json(R"({"input_size": [3, 224, 224], "std": [0.5, 0, 0.5]})");
  const auto processor = timm_processor(*tree, "config.json");
  ASSERT_FALSE(processor.ok());
  EXPECT_EQ(processor.error().code, ErrorCode::kBadData);
  EXPECT_EQ(processor.error().where, "config.json");
  EXPECT_THAT(processor.error().what, HasSubstr("std is not a number above 0"));
}

TEST(Processor, ChecksThatSizesGoTogether) {
  Processor processor = default_processor(32);
  EXPECT_TRUE(check(processor).ok());
  processor.resize_width = 33;
  EXPECT_FALSE(check(processor).ok());
  processor.crop = Crop::kCenter;
  EXPECT_TRUE(check(processor).ok());
  processor.height = 0;
  EXPECT_FALSE(check(processor).ok());
  processor = default_processor(32);
  processor.max_pixels = 0;
  EXPECT_FALSE(check(processor).ok());
}

}  // namespace
}  // namespace plimsoll::images
