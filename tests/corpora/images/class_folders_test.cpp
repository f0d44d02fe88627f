// Folders of class folders: which files are images of which class, in which order, and what is refused.
#include "corpora/images/class_folders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ClassFoldersTest : public testing::Test {
 protected:
  void write(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.path(name)).parent_path());
    folder_.write(name, "x");
  }
  [[nodiscard]] static std::vector<std::string> seen(const ImageEntries& entries) {
    std::vector<std::string> all;
    for (const ImageEntry& image : entries.images)
      all.push_back(image.name + (image.kind == RawLabelKind::kName
                                      ? " is " + entries.names[static_cast<size_t>(image.value)]
                                      : ""));
    return all;
  }
  const io::TemporaryFolder folder_;
};

TEST_F(ClassFoldersTest, NamesOfFoldersAreClasses) {
  for (const char* name : {"b/2.png", "b/10.JPG", "a/deep/er/x.jpeg", "a/y.png", "a/notes.txt",
                           ".cache/z.png", "a/.hidden.png", "readme.md"})
    write(name);
  ImageEntries entries;
  ASSERT_TRUE(add_folder(folder_.path() + "/", true, entries));
  EXPECT_THAT(seen(entries),
              ElementsAre("a/y.png is a", "a/deep/er/x.jpeg is a", "b/10.JPG is b", "b/2.png is b"));
  EXPECT_EQ(entries.num_others, 2) << "notes.txt, readme.md";
  EXPECT_EQ(entries.place_of(entries.images[2]), folder_.path("b"));
}

TEST_F(ClassFoldersTest, LinksAreFollowedButNotInCircles) {
  write("a/1.png");
  write("elsewhere/b/2.png");
  const std::filesystem::path a = folder_.path("a");
  std::filesystem::create_directory_symlink(folder_.path("a"), a / "again");
  std::filesystem::create_directory_symlink(folder_.path("elsewhere"), a / "more");
  std::filesystem::create_symlink(folder_.path("a/1.png"), a / "same.png");
  ImageEntries entries;
  ASSERT_TRUE(add_folder(folder_.path(), true, entries));
  EXPECT_THAT(seen(entries), ElementsAre("a/1.png is a", "a/same.png is a", "a/more/b/2.png is a",
                                         "elsewhere/b/2.png is elsewhere"));
}

// Taken for a file, a class that the disk does not show would be missing without a word.
TEST_F(ClassFoldersTest, ANameThatCannotBeLookedAtIsAnError) {
  write("a/1.png");
  std::filesystem::create_symlink(folder_.path("b"), folder_.path("b"));  // to itself
  ImageEntries entries;
  const Status status = add_folder(folder_.path(), true, entries);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().where, folder_.path("b"));
}

TEST_F(ClassFoldersTest, WithoutLabelsAllImagesCount) {
  write("1.png");
  write("x/2.webp");
  ImageEntries entries;
  ASSERT_TRUE(add_folder(folder_.path(), false, entries));
  EXPECT_THAT(seen(entries), ElementsAre("1.png", "x/2.webp"));
  EXPECT_EQ(entries.images[1].path, folder_.path("x/2.webp"));
}

TEST_F(ClassFoldersTest, WhatIsMissingIsNamed) {
  ImageEntries entries;
  write("1.png");
  const Status flat = add_folder(folder_.path(), true, entries);
  ASSERT_FALSE(flat);
  EXPECT_THAT(flat.error().message(), HasSubstr("has no class folders: " + folder_.path()));
  write("empty/notes.txt");
  const Status empty = add_folder(folder_.path(), true, entries);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kBadData);
  EXPECT_THAT(empty.error().message(), HasSubstr("class empty has no images"));
  EXPECT_FALSE(add_folder(folder_.path("empty"), false, entries));
  EXPECT_FALSE(add_folder(folder_.path("nowhere"), true, entries));
}

TEST(IsImageName, GoesByTheEnding) {
  EXPECT_TRUE(is_image_name("a.JPeG") && is_image_name("x/y.tiff") && is_image_name("b.png"));
  EXPECT_FALSE(is_image_name("png") || is_image_name("a.png.txt") || is_image_name("Thumbs.db"));
}

}  // namespace
}  // namespace plimsoll::corpora
