// Entries of image data: which kind each is, and the order of class names.
#include "corpora/images/image_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;

TEST(ImageEntries, AFolderWithMetadataIsItsTable) {
  const io::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("train/a"));
  folder.write("train/a/1.png", "x");
  ImageEntries classes, table;
  ASSERT_TRUE(add_images(folder.path("train"), {}, classes));
  EXPECT_EQ(classes.label_of(classes.images[0]).name, "a");
  folder.write("train/metadata.csv", "file_name,label\na/1.png,first\n");
  ASSERT_TRUE(add_images(folder.path("train"), {}, table));
  ASSERT_EQ(table.images.size(), 1U);
  EXPECT_EQ(table.label_of(table.images[0]).name, "first");
  EXPECT_EQ(table.images[0].path, folder.path("train/a/1.png"));
}

TEST(ImageEntries, NamesHaveOneIndexEach) {
  ImageEntries entries;
  EXPECT_EQ(entries.name_index("b"), 0U);
  EXPECT_EQ(entries.name_index("a"), 1U);
  EXPECT_EQ(entries.name_index("b"), 0U);
  entries.images.push_back({.kind = RawLabelKind::kName, .value = 1});
  entries.images.push_back({.kind = RawLabelKind::kInteger, .value = 4});
  LabelSummary found;
  summarize(entries, found);
  EXPECT_TRUE(found.names);
  EXPECT_EQ(found.largest, 4);
  EXPECT_THAT(found.all_names, ElementsAre("a", "b"));
}

TEST(ImageEntries, IdsBecomeTheNamesOfTheirPlace) {
  ImageEntries entries;
  entries.places = {"a.parquet", "b.csv"};
  entries.id_names[0] = {"cat", "dog"};
  entries.images.push_back({.kind = RawLabelKind::kInteger, .value = 1, .place = 0, .line = 1});
  EXPECT_THAT(names_of_ids(entries), ElementsAre("cat", "dog"));
  entries.images.push_back({.kind = RawLabelKind::kInteger, .value = 1, .place = 1, .line = 1});
  EXPECT_TRUE(names_of_ids(entries).empty()) << "the other place has no names";
  ASSERT_TRUE(name_ids(entries));
  EXPECT_EQ(entries.label_of(entries.images[0]).name, "dog");
  EXPECT_EQ(entries.images[1].kind, RawLabelKind::kInteger);
  entries.images.push_back({.kind = RawLabelKind::kInteger, .value = 2, .place = 0, .line = 7});
  const Status refused = name_ids(entries);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("a.parquet: line 7"));
}

TEST(ClassNames, AreSortedByBytesAndNumbersByValue) {
  std::vector<std::string> words = {"b", "10", "B", "2"}, numbers = {"10", "2", "0", "1"},
                           padded = {"10", "02"};
  sort_class_names(words);
  sort_class_names(numbers);
  sort_class_names(padded);
  EXPECT_THAT(words, ElementsAre("10", "2", "B", "b"));
  EXPECT_THAT(numbers, ElementsAre("0", "1", "2", "10"));
  EXPECT_THAT(padded, ElementsAre("02", "10"));
}

}  // namespace
}  // namespace plimsoll::corpora
