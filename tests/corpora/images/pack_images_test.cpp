// Images packed in every way are read as their files are: the same pixels, the same fingerprint.
#include "corpora/images/pack_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "corpora/images/image_dataset.h"
#include "corpora/images/image_files.h"
#include "images/stored_pixels.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

constexpr int64_t kInput = 6;

class PackImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"d/a", "d/b"}) std::filesystem::create_directories(folder_.path(name));
    folder_.write("d/a/1.png", png_of(9, 5, 0, 200, 0));
    folder_.write("d/a/2.png", png_of(5, 16, 10, 20, 30));
    folder_.write("d/b/1.png", png_of(12, 12, 200, 0, 0));
    options_.processor = images::default_processor(kInput);
    options_.processor.resize = images::Resize::kShortest;
    options_.processor.shortest = 8;
    options_.processor.crop = images::Crop::kCenter;
    options_.labels = {io::ProblemType::kSingleLabel, {"a", "b"}};
    options_.skips_damaged = true;
  }
  /// The images of the files, packed as `how` says or left where they are, as a list.
  Result<ImageDataset> dataset(const PackImages* how) {
    ImageEntries entries;
    PLIMSOLL_TRY(add_images(folder_.path("d"), {}, entries));
    const auto* augmentations = options_.augmentations.empty() ? nullptr : &options_.augmentations;
    PLIMSOLL_ASSIGN(ScannedImages scanned,
                    scan_images(entries, {.processor = options_.processor, .augmentations = augmentations}));
    if (how != nullptr)
      PLIMSOLL_TRY(pack_images(folder_.path("x.pixels"), *how, augmentations, entries, scanned));
    PLIMSOLL_TRY(write_image_list(folder_.path("x.images"), entries, scanned.facts, scanned.summary));
    options_.reading_bytes = scanned.summary.reading_bytes;
    return ImageDataset::open(std::vector{folder_.path("x.images")}, options_);
  }
  /// Of all images in an epoch, with their classes.
  static std::vector<int> all_of(const ImageDataset& data) {
    std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
    std::vector<uint8_t> pixels(kInput * kInput * 3);
    std::vector<int> all;
    for (int64_t i = 0; i < data.size(); ++i) {
      const auto label = data.read(i, 2, pixels, scratch);
      EXPECT_TRUE(label) << (label ? "" : label.error().message());
      all.push_back(label ? *label : -1);
      all.insert(all.end(), pixels.begin(), pixels.end());
    }
    return all;
  }
  const io::TemporaryFolder folder_;
  ImageDatasetOptions options_;
};

TEST_F(PackImagesTest, EveryFormReadsAsTheFiles) {
  for (const bool crops : {false, true}) {
    options_.augmentations.clear();
    if (crops) options_.augmentations.push_back({.kind = images::Augmentation::Kind::kRandomResizedCrop});
    options_.augmentations.push_back({.kind = images::Augmentation::Kind::kFlip});
    const auto files = dataset(nullptr);
    ASSERT_TRUE(files) << files.error().message();
    const std::vector<int> expected = all_of(*files);
    const uint64_t fingerprint = files->fingerprint();
    for (const int form : {0, 1, 2}) {
      if (form == 2 && crops) continue;
      const PackImages how{
          .processor = options_.processor, .decoded = form > 0, .ready = form == 2, .num_threads = form + 1};
      const auto packed = dataset(&how);
      ASSERT_TRUE(packed) << packed.error().message();
      EXPECT_EQ(all_of(*packed), expected) << crops << " " << form;
      EXPECT_EQ(packed->fingerprint(), fingerprint) << "the same images, wherever they lie";
    }
  }
}

TEST_F(PackImagesTest, NamesThePackAndTheImage) {
  const PackImages how{.processor = options_.processor};
  const auto data = dataset(&how);
  ASSERT_TRUE(data) << data.error().message();
  std::vector<std::byte> scratch(static_cast<size_t>(data->scratch_bytes()));
  const auto name = data->name(1, scratch);
  ASSERT_TRUE(name);
  EXPECT_TRUE(name->starts_with(folder_.path("x.pixels") + ": ") && name->ends_with("2.png")) << *name;
}

TEST_F(PackImagesTest, TheShorterSideShrinks) {
  ImageEntries entries;
  ASSERT_TRUE(add_images(folder_.path("d"), {}, entries));
  auto scanned = scan_images(entries, {.processor = options_.processor});
  ASSERT_TRUE(scanned);
  const PackImages how{.processor = options_.processor, .decoded = true, .shortest = 6};
  ASSERT_TRUE(pack_images(folder_.path("x.pixels"), how, nullptr, entries, *scanned));
  ImageEntries packed;
  ASSERT_TRUE(add_images(folder_.path("x.pixels"), {}, packed));
  auto again = scan_images(packed, {.processor = options_.processor});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->infos[0].width, 9) << "5 is less than 6";
  EXPECT_EQ(again->infos[1].height, 16);
  EXPECT_EQ(again->infos[2].width, 6);
  EXPECT_EQ(packed.label_of(packed.images[2]).name, "b");
}

TEST_F(PackImagesTest, ADamagedImageIsNamedOrStaysDamaged) {
  std::string damaged = png_of(5, 16, 10, 20, 30);
  for (size_t i = damaged.size() - 24; i < damaged.size() - 12; ++i) damaged[i] = 'x';
  folder_.write("d/a/2.png", damaged);
  PackImages how{.processor = options_.processor, .decoded = true};
  const auto refused = dataset(&how);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().where, HasSubstr("d/a/2.png"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("x.pixels")));
  const std::vector<int> expected = all_of(*dataset(nullptr));
  how.on_error = OnError::kSkip;
  EXPECT_EQ(all_of(*dataset(&how)), expected) << "black, without a target";
  ImageEntries entries;
  ASSERT_TRUE(add_images(folder_.path("d"), {}, entries));
  auto scanned = scan_images(entries, {.processor = options_.processor});
  ASSERT_TRUE(scanned);
  const auto indexed = pack_images(folder_.path("x.pack"), how, nullptr, entries, *scanned);
  ASSERT_TRUE(indexed);
  EXPECT_EQ(*indexed, 2);
  EXPECT_EQ(scanned->skipped.total(), 1);
  ImageEntries packed;
  ASSERT_TRUE(add_images(folder_.path("x.pack"), {}, packed));
  ASSERT_EQ(packed.images.size(), 2U) << "the index names what can be decoded";
  EXPECT_EQ(packed.images[1].bytes, images::stored_bytes(12, 12));
}

}  // namespace
}  // namespace plimsoll::corpora
