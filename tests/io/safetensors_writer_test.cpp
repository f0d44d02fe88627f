// The written file, read back by the format's rules.
#include "io/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/json.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

TEST(SafetensorsWriter, LaysOutWithoutHoles) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.safetensors");
  auto writer = SafetensorsWriter::create(
      path,
      {{"b.weight", "F32", {2, 3}}, {"a \"x\"", "U8", {3}}, {"empty", "BF16", {0, 4}}, {"scalar", "F32", {}}},
      {{"format", "pt"}});
  ASSERT_TRUE(writer) << writer.error().message();
  const std::array<float, 6> b = {1, 2, 3, 4, 5, 6};
  const std::array<uint8_t, 3> a = {7, 8, 9};
  const float scalar = 0.5F;
  ASSERT_TRUE(writer->write(3, std::as_bytes(std::span(&scalar, 1))));
  ASSERT_TRUE(writer->write(0, std::as_bytes(std::span(b)).subspan(8), 8));  // in pieces, in any order
  ASSERT_TRUE(writer->write(0, std::as_bytes(std::span(b)).first(8)));
  ASSERT_TRUE(writer->write(1, std::as_bytes(std::span(a))));
  EXPECT_EQ(writer->payload_bytes(0), 24);
  const int64_t file_bytes = writer->file_bytes();
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(folder.num_files(), 1U);

  const std::string file = read_all(path);
  ASSERT_EQ(static_cast<int64_t>(file.size()), file_bytes);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), 8);
  EXPECT_EQ(header_bytes % 8, 0U);
  EXPECT_EQ(file[8], '{');
  const auto header = parse_json(file.substr(8, header_bytes));
  ASSERT_TRUE(header) << header.error().message();
  EXPECT_EQ(header->find("__metadata__")->find("format")->text, "pt");
  EXPECT_EQ(to_json(*header->find("b.weight")),
            R"({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]})");
  EXPECT_EQ(to_json(*header->find("a \"x\"")), R"({"dtype": "U8", "shape": [3], "data_offsets": [24, 27]})");
  EXPECT_EQ(to_json(*header->find("empty")),
            R"({"dtype": "BF16", "shape": [0, 4], "data_offsets": [27, 27]})");
  EXPECT_EQ(to_json(*header->find("scalar")), R"({"dtype": "F32", "shape": [], "data_offsets": [27, 31]})");
  EXPECT_EQ(file.size(), 8 + header_bytes + 31);
  EXPECT_EQ(std::memcmp(file.data() + 8 + header_bytes, b.data(), 24), 0);
  EXPECT_EQ(file[8 + header_bytes + 25], 8);
}

TEST(SafetensorsWriter, LeavesNothingUnfinished) {
  const TemporaryFolder folder;
  { ASSERT_TRUE(SafetensorsWriter::create(folder.path("a"), {{"x", "F32", {1000}}})); }
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(SafetensorsWriter, RefusesBadEntries) {
  const TemporaryFolder folder;
  const std::vector<std::vector<SafetensorsEntry>> rows = {
      {{"x", "F31", {1}}},
      {{"x", "F32", {-1}}},
      {{"x", "F32", {int64_t{1} << 40, int64_t{1} << 40}}},
      {{"x", "F32", {1}}, {"x", "F32", {1}}},
      {{"__metadata__", "F32", {1}}},
      {{"x", "U8", {int64_t{1} << 62}}, {"y", "U8", {int64_t{1} << 62}}},
  };
  for (const auto& entries : rows) {
    const auto writer = SafetensorsWriter::create(folder.path("a"), entries);
    ASSERT_FALSE(writer);
    EXPECT_EQ(writer.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(SafetensorsWriter::create(folder.path("none/a"), {{"x", "F32", {1}}}).error().code,
            ErrorCode::kIo);
  // More than any disk has.
  EXPECT_EQ(SafetensorsWriter::create(folder.path("a"), {{"x", "F32", {int64_t{1} << 58}}}).error().code,
            ErrorCode::kIo);
  EXPECT_EQ(folder.num_files(), 0U);
}

}  // namespace
}  // namespace plimsoll::io
