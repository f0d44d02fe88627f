// Images with labels by position: decoded pixels, classes, damage.
#include "corpora/images/image_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.h"
#include "corpora/images/image_files.h"
#include "corpora/images/scan_images.h"
#include "datasets/example_source.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kSide = 4;

class ImageDatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path("d/green"));
    std::filesystem::create_directories(folder_.path("d/red"));
    folder_.write("d/green/1.png", png_of(9, 5, 0, 200, 0));
    folder_.write("d/red/1.png", png_of(5, 6, 200, 0, 0));
    folder_.write("d/red/2.png", png_of(4, 4, 100, 0, 0));
    ImageEntries entries;
    ASSERT_TRUE(add_images(folder_.path("d"), {}, entries));
    const auto scanned = scan_images(entries, {.processor = options_.processor});
    ASSERT_TRUE(scanned) << scanned.error().message();
    ASSERT_TRUE(write_image_list(list_, entries, scanned->facts, scanned->summary));
    options_.labels = {io::ProblemType::kSingleLabel, {"red", "green"}};
    options_.reading_bytes = scanned->summary.reading_bytes;
  }
  [[nodiscard]] Result<ImageDataset> open() const { return ImageDataset::open(std::vector{list_}, options_); }
  /// The class of image `index`, whose pixels go to `pixels_`.
  Result<int32_t> read(const ImageDataset& data, int64_t index) {
    std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
    return data.read(index, 0, pixels_, scratch);
  }
  const io::TemporaryFolder folder_;
  const std::string list_ = folder_.path("x.images");
  ImageDatasetOptions options_{.processor = images::default_processor(kSide)};
  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(kSide * kSide * 3, 1);
};

TEST_F(ImageDatasetTest, ReadsPixelsAndClasses) {
  const auto data = open();
  ASSERT_TRUE(data) << data.error().message();
  ASSERT_EQ(data->size(), 3);
  const int32_t classes[] = {1, 0, 0};
  const uint8_t red[] = {0, 200, 100}, green[] = {200, 0, 0};
  for (int64_t i = 0; i < 3; ++i) {
    const auto label = read(*data, i);
    ASSERT_TRUE(label) << label.error().message();
    EXPECT_EQ(*label, classes[i]);
    for (size_t p = 0; p < pixels_.size(); p += 3) {
      EXPECT_EQ(pixels_[p], red[i]);
      EXPECT_EQ(pixels_[p + 1], green[i]);
    }
  }
}

TEST_F(ImageDatasetTest, NamesFiles) {
  const auto data = open();
  ASSERT_TRUE(data);
  std::vector<std::byte> scratch(static_cast<size_t>(data->scratch_bytes()));
  EXPECT_EQ(*data->name(1, scratch), folder_.path("d/red/1.png"));
}

TEST_F(ImageDatasetTest, ReadingTakesNothingFromTheHeap) {
  const auto data = open();
  ASSERT_TRUE(data);
  std::vector<std::byte> scratch(static_cast<size_t>(data->scratch_bytes()));
  ASSERT_TRUE(data->read(0, 0, pixels_, scratch)) << "a thread's first";
  const int64_t before = num_allocations();
  for (int64_t i = 0; i < 3; ++i) ASSERT_TRUE(data->read(i, 1, pixels_, scratch));
  EXPECT_EQ(num_allocations(), before);
}

TEST_F(ImageDatasetTest, WithoutLabelsThereIsNoTarget) {
  options_.labels.names.clear();
  const auto data = open();
  ASSERT_TRUE(data);
  EXPECT_EQ(*read(*data, 1), datasets::kNoTarget);
  EXPECT_EQ(pixels_[0], 200);
}

TEST_F(ImageDatasetTest, AnImageThatIsDamagedWithinIsNamedOrLeftOut) {
  std::string damaged = png_of(5, 6, 200, 0, 0);
  for (size_t i = damaged.size() - 24; i < damaged.size() - 12; ++i) damaged[i] = 'x';
  folder_.write("d/red/1.png", damaged);
  const auto strict = open();
  ASSERT_TRUE(strict);
  const auto refused = read(*strict, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().where, HasSubstr("d/red/1.png"));
  options_.skips_damaged = true;
  const auto data = open();
  ASSERT_TRUE(data);
  EXPECT_EQ(*read(*data, 1), datasets::kNoTarget);
  EXPECT_THAT(pixels_, Each(0));
  EXPECT_EQ(*read(*data, 0), 1) << "others are read";
}

TEST_F(ImageDatasetTest, AnImageThatChangedIsRefused) {
  const auto data = open();
  ASSERT_TRUE(data);
  folder_.write("d/red/1.png", png_of(500, 600, 200, 0, 0));
  const auto refused = read(*data, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("has changed"));
}

TEST_F(ImageDatasetTest, APlanWithTooLittleMemoryIsRefused) {
  --options_.reading_bytes;
  EXPECT_FALSE(open());
}

TEST_F(ImageDatasetTest, FingerprintsFollowTheImages) {
  const uint64_t before = open()->fingerprint();
  ImageEntries entries;
  folder_.write("d/red/2.png", png_of(4, 4, 101, 0, 0));
  ASSERT_TRUE(add_images(folder_.path("d"), {}, entries));
  const auto scanned = scan_images(entries, {.processor = options_.processor});
  ASSERT_TRUE(scanned);
  ASSERT_TRUE(write_image_list(list_, entries, scanned->facts, scanned->summary));
  options_.reading_bytes = scanned->summary.reading_bytes;
  EXPECT_NE(open()->fingerprint(), before);
}

}  // namespace
}  // namespace plimsoll::corpora
