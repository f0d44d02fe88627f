// Files of features: rows in the order of the images, damaged ones, files that are cut off.
#include "corpora/images/image_features.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "corpora/images/image_files.h"
#include "corpora/images/scan_images.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

constexpr int64_t kFeatureWidth = 3;

class FeatureFile : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"blue", "red"}) {
      std::filesystem::create_directories(folder_.path(std::string("d/") + name));
      folder_.write(std::string("d/") + name + "/1.png", png_of(4, 4, 9, 9, 9));
    }
    ImageEntries entries;
    ASSERT_TRUE(add_images(folder_.path("d"), {}, entries));
    const auto scanned = scan_images(entries, {.processor = options_.processor});
    ASSERT_TRUE(scanned) << scanned.error().message();
    ASSERT_TRUE(write_image_list(lists_[0], entries, scanned->facts, scanned->summary));
    options_.labels = {io::ProblemType::kSingleLabel, {"blue", "red"}};
    options_.reading_bytes = scanned->summary.reading_bytes;
  }
  [[nodiscard]] std::string path(const std::string& key) const {
    const auto images = ImageDataset::open(lists_, options_);
    EXPECT_TRUE(images);
    return features_path(lists_, *images, key);
  }
  const io::TemporaryFolder folder_;
  const std::vector<std::string> lists_{folder_.path("x.images")};
  ImageDatasetOptions options_{.processor = images::default_processor(4)};
};

TEST_F(FeatureFile, HasARowForEachImage) {
  auto writer = FeatureWriter::create(path("key"), 2, kFeatureWidth);
  ASSERT_TRUE(writer) << writer.error().message();
  EXPECT_FALSE(has_features(path("key"), 2, kFeatureWidth)) << "not before it is whole";
  ASSERT_TRUE(writer->add_damaged());
  ASSERT_TRUE(writer->add(std::vector<float>{0.5F, -1, 2}));
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(has_features(path("key"), 2, kFeatureWidth));
  const auto source = open_features(lists_, options_, "key", kFeatureWidth);
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ((*source)->num_examples(), 2);
  std::vector<float> features(kFeatureWidth);
  std::vector<int32_t> label(1);
  const std::vector<std::span<std::byte>> row = {std::as_writable_bytes(std::span(features)),
                                                 std::as_writable_bytes(std::span(label))};
  std::vector<std::byte> scratch(static_cast<size_t>((*source)->scratch_bytes()));
  const auto damaged = (*source)->read(0, row, scratch);
  ASSERT_TRUE(damaged) << damaged.error().message();
  EXPECT_EQ(damaged->targets, 0);
  EXPECT_EQ(label[0], datasets::kNoTarget);
  EXPECT_THAT(features, testing::Each(0.0F));
  const auto whole = (*source)->read(1, row, scratch);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->targets, 1);
  EXPECT_EQ(label[0], 1);
  EXPECT_THAT(features, testing::ElementsAre(0.5F, -1, 2));
}

TEST_F(FeatureFile, OfOtherWeightsOrCutOffIsNone) {
  EXPECT_NE(path("key"), path("another"));
  folder_.write(std::filesystem::path(path("key")).filename().string(), std::string(4 * kFeatureWidth, 'x'));
  EXPECT_FALSE(has_features(path("key"), 2, kFeatureWidth));
  const auto source = open_features(lists_, options_, "key", kFeatureWidth);
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, ErrorCode::kBadData);
  EXPECT_THAT(source.error().message(), testing::HasSubstr("cut off"));
}

}  // namespace
}  // namespace plimsoll::corpora
