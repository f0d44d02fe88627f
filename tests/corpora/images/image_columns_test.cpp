// Images within Parquet files, where the module that reads them was built: their bytes, names and labels.
#include "corpora/images/image_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/column_stream.h"
#include "io/file.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

class ImageColumnsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!open_columns(path_, "image")) GTEST_SKIP() << "built without Arrow (tools/columns-env)";
  }
  static std::string content_of(const ImageEntry& image) {
    return io::read_all(image.path)
        .substr(static_cast<size_t>(image.offset), static_cast<size_t>(image.bytes));
  }
  static std::string picture_file(const std::string& name) {
    return io::read_all(std::string(PLIMSOLL_TEST_DIR) + "/images/pictures/" + name);
  }
  const std::string path_ = std::string(PLIMSOLL_TEST_DIR) + "/corpora/columns/images.parquet";
  const io::TemporaryFolder folder_;
};

TEST_F(ImageColumnsTest, HoldsBytesOrNamesFiles) {
  ImageEntries entries;
  const ImageCollection how{.on_error = OnError::kSkip, .packs_folder = folder_.path("cache")};
  const Status status = add_images(path_, how, entries);
  ASSERT_TRUE(status) << status.error().message();
  ASSERT_EQ(entries.images.size(), 3U);
  EXPECT_EQ(entries.skipped.total(), 1) << "a row without an image";
  EXPECT_EQ(entries.images[0].name, "a.png");
  EXPECT_EQ(entries.images[1].name, "row 2");
  EXPECT_EQ(entries.images[2].value, 2);
  EXPECT_EQ(content_of(entries.images[0]), picture_file("rgb.png"));
  EXPECT_EQ(content_of(entries.images[1]), picture_file("lossless.webp"));
  EXPECT_EQ(content_of(entries.images[2]), picture_file("usual.jpg"));
  EXPECT_EQ(entries.place_of(entries.images[1]), path_ + ": line 2");
  ImageEntries again;
  ASSERT_TRUE(add_images(path_, {.on_error = OnError::kFail, .packs_folder = how.packs_folder}, again))
      << "it is read from the pack that was made";
  EXPECT_EQ(again.images[2].offset, entries.images[2].offset);
}

TEST_F(ImageColumnsTest, IdsHaveTheNamesOfTheirFeature) {
  for (const char* file : {"named_images.parquet", "named_images.arrow"}) {
    const std::string path = io::folder_of(path_) + "/" + file;
    const ImageCollection how{.packs_folder = folder_.path(file)};
    for (const char* way : {"extracted", "from the pack that was made"}) {
      ImageEntries entries;
      const Status status = add_images(path, how, entries);
      ASSERT_TRUE(status) << status.error().message();
      EXPECT_THAT(names_of_ids(entries), testing::ElementsAre("worm", "ant", "bee")) << way;
      ASSERT_EQ(entries.images.size(), 3U);
      ASSERT_TRUE(name_ids(entries));
      EXPECT_EQ(entries.label_of(entries.images[0]).name, "ant");
      EXPECT_EQ(entries.label_of(entries.images[2]).name, "bee");
    }
  }
  ImageEntries nameless;
  ASSERT_TRUE(add_images(path_, {.on_error = OnError::kSkip, .packs_folder = folder_.path("c")}, nameless));
  EXPECT_TRUE(nameless.id_names.empty());
}

TEST_F(ImageColumnsTest, WithoutAFolderItWritesNothing) {
  ImageEntries entries;
  ASSERT_TRUE(add_images(
      path_, {.on_error = OnError::kSkip, .packs_folder = folder_.path("x"), .makes_packs = false}, entries));
  EXPECT_EQ(entries.images.size(), 3U);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("x")));
}

TEST_F(ImageColumnsTest, ABadRowIsNamed) {
  ImageEntries entries;
  const Status status = add_images(path_, {.packs_folder = folder_.path("cache")}, entries);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("images.parquet: line 4"));
}

}  // namespace
}  // namespace plimsoll::corpora
