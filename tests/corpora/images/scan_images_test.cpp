// The look into every image: what reading takes, and what cannot be used, with its file and row.
#include "corpora/images/scan_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/images/image_files.h"
#include "images/load.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

class ScanImagesTest : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& content, int64_t line = 0) {
    entries_.places = {folder_.path("t.csv")};
    entries_.images.push_back({.path = folder_.write(name, content), .name = name, .line = line});
  }
  const io::TemporaryFolder folder_;
  const images::Processor processor_ = images::default_processor(8);
  ImageEntries entries_;
};

TEST_F(ScanImagesTest, SaysWhatReadingTakes) {
  add("a.png", png_of(5, 7, 1, 2, 3));
  add("b.png", png_of(30, 20, 1, 2, 3));
  add("c.png", png_of(2, 2, 1, 2, 3));
  const auto scanned = scan_images(entries_, {.processor = processor_, .num_threads = 3});
  ASSERT_TRUE(scanned) << scanned.error().message();
  ASSERT_EQ(scanned->facts.size(), 3U);
  EXPECT_EQ(scanned->facts[0].bytes, static_cast<int64_t>(png_of(5, 7, 1, 2, 3).size()));
  EXPECT_EQ(scanned->summary.width, 30);
  EXPECT_EQ(scanned->summary.height, 20);
  const std::string largest = png_of(30, 20, 1, 2, 3);
  const auto info = images::probe(std::as_bytes(std::span(largest)));
  ASSERT_TRUE(info);
  EXPECT_GE(scanned->summary.reading_bytes,
            static_cast<int64_t>(largest.size()) + images::scratch_bytes(*info, processor_));
}

TEST_F(ScanImagesTest, TheFirstBadImageIsNamedWhateverTheThreads) {
  for (int i = 0; i < 100; ++i)
    add(std::to_string(i) + ".png", i == 60 || i > 70 ? "no image" : png_of(3, 3, 0, 0, 0), i + 1);
  for (const int threads : {1, 4}) {
    ImageEntries entries = entries_;
    const auto scanned = scan_images(entries, {.processor = processor_, .num_threads = threads});
    ASSERT_FALSE(scanned);
    EXPECT_EQ(scanned.error().code, ErrorCode::kBadData);
    EXPECT_THAT(scanned.error().where, HasSubstr("60.png (" + folder_.path("t.csv") + ": line 61)"));
  }
}

TEST_F(ScanImagesTest, BadImagesAreSkippedAndCounted) {
  add("a.png", png_of(3, 3, 0, 0, 0));
  add("empty.png", "");
  add("text.jpg", "words");
  entries_.images.push_back({.path = folder_.path("missing.png"), .name = "missing.png"});
  const auto scanned =
      scan_images(entries_, {.processor = processor_, .on_error = OnError::kSkip, .num_threads = 2});
  ASSERT_TRUE(scanned) << scanned.error().message();
  EXPECT_EQ(scanned->skipped.total(), 3);
  ASSERT_EQ(entries_.images.size(), 1U);
  EXPECT_EQ(entries_.images[0].name, "a.png");
  entries_.images.erase(entries_.images.begin());
  EXPECT_FALSE(scan_images(entries_, {.processor = processor_, .on_error = OnError::kSkip}))
      << "none is left";
}

TEST_F(ScanImagesTest, TooManyPixelsAreFoundByTheHeader) {
  add("bomb.png", png_of(40, 40, 0, 0, 0));
  images::Processor small = processor_;
  small.max_pixels = 1599;
  const auto scanned = scan_images(entries_, {.processor = small});
  ASSERT_FALSE(scanned);
  EXPECT_THAT(scanned.error().where, HasSubstr("bomb.png"));
}

// More than memory holds, most of it a hole: no picture at all, and one whose pixels never begin.
TEST_F(ScanImagesTest, AHugeFileIsNotReadWhole) {
  for (const std::string& begin : {std::string("words"), png_of(3, 3, 0, 0, 0).substr(0, 33)}) {
    entries_ = {};
    add("huge.png", begin);
    std::filesystem::resize_file(folder_.path("huge.png"), uintmax_t{1} << 40);
    const auto scanned = scan_images(entries_, {.processor = processor_});
    ASSERT_FALSE(scanned);
    EXPECT_EQ(scanned.error().code, ErrorCode::kBadData) << scanned.error().message();
    EXPECT_THAT(scanned.error().where, HasSubstr("huge.png"));
  }
}

TEST_F(ScanImagesTest, StopsWhenAsked) {
  add("a.png", png_of(3, 3, 0, 0, 0));
  const auto scanned =
      scan_images(entries_, {.processor = processor_, .stop = [] { return std::string_view("SIGTERM"); }});
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace plimsoll::corpora
