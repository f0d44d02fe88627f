// A pack of images as inspect shows it: formats, classes, and images that are damaged.
#include "cli/inspect/inspect_image_pack.h"

#include <gmock/gmock.h>

#include "cli/run_plimsoll.h"
#include "corpora/images/image_pack.h"
#include "io/file.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

class InspectImagePack : public testing::Test {
 protected:
  struct Picture {
    std::string file, label;
  };
  void write(const std::vector<Picture>& pictures) const {
    auto writer = corpora::ImagePackWriter::create(path_);
    ASSERT_TRUE(writer);
    for (const Picture& picture : pictures) {
      const std::string bytes =
          picture.file.empty()
              ? "no picture"
              : io::read_all(std::string(PLIMSOLL_TEST_DIR) + "/images/pictures/" + picture.file);
      const auto size = static_cast<int64_t>(bytes.size());
      const int64_t place = writer->place(size);
      ASSERT_TRUE(writer->write(place, std::as_bytes(std::span(bytes))));
      writer->add("a/" + picture.file, place, size, picture.label);
    }
    ASSERT_TRUE(writer->finish());
  }
  const io::TemporaryFolder folder_;
  const std::string path_ = folder_.path("x.pack");
};

TEST_F(InspectImagePack, ShowsFormatsAndClasses) {
  write({{"rgb.png", "\"10\""}, {"usual.jpg", "\"9\""}, {"grey.jpg", "\"9\""}, {"lossy.webp", ""}});
  const Outcome text = run_plimsoll({"inspect", path_});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("JPEG (2), PNG (1), WebP (1)"));
  EXPECT_THAT(text.out, HasSubstr("9: 2 images"));
  EXPECT_LT(text.out.find("9: 2 images"), text.out.find("10: 1 image")) << "numbers by their value";
  EXPECT_THAT(text.out, HasSubstr("1 image without a label"));
  const auto lines = objects(run_plimsoll({"inspect", path_, "--json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("event")->text, "image_pack");
  EXPECT_EQ(lines[0].find("images")->integer, 4);
  EXPECT_EQ(lines[0].find("bytes")->integer, static_cast<int64_t>(io::read_all(path_).size()));
  EXPECT_EQ(lines[0].find("classes")->find("9")->integer, 2);
  EXPECT_EQ(lines[0].find("formats")->find("JPEG")->integer, 2);
  EXPECT_EQ(lines[0].find("unlabelled")->integer, 1);
  EXPECT_GT(lines[0].find("largest")->find("width")->integer, 1);
}

TEST_F(InspectImagePack, ShowsTheNamesOfIds) {
  auto writer = corpora::ImagePackWriter::create(path_);
  ASSERT_TRUE(writer);
  writer->name_ids({"worm", "ant"});
  const std::string bytes = io::read_all(std::string(PLIMSOLL_TEST_DIR) + "/images/pictures/rgb.png");
  const auto size = static_cast<int64_t>(bytes.size());
  const int64_t place = writer->place(size);
  ASSERT_TRUE(writer->write(place, std::as_bytes(std::span(bytes))));
  writer->add("a", place, size, "1");
  ASSERT_TRUE(writer->finish());
  EXPECT_THAT(run_plimsoll({"inspect", path_}).out, HasSubstr("ant: 1 image"));
}

TEST_F(InspectImagePack, NamesDamagedImagesAndPacks) {
  write({{"rgb.png", "1"}, {"", "0"}});
  const Outcome text = run_plimsoll({"inspect", path_});
  EXPECT_EQ(text.code, 65);
  EXPECT_THAT(text.out, HasSubstr("1 image damaged"));
  EXPECT_THAT(text.err, HasSubstr("x.pack: line 2"));
  std::string bytes = io::read_all(path_);
  bytes.back() = 'x';
  folder_.write("x.pack", bytes);
  const Outcome damaged = run_plimsoll({"inspect", path_});
  EXPECT_EQ(damaged.code, 65);
  EXPECT_THAT(damaged.err, HasSubstr("its index does not match its checksum"));
}

}  // namespace
}  // namespace plimsoll::cli
