// nanoGPT's and llm.c's files of tokens: read as they are, refused where they are something else.
#include "datasets/token_bin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "datasets/dataset.h"
#include "io/temporary_folder.h"

namespace plimsoll::datasets {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::string raw_bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// llm.c's header.
std::string llm_c_header(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> words(256);
  words[0] = magic;
  words[1] = version;
  words[2] = count;
  return raw_bytes_of(words);
}

std::vector<int32_t> bin_tokens_of(const std::string& path, int64_t vocab_size) {
  const auto data = Dataset::open(std::vector{path}, {.sequence_length = 3, .vocab_size = vocab_size});
  EXPECT_TRUE(data) << data.error().message();
  if (!data) return {};
  EXPECT_EQ(data->num_sequences(), 1);
  std::vector<int32_t> tokens(3);
  std::vector<std::byte> scratch(64);
  EXPECT_TRUE(data->read_sequence(0, tokens, scratch));
  return tokens;
}

TEST(TokenBin, ReadsWhatTheTwoWrite) {
  const io::TemporaryFolder folder;
  const std::string nano = folder.write("train.bin", raw_bytes_of<uint16_t>({1, 50256, 65535, 4}));
  EXPECT_THAT(bin_tokens_of(nano, 65536), ElementsAre(1, 50256, 65535));
  const std::string gpt2 =
      folder.write("gpt2.bin", llm_c_header(20240520, 1, 4) + raw_bytes_of<uint16_t>({50256, 7, 8, 9}));
  EXPECT_THAT(bin_tokens_of(gpt2, 50257), ElementsAre(50256, 7, 8));
  const std::string llama =
      folder.write("llama.bin", llm_c_header(20240801, 7, 3) + raw_bytes_of<uint32_t>({128000, 70000, 1}));
  EXPECT_THAT(bin_tokens_of(llama, 128256), ElementsAre(128000, 70000, 1));
  const auto beyond = Dataset::open(std::vector{nano}, {.sequence_length = 3, .vocab_size = 50257});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kBadData);
  EXPECT_THAT(beyond.error().message(),
              testing::AllOf(HasSubstr("token 2 is id 65535, outside of the vocabulary of 50257"),
                             HasSubstr("train.bin")));
}

TEST(TokenBin, RefusesWhatItIsNot) {
  const std::pair<std::string, const char*> rows[] = {
      {std::string("abc"), "3 bytes, which is no whole number of u16"},
      {llm_c_header(20240520, 2, 0), "version 2, known is 1"},
      {llm_c_header(20240801, 1, 0), "version 1, known is 7"},
      {llm_c_header(20240520, 1, 3) + std::string(4, 'x'), "3 tokens of 2 bytes, and 4 bytes follow it"},
      {llm_c_header(20240801, 7, 3) + std::string(6, 'x'), "3 tokens of 4 bytes, and 6 bytes follow it"},
      {llm_c_header(20240520, 1, -1), "-1 tokens"},
      {llm_c_header(20240801, 7, 1).substr(0, 100), "ends within llm.c's header"},
      {llm_c_header(20240522, 1, 3), "multiple-choice"},
      {std::string("PK\x03\x04....", 8), "a PyTorch checkpoint"},
      {std::string("GGUF\x03\0\0\0", 8), "a GGUF model"},
      {std::string("plmshard....", 12), "a token shard"}};
  const io::TemporaryFolder folder;
  for (const auto& [content, what] : rows) {
    const auto file = io::ReadFile::open(folder.write("a.bin", content));
    ASSERT_TRUE(file);
    const auto parsed = read_token_bin(*file);
    ASSERT_FALSE(parsed) << what;
    EXPECT_EQ(parsed.error().code, ErrorCode::kBadData);
    EXPECT_THAT(parsed.error().message(), testing::AllOf(HasSubstr(what), HasSubstr("a.bin")));
    EXPECT_THAT(parsed.error().hint, HasSubstr("nanoGPT's"));
  }
  EXPECT_EQ(parse_token_bin({}, 0)->num_elements(), 0) << "which whoever reads it calls empty";
}

}  // namespace
}  // namespace plimsoll::datasets
