// Tables of images and labels: JSON lines, CSV, and what of them is refused with its row.
#include "corpora/images/image_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ImageTableTest : public testing::Test {
 protected:
  [[nodiscard]] std::string refusal(const std::string& text, const std::string& name = "t.jsonl") const {
    ImageEntries entries;
    const Status status = add_image_table(folder_.write(name, text), {}, entries);
    return status ? "accepted" : status.error().message();
  }
  const io::TemporaryFolder folder_;
};

TEST_F(ImageTableTest, ReadsLinesOfJson) {
  ImageEntries entries;
  const std::string path = folder_.write("t.jsonl",
                                         "{\"image\": \"a/1.png\", \"label\": \"cat\"}\n\n"
                                         "{\"file_name\": \"/abs/2.jpg\", \"labels\": 7, \"id\": 3}\n");
  ASSERT_TRUE(add_image_table(path, {}, entries));
  ASSERT_EQ(entries.images.size(), 2U);
  EXPECT_EQ(entries.images[0].path, folder_.path("a/1.png")) << "relative to the table";
  EXPECT_EQ(entries.images[0].name, "a/1.png");
  EXPECT_EQ(entries.label_of(entries.images[0]).name, "cat");
  EXPECT_EQ(entries.images[1].path, "/abs/2.jpg");
  EXPECT_THAT(entries.label_of(entries.images[1]).values, ElementsAre(7.0F));
  EXPECT_EQ(entries.place_of(entries.images[1]), path + ": line 3");
}

TEST_F(ImageTableTest, ReadsCsv) {
  ImageEntries entries;
  const std::string path = folder_.write("t.csv", "image,label\nx.png,3\n\"y, z.png\",dog\n");
  ASSERT_TRUE(add_image_table(path, {}, entries));
  ASSERT_EQ(entries.images.size(), 2U);
  EXPECT_EQ(entries.images[0].kind, RawLabelKind::kInteger);
  EXPECT_EQ(entries.images[1].name, "y, z.png");
  EXPECT_EQ(entries.label_of(entries.images[1]).name, "dog");
}

TEST_F(ImageTableTest, RefusesWithTheRow) {
  EXPECT_THAT(refusal("{\"image\": \"a.png\"}\n"), HasSubstr("has no \"label\": " + folder_.path("t.jsonl")));
  EXPECT_THAT(refusal("{\"label\": 1}\n"), HasSubstr("has no \"image\""));
  EXPECT_THAT(refusal("{\"image\": 3, \"label\": 1}\n"), HasSubstr("expected a path"));
  EXPECT_THAT(refusal("{\"image\": \"a.png\", \"label\": 0.5}\n"), HasSubstr("label is 0.5"));
  EXPECT_THAT(refusal("{\"image\": \"a.png\", \"label\": NaN}\n"), HasSubstr("label is NaN"));
  EXPECT_THAT(refusal("{\"image\": \"a.png\", \"label\": [0, 1]}\n"), HasSubstr("label is [0, 1]"));
  EXPECT_THAT(refusal("{\"image\": \"a.png\",\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("words", "t.txt"), HasSubstr("names no images with labels"));
  ImageEntries none;
  const Status missing = add_image_table(folder_.path("missing"), {}, none);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "there is no such file or folder");
}

TEST_F(ImageTableTest, SkipsAndCountsWhereAsked) {
  ImageEntries entries;
  const std::string path = folder_.write(
      "t.jsonl", "{\"image\": \"a.png\"}\nnonsense\n{\"image\": \"b.png\", \"label\": \"x\"}\n");
  ASSERT_TRUE(add_image_table(path, {.on_error = OnError::kSkip}, entries));
  EXPECT_EQ(entries.images.size(), 1U);
  EXPECT_EQ(entries.skipped.total(), 2);
}

TEST_F(ImageTableTest, WithoutLabelsAnImageStandsForItself) {
  ImageEntries entries;
  const std::string table = folder_.write("t.jsonl", "{\"image\": \"a.png\", \"label\": [1]}\n");
  const std::string image = folder_.write("one.png", "x");
  ASSERT_TRUE(add_image_table(table, {.with_labels = false}, entries));
  ASSERT_TRUE(add_image_table(image, {.with_labels = false}, entries));
  ASSERT_EQ(entries.images.size(), 2U);
  EXPECT_EQ(entries.images[0].kind, RawLabelKind::kAbsent);
  EXPECT_EQ(entries.images[1].path, image);
  EXPECT_FALSE(add_image_table(image, {}, entries)) << "it has no label";
}

}  // namespace
}  // namespace plimsoll::corpora
