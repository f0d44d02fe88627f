// Lists of images: what is written comes back, over blocks too, and damage is found.
#include "corpora/images/image_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/labelled/label_file.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kImages = 1300;

struct Listed {
  ImageEntries entries;
  std::vector<ImageFacts> facts;
};

Listed many() {
  Listed listed;
  listed.entries.places = {"a", "t.csv"};
  for (size_t i = 0; i < kImages; ++i) {
    const auto label = static_cast<float>(listed.entries.name_index("class " + std::to_string(i % 3)));
    listed.entries.images.push_back({.path = "/data/" + std::string(i % 50, 'x') + std::to_string(i),
                                     .name = std::to_string(i),
                                     .kind = RawLabelKind::kName,
                                     .value = label,
                                     .place = static_cast<uint32_t>(i % 2),
                                     .line = static_cast<int64_t>(i)});
    listed.facts.push_back({.bytes = static_cast<int64_t>(7 * i), .head_checksum = i});
  }
  return listed;
}

const ImageListSummary kSummary = {
    .reading_bytes = 1234567, .width = 640, .height = 480, .num_animated = 2, .num_profiles = 3};

TEST(ImageList, HoldsManyImages) {
  const io::TemporaryFolder folder;
  const Listed written = many();
  const std::string path = folder.path("x.images");
  ASSERT_TRUE(write_image_list(path, written.entries, written.facts, kSummary));
  const auto list = ImageList::open(path);
  ASSERT_TRUE(list) << list.error().message();
  EXPECT_EQ(list->size(), static_cast<int64_t>(kImages));
  EXPECT_EQ(list->summary(), kSummary);
  std::vector<std::byte> scratch(static_cast<size_t>(list->scratch_bytes()));
  for (const size_t i : {size_t{0}, size_t{511}, size_t{512}, kImages - 1}) {
    const auto image = list->read(static_cast<int64_t>(i), scratch);
    ASSERT_TRUE(image) << image.error().message();
    EXPECT_EQ(image->path, written.entries.images[i].path);
    EXPECT_EQ(image->name, image->path);
    EXPECT_FALSE(image->is_part);
    EXPECT_EQ(image->bytes, written.facts[i].bytes);
    EXPECT_EQ(image->head_checksum, i);
  }
  const auto labels = LabelFile::open(list_labels(path));
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->shard_hash(), list->content_hash());
  EXPECT_EQ(labels->size(), list->size());
}

TEST(ImageList, IsKnownByNamesAndContentsNotByWhereItLies) {
  const io::TemporaryFolder folder;
  Listed listed = many();
  const auto hash = [&](const std::string& name) {
    EXPECT_TRUE(write_image_list(folder.path(name), listed.entries, listed.facts, kSummary));
    return ImageList::open(folder.path(name))->content_hash();
  };
  const uint64_t first = hash("a.images");
  listed.entries.images[3].path = "/moved/3";
  EXPECT_EQ(hash("b.images"), first);
  listed.facts[3].head_checksum = 77;
  EXPECT_NE(hash("c.images"), first);
  listed.facts[3].head_checksum = 3;
  listed.entries.images[3].name = "other";
  EXPECT_NE(hash("d.images"), first);
}

TEST(ImageList, DamageIsFound) {
  const io::TemporaryFolder folder;
  const Listed written = many();
  const std::string path = folder.path("x.images");
  ASSERT_TRUE(write_image_list(path, written.entries, written.facts, kSummary));
  const std::string intact = io::read_all(path);
  for (const size_t at : {size_t{3}, size_t{20}, size_t{60}}) {
    std::string text = intact;
    text[at] = static_cast<char>(text[at] ^ 1);
    folder.write("x.images", text);
    EXPECT_FALSE(ImageList::open(path)) << at;
  }
  folder.write("x.images", intact.substr(0, intact.size() - 1));
  EXPECT_FALSE(ImageList::open(path)) << "cut";
  std::string text = intact;
  text[200] = static_cast<char>(text[200] ^ 1);
  folder.write("x.images", text);
  const auto list = ImageList::open(path);
  ASSERT_TRUE(list);
  std::vector<std::byte> scratch(static_cast<size_t>(list->scratch_bytes()));
  EXPECT_FALSE(list->read(1, scratch)) << "an entry";
}

}  // namespace
}  // namespace plimsoll::corpora
