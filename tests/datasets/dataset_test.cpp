// Token files and the sequences over them.
#include "datasets/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/temporary_folder.h"

namespace plimsoll::datasets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// The bytes of values as elements of `width` bytes, little- or big-endian.
std::string elements(const std::vector<int64_t>& values, int width, bool big_endian) {
  std::string bytes;
  for (const int64_t value : values)
    for (int i = 0; i < width; ++i) {
      const int shift = 8 * (big_endian ? width - 1 - i : i);
      bytes += static_cast<char>(static_cast<uint64_t>(value) >> shift);
    }
  return bytes;
}

std::string npy(const std::string& descr, const std::string& shape, const std::vector<int64_t>& values) {
  const std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size());
  out += '\0';
  return out + header + elements(values, descr[2] - '0', descr[0] == '>');
}

std::vector<int32_t> sequence(const Dataset& data, int64_t index) {
  std::vector<int32_t> tokens(static_cast<size_t>(data.sequence_length()), -1);
  std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
  const auto status = data.read_sequence(index, tokens, scratch);
  EXPECT_TRUE(status) << (status ? "" : status.error().message());
  return tokens;
}

Result<Dataset> open(const std::vector<std::string>& paths, int64_t length, int64_t vocab = 1000,
                     bool keep_tail = false) {
  return Dataset::open(paths, {.sequence_length = length, .vocab_size = vocab, .keep_tail = keep_tail});
}

TEST(TokenSource, DecodesEveryIntegerType) {
  const io::TemporaryFolder folder;
  for (const char* descr :
       {"|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", ">u2", ">i2", ">u4", ">i4", ">u8", ">i8"}) {
    const auto source = TokenSource::open(folder.write("a.npy", npy(descr, "(5,)", {1, 2, 127, 0, 77})), 128);
    ASSERT_TRUE(source) << descr;
    std::vector<int32_t> tokens(4);
    std::vector<std::byte> scratch(8);  // the least: an element at a time where they are wide
    ASSERT_TRUE(source->read(1, tokens, scratch)) << descr;
    EXPECT_THAT(tokens, ElementsAre(2, 127, 0, 77)) << descr;
  }
}

TEST(TokenSource, NamesTheIdBeyondTheVocabulary) {
  const io::TemporaryFolder folder;
  struct Row {
    const char* descr;
    int64_t id;
    const char* text;
  };
  const Row rows[] = {{"<i4", 100, "id 100"},
                      {"<i4", -100, "id -100"},
                      {"|i1", -1, "id -1"},
                      {"<u2", 65535, "id 65535"},
                      {">i8", -5, "id -5"},
                      {"<u8", -1, "id 18446744073709551615"},
                      {"<i8", int64_t{1} << 32, "id 4294967296"}};
  for (const Row& row : rows) {
    const auto source =
        TokenSource::open(folder.write("a.npy", npy(row.descr, "(4,)", {1, 2, row.id, 3})), 100);
    ASSERT_TRUE(source);
    std::vector<int32_t> tokens(3);
    std::vector<std::byte> scratch(64);
    const auto status = source->read(1, tokens, scratch);
    ASSERT_FALSE(status) << row.text;
    EXPECT_EQ(status.error().code, ErrorCode::kBadData);
    EXPECT_THAT(status.error().what,
                HasSubstr(std::string("token 2 is ") + row.text + ", outside of the vocabulary of 100"));
    EXPECT_THAT(status.error().where, HasSubstr("a.npy"));
  }
}

TEST(Dataset, CutsAStreamAcrossFiles) {
  const io::TemporaryFolder folder;
  const std::string a = folder.write("a.npy", npy("<u2", "(5,)", {0, 1, 2, 3, 4}));
  const std::string b = folder.write("b.npy", npy("<i8", "(6,)", {5, 6, 7, 8, 9, 10}));
  const auto train = open({a, b}, 4);
  ASSERT_TRUE(train) << train.error().message();
  EXPECT_EQ(train->num_sequences(), 2);
  EXPECT_EQ(train->num_tokens(), 11);
  EXPECT_THAT(sequence(*train, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sequence(*train, 1), ElementsAre(4, 5, 6, 7));
  const auto eval = open({folder.path("*.npy")}, 4, 1000, true);
  ASSERT_TRUE(eval);
  EXPECT_EQ(eval->num_sequences(), 3);
  EXPECT_EQ(eval->sequence_tokens(1), 4);
  EXPECT_EQ(eval->sequence_tokens(2), 3);
  EXPECT_THAT(sequence(*eval, 2), ElementsAre(8, 9, 10, 0));
}

TEST(Dataset, ATailOfOneTokenHasNoTarget) {
  const io::TemporaryFolder folder;
  const auto eval = open({folder.write("a.npy", npy("<i4", "(5,)", {0, 1, 2, 3, 4}))}, 4, 10, true);
  ASSERT_TRUE(eval);
  EXPECT_EQ(eval->num_sequences(), 1);
}

TEST(Dataset, TakesARowAsASequence) {
  const io::TemporaryFolder folder;
  const std::string a = folder.write("a.npy", npy("<i4", "(2, 3)", {0, 1, 2, 3, 4, 5}));
  const std::string b = folder.write("b.npy", npy("<i2", "(1, 3)", {6, 7, 8}));
  const auto data = open({a, b}, 3);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->num_sequences(), 3);
  EXPECT_THAT(sequence(*data, 1), ElementsAre(3, 4, 5));
  EXPECT_THAT(sequence(*data, 2), ElementsAre(6, 7, 8));
}

TEST(Dataset, ReadsTextAsBytes) {
  const io::TemporaryFolder folder;
  const auto data = open({folder.write("a.txt", "abc\xff\n!")}, 3, ByteVocabulary::kSize);
  ASSERT_TRUE(data);
  EXPECT_EQ(data->num_sequences(), 2);
  EXPECT_THAT(sequence(*data, 0), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(sequence(*data, 1), ElementsAre(255, '\n', '!'));
}

TEST(Dataset, RefusesBadFilesByName) {
  const io::TemporaryFolder folder;
  const std::string stream = folder.write("stream.npy", npy("<i4", "(3,)", {1, 2, 3}));
  const std::string rows = folder.write("rows.npy", npy("<i4", "(1, 3)", {1, 2, 3}));
  struct Row {
    std::vector<std::string> paths;
    int64_t length;
    int64_t vocab;
    ErrorCode code;
    const char* what;
  };
  const Row table[] = {
      {{}, 3, 9, ErrorCode::kInvalidArgument, "data.train names no file"},
      {{folder.path("missing.npy")}, 3, 9, ErrorCode::kBadData, "no such file"},
      {{folder.path("*.none")}, 3, 9, ErrorCode::kBadData, "no file matches"},
      {{folder.path()}, 3, 9, ErrorCode::kInvalidArgument, "nor a token shard"},
      {{folder.write("a.jsonl", "{}")}, 3, 9, ErrorCode::kInvalidArgument, "nor a token shard"},
      {{folder.write("empty.txt", "")}, 3, 9, ErrorCode::kBadData, "holds no tokens"},
      {{folder.write("none.npy", npy("<i4", "(0,)", {}))}, 3, 9, ErrorCode::kBadData, "holds no tokens"},
      {{folder.write("none2.npy", npy("<i4", "(0, 3)", {}))}, 3, 9, ErrorCode::kBadData, "holds no tokens"},
      {{folder.write("broken.npy", "x")}, 3, 9, ErrorCode::kBadData, "no .npy file"},
      {{stream}, 4, 9, ErrorCode::kBadData, "3 tokens, fewer than one sequence of 4"},
      {{stream}, 3, 3, ErrorCode::kBadData, "id 3"},
      {{rows}, 4, 9, ErrorCode::kInvalidArgument, "rows have 3 tokens"},
      {{rows, stream}, 3, 9, ErrorCode::kInvalidArgument, "mixes"},
  };
  for (const Row& row : table) {
    const auto data = open(row.paths, row.length, row.vocab);
    ASSERT_FALSE(data) << row.what;
    EXPECT_EQ(data.error().code, row.code) << row.what;
    EXPECT_THAT(data.error().what, HasSubstr(row.what));
    EXPECT_FALSE(data.error().hint.empty() && row.code == ErrorCode::kInvalidArgument) << row.what;
  }
}

TEST(Dataset, HasTheFirstSequencesAlone) {
  const io::TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.write("a.txt", "abcdefghij")};
  const auto count = [&](int64_t most, bool keep_tail) {
    return Dataset::open(
               paths,
               {.sequence_length = 4, .vocab_size = 256, .max_sequences = most, .keep_tail = keep_tail})
        ->num_sequences();
  };
  EXPECT_EQ(count(0, false), 2);
  EXPECT_EQ(count(1, false), 1);
  EXPECT_EQ(count(9, true), 3);
  EXPECT_EQ(count(2, true), 2);
}

TEST(Dataset, NoticesAFileCutShortLater) {
  const io::TemporaryFolder folder;
  const std::string path = folder.write("a.txt", "abcdef");
  const auto data = open({path}, 3);
  ASSERT_TRUE(data);
  std::filesystem::resize_file(path, 4);
  std::vector<int32_t> tokens(3);
  std::vector<std::byte> scratch(64);
  EXPECT_TRUE(data->read_sequence(0, tokens, scratch));
  const auto status = data->read_sequence(1, tokens, scratch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::datasets
