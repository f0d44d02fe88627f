// Files as the writer makes them, and broken in every way.
#include "io/safetensors_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/safetensors_writer.h"
#include "safetensors_bytes.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::HasSubstr;

Result<SafetensorsFile> open(const std::string& content) {
  const TemporaryFolder folder;
  return SafetensorsFile::open(folder.write("a.safetensors", content));
}

TEST(SafetensorsFile, ReadsWhatTheWriterWrites) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a.safetensors");
  {
    auto writer = SafetensorsWriter::create(path,
                                            {{"z", "F32", {2, 3}},
                                             {"a \"x\" \u00e9", "U8", {3}},
                                             {"empty", "BF16", {0, 4}},
                                             {"scalar", "F32", {}}},
                                            {{"format", "pt"}, {"k", "v"}});
    ASSERT_TRUE(writer) << writer.error().message();
    const std::array<float, 6> z = {1, 2, 3, 4, 5, 6};
    const std::array<uint8_t, 3> a = {7, 8, 9};
    const float scalar = 0.5F;
    ASSERT_TRUE(writer->write(0, std::as_bytes(std::span(z))));
    ASSERT_TRUE(writer->write(1, std::as_bytes(std::span(a))));
    ASSERT_TRUE(writer->write(3, std::as_bytes(std::span(&scalar, 1))));
    ASSERT_TRUE(writer->finish());
  }
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->size_bytes(), static_cast<int64_t>(read_all(path).size()));
  ASSERT_EQ(file->tensors().size(), 4U);
  EXPECT_EQ(file->tensors()[0].name, "z");
  EXPECT_EQ(file->tensors()[1].name, "a \"x\" \u00e9");
  EXPECT_EQ(file->tensors()[2].name, "empty");
  EXPECT_EQ(file->tensors()[3].name, "scalar");
  EXPECT_EQ(file->metadata(),
            (std::vector<std::pair<std::string, std::string>>{{"format", "pt"}, {"k", "v"}}));
  EXPECT_EQ(file->find("absent"), nullptr);
  EXPECT_EQ(file->find(""), nullptr);
  const SafetensorsTensor* z = file->find("z");
  ASSERT_NE(z, nullptr);
  EXPECT_EQ(to_string(*z), "F32 [2, 3]");
  EXPECT_EQ(z->bytes, 24);
  EXPECT_EQ(z->num_elements(), 6);
  EXPECT_EQ(file->find("empty")->num_elements(), 0);
  EXPECT_EQ(file->find("scalar")->num_elements(), 1);
  std::array<float, 2> read = {};
  ASSERT_TRUE(file->read(*z, 8, std::as_writable_bytes(std::span(read))));
  EXPECT_EQ(read, (std::array<float, 2>{3, 4}));
  EXPECT_TRUE(file->read(*file->find("empty"), 0, {}));
}

TEST(SafetensorsFile, ReadsWhatOthersWrite) {
  // Entries in any order, blanks after the header, no metadata, offsets that are not those of the text's
  // order.
  const std::string header =
      "{" + header_entry("b", "F16", "2", "8,12") + " , " + header_entry("a", "I64", "", "0,8") + "}   ";
  const auto file = open(safetensors_bytes(header, std::string(12, 'x')));
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_EQ(file->tensors()[0].name, "a");
  EXPECT_EQ(file->tensors()[1].name, "b");
  EXPECT_EQ(file->tensors()[1].offset, 8 + static_cast<int64_t>(header.size()) + 8);
  EXPECT_TRUE(open(safetensors_bytes("{}", ""))) << "a file without tensors";
  EXPECT_TRUE(open(safetensors_bytes("{\"__metadata__\":{}}", "")));
  EXPECT_TRUE(
      open(safetensors_bytes("{" + header_entry("a", "F32", "8,0,4611686018427387904", "0,0") + "}", "")));
  EXPECT_TRUE(open(safetensors_bytes("{" + header_entry("a", "F4", "3,2", "0,3") + "}", "abc")));
}

TEST(SafetensorsFile, KnowsItsDtypes) {
  for (const char* name : {"F64", "I64", "U64", "F32", "I32", "U32", "F16", "BF16", "I16", "U16", "F8_E4M3",
                           "F8_E5M2", "I8", "U8", "BOOL"})
    EXPECT_EQ(safetensors_dtype_bits(name), 8 * safetensors_dtype_bytes(name)) << name;
  EXPECT_EQ(safetensors_dtype_bits("F4"), 4);
  EXPECT_EQ(safetensors_dtype_bits("f32"), 0);
}

struct Broken {
  std::string content;
  const char* what;
};

/// A header with these members over a payload of 8 bytes.
std::string with(const std::string& members) { return safetensors_bytes("{" + members + "}", "12345678"); }

std::vector<Broken> broken_frames() {
  const std::string good = with(header_entry("a", "F32", "2", "0,8"));
  const std::string header = good.substr(8, good.size() - 16);
  return {
      {"", "the file is empty"},
      {"abc", "a file of 3 bytes cannot hold a header"},
      {good.substr(0, 8), "the file ends after 0 of them"},
      {good.substr(0, 20), "the file ends after 12 of them"},
      {safetensors_bytes(header, "12345678", uint64_t{1} << 63), "a header of 9223372036854775808 bytes"},
      {safetensors_bytes(header, "12345678", ~uint64_t{0}), "a header of 18446744073709551615 bytes"},
      {safetensors_bytes(header, "12345678", 100'000'001), "more than the 100000000 allowed"},
      {safetensors_bytes(header, "12345678", 99'999'999), "the file ends after"},
      {std::string(8, '\0'), "does not start with '{'"},
      {std::string(64, '\0'), "does not start with '{'"},
      {safetensors_bytes(" " + header, "12345678"), "does not start with '{'"},
      {safetensors_bytes("[]", ""), "does not start with '{'"},
      {safetensors_bytes(header, "12345678", header.size() - 1), "breaks off"},
      {safetensors_bytes(header + "x", "12345678"), "follows the header's object"},
      {safetensors_bytes(header + header, "12345678"), "follows the header's object"},
      {good.substr(0, good.size() - 1), "it ends at byte 8 of the payload, which has 7"},
      {good + "x", "1 bytes at the end belong to no tensor"},
      {safetensors_bytes("{}", "x"), "1 bytes at the end belong to no tensor"},
      {safetensors_bytes("{\"" + std::string(100'000, '['), ""), "breaks off"},
      {safetensors_bytes("{\"a\":" + std::string(100'000, '['), ""), "nested deeper"},
      {safetensors_bytes("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}", ""),
       "nested deeper"},
      {with("\"\xff\":{}"), "not valid UTF-8"},
      {with("\"\xed\xa0\x80\":{}"), "not valid UTF-8"},
      {with("\"\\ud800\":{}"), "half a surrogate pair"},
      {with("\"a\":{},"), "expected a string"},
  };
}

std::vector<Broken> broken_tensors() {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return with(header_entry("a", dtype, shape, offsets));
  };
  return {
      {one("F31", "2", "0,8"), "unknown dtype 'F31'"},
      {one("f32", "2", "0,8"), "unknown dtype"},
      {one("F32", "-2", "0,8"), "a negative extent, -2"},
      {one("F32", "0,-1", "0,0"), "a negative extent"},
      {one("F32", "4294967296,4294967296", "0,8"), "product of its shape overflows"},
      {one("U8", "9223372036854775807,2", "0,8"), "product of its shape overflows"},
      {one("F64", "2305843009213693952", "0,8"), "product of its shape overflows"},
      {one("F32", "4611686018427387904,8,0", "0,0"), "product of its shape overflows"},
      {one("F32", "18446744073709551618", "0,8"), "too large"},
      {one("F32", "2.0", "0,8"), "no integer"},
      {one("F32", "2e0", "0,8"), "no integer"},
      {one("F32", "\"2\"", "0,8"), "expected an integer"},
      {one("F32", "[2]", "0,8"), "expected an integer"},
      {one("F4", "3", "0,2"), "do not fill whole bytes"},
      {one("F32",
           std::string(200, '1').replace(1, 198,
                                         [] {
                                           std::string ones;
                                           for (int i = 0; i < 99; ++i) ones += ",1";
                                           return ones;
                                         }()),
           "0,8"),
       "a list of more than 64"},
      {one("F32", "2", "-8,0"), "negative data_offsets [-8, 0]"},
      {one("F32", "2", "0,-8"), "negative data_offsets"},
      {one("F32", "2", "8,0"), "reversed data_offsets [8, 0]"},
      {one("F32", "2", "4,12"), "it ends at byte 12 of the payload, which has 8"},
      {one("F32", "2", "9223372036854775800,9223372036854775807"), "it ends at byte 9223372036854775807"},
      {one("F32", "2", "9223372036854775808,9223372036854775816"), "too large"},
      {one("F32", "2", "0.0,8"), "no integer"},
      {one("F32", "2", "0"), "two data_offsets"},
      {one("F32", "2", "0,8,8"), "more than 2"},
      {one("F32", "1", "0,8"), "span 8 bytes, its dtype and shape take 4"},
      {one("F32", "3", "0,8"), "span 8 bytes, its dtype and shape take 12"},
      {one("F32", "1", "0,4"), "4 bytes at the end belong to no tensor"},
      {one("F32", "1", "4,8"), "a hole of 4 bytes"},
      {with("\"a\":{\"dtype\":\"F32\",\"shape\":[2]}"), "needs dtype, shape"},
      {with("\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}"), "needs dtype, shape"},
      {with("\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}"), "needs dtype, shape"},
      {with("\"a\":{}"), "expected a string"},
      {with("\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"),
       "'dtype' stands twice"},
      {with("\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}"), "unknown field 'x'"},
      {with("\"a\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}"), "expected a string"},
      {with("\"a\":null"), "expected '{'"},
      {with("\"a\":[]"), "expected '{'"},
  };
}

std::vector<Broken> broken_files() {
  const std::string a = header_entry("a", "F32", "1", "0,4"), b = header_entry("b", "F32", "1", "4,8");
  return {
      {with(a + "," + header_entry("a", "F32", "1", "4,8")), "the name 'a' stands twice"},
      {with(a + "," + header_entry("\\u0061", "F32", "1", "4,8")), "the name 'a' stands twice"},
      {with(a + "," + header_entry("b", "F32", "1", "0,4")), "overlaps"},
      {with(header_entry("a", "U8", "5", "0,5") + "," + header_entry("b", "U8", "4", "4,8")), "overlaps"},
      {with(header_entry("a", "U8", "8", "0,8") + "," + header_entry("b", "U8", "0", "4,4")), "overlaps"},
      {with(header_entry("a", "U8", "3", "0,3") + "," + header_entry("b", "U8", "4", "4,8")),
       "a hole of 1 bytes"},
      {with(a + b), "expected '}'"},
      {with(a + "," + b + ",\"__metadata__\":{\"k\":1}"), "expected a string"},
      {with(a + "," + b + ",\"__metadata__\":{\"k\":{\"x\":\"y\"}}"), "expected a string"},
      {with(a + "," + b + ",\"__metadata__\":[]"), "expected '{'"},
      {with(a + "," + b + ",\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}"), "the key 'k' stands twice"},
      {with("\"__metadata__\":{},\"__metadata__\":{}," + a + "," + b), "__metadata__ stands twice"},
  };
}

TEST(SafetensorsFile, RefusesBrokenFiles) {
  for (const auto& rows : {broken_frames(), broken_tensors(), broken_files()})
    for (const Broken& row : rows) {
      const auto file = open(row.content);
      ASSERT_FALSE(file) << row.content.substr(0, 200);
      EXPECT_EQ(file.error().code, ErrorCode::kBadData) << row.what;
      EXPECT_THAT(file.error().what, HasSubstr(row.what)) << row.content.substr(0, 200);
      EXPECT_THAT(file.error().where, HasSubstr("a.safetensors"));
      EXPECT_FALSE(file.error().hint.empty());
    }
}

TEST(SafetensorsFile, RefusesTooManyMetadata) {
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i <= 65'536; ++i) header += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"\"";
  const auto file = open(safetensors_bytes(header + "}}", ""));
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().what, HasSubstr("too many entries"));
}

TEST(SafetensorsFile, RecognisesOtherFormats) {
  struct Row {
    std::string content;
    const char *what, *hint;
  };
  const Row rows[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 4711\n", "Git-LFS pointer",
       "git lfs pull"},
      {std::string("PK\x03\x04\0\0\x08\x08", 8) + std::string(300, '\0'), "zip archive", "save_pretrained"},
      {std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M", 18), "pickle",
       "save_pretrained"},
      {std::string("\x80\x04\x95\x10\0\0\0\0\0\0\0", 11), "pickle", "save_pretrained"},
      {"\n <!DOCTYPE html><html><head></head></html>", "web page", "download the file itself"},
      {"<html><body>404</body></html>", "web page", "download"},
      {"{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}", "JSON text", "index"},
      {"GGUF\x03\0\0\0\0\0\0\0", "GGUF", "safetensors"},
      {"\x89HDF\r\n\x1a\n........", "HDF5", "save_pretrained"},
      {"\x93NUMPY\x01\0v\0{'descr'", "NumPy", "safetensors"},
  };
  for (const Row& row : rows) {
    const auto file = open(row.content);
    ASSERT_FALSE(file) << row.what;
    EXPECT_EQ(file.error().code, ErrorCode::kBadData);
    EXPECT_THAT(file.error().what, HasSubstr(row.what));
    EXPECT_THAT(file.error().hint, HasSubstr(row.hint)) << row.what;
  }
}

TEST(SafetensorsFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(SafetensorsFile::open(folder.path("absent")).error().code, ErrorCode::kBadData);
  EXPECT_EQ(SafetensorsFile::open(folder.path()).error().code, ErrorCode::kBadData);
}

TEST(SafetensorsFile, NoticesACut) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", with(header_entry("a", "F32", "2", "0,8")));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file);
  std::filesystem::resize_file(path, static_cast<uintmax_t>(file->size_bytes() - 4));
  std::array<std::byte, 8> out = {};
  const auto status = file->read(file->tensors()[0], 0, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
}

TEST(SafetensorsFileDeathTest, ReadsWithinTheTensorOnly) {
  const auto file = open(with(header_entry("a", "F32", "2", "0,8")));
  ASSERT_TRUE(file);
  std::array<std::byte, 8> out = {};
  EXPECT_DEATH((void)file->read(file->tensors()[0], 1, out), "beyond its tensor");
}

TEST(ShownName, CutsBetweenCharacters) {
  EXPECT_EQ(shown_name("short"), "short");
  std::string name(79, 'x');
  name += "\u00e9\u00e9";
  EXPECT_EQ(shown_name(name), std::string(79, 'x') + "…");
}

}  // namespace
}  // namespace plimsoll::io
