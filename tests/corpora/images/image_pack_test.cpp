// Packs of images: what is written comes back with its name and label, and damage is found.
#include "corpora/images/image_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

class ImagePackTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = ImagePackWriter::create(path_);
    ASSERT_TRUE(writer);
    const auto put = [&](const std::string& name, const std::string& bytes, const std::string& label) {
      const auto size = static_cast<int64_t>(bytes.size());
      const int64_t place = writer->place(size);
      ASSERT_TRUE(writer->write(place, std::as_bytes(std::span(bytes))));
      writer->add(name, place, size, label);
    };
    put("a/1 \"x\".png", "first", "\"cat\"");
    put("b/2.png", std::string(1000, 'b'), "7");
    put("row 3", "third", "");
    ASSERT_TRUE(writer->finish());
  }
  const io::TemporaryFolder folder_;
  const std::string path_ = folder_.path("x.pack");
};

TEST_F(ImagePackTest, HoldsImagesWithNamesAndLabels) {
  EXPECT_TRUE(is_image_pack(path_));
  EXPECT_TRUE(is_whole_image_pack(path_));
  ImageEntries entries;
  ASSERT_TRUE(add_image_pack(path_, "shown.parquet", {.on_error = OnError::kSkip}, entries));
  ASSERT_EQ(entries.images.size(), 2U);
  EXPECT_EQ(entries.skipped.total(), 1) << "no label";
  EXPECT_EQ(entries.images[0].name, "a/1 \"x\".png");
  EXPECT_EQ(entries.label_of(entries.images[0]).name, "cat");
  EXPECT_EQ(entries.images[1].value, 7);
  EXPECT_EQ(entries.place_of(entries.images[1]), "shown.parquet: line 2");
  const std::string content = io::read_all(path_);
  EXPECT_EQ(content.substr(static_cast<size_t>(entries.images[0].offset), 5), "first");
  EXPECT_EQ(entries.images[1].bytes, 1000);
  ImageEntries all;
  ASSERT_TRUE(add_image_pack(path_, path_, {.with_labels = false}, all));
  EXPECT_EQ(all.images.size(), 3U);
  EXPECT_THAT(add_image_pack(path_, path_, {}, all).error().message(), HasSubstr("x.pack: line 3"));
}

TEST_F(ImagePackTest, IdsMayHaveNames) {
  auto writer = ImagePackWriter::create(path_);
  ASSERT_TRUE(writer);
  writer->name_ids({"cat \"x\"", "dog"});
  const int64_t place = writer->place(4);
  ASSERT_TRUE(writer->write(place, std::as_bytes(std::span("1234", 4))));
  writer->add("a.png", place, 4, "1");
  ASSERT_TRUE(writer->finish());
  ImageEntries entries;
  ASSERT_TRUE(add_image_pack(path_, path_, {}, entries));
  ASSERT_EQ(entries.images.size(), 1U);
  EXPECT_EQ(entries.images[0].line, 1);
  EXPECT_THAT(names_of_ids(entries), testing::ElementsAre("cat \"x\"", "dog"));
}

TEST_F(ImagePackTest, DamageIsFound) {
  const std::string intact = io::read_all(path_);
  for (size_t at : {size_t{0}, size_t{9}, size_t{30}, intact.size() - 5}) {
    std::string text = intact;
    text[at] = static_cast<char>(text[at] ^ 1);
    folder_.write("x.pack", text);
    ImageEntries entries;
    EXPECT_FALSE(add_image_pack(path_, path_, {.on_error = OnError::kSkip}, entries)) << at;
  }
  folder_.write("x.pack", intact.substr(0, intact.size() - 1));
  EXPECT_FALSE(is_whole_image_pack(path_));
  folder_.write("x.pack", "plmi");
  EXPECT_FALSE(is_image_pack(path_));
  EXPECT_FALSE(is_image_pack(folder_.path("missing")));
}

}  // namespace
}  // namespace plimsoll::corpora
