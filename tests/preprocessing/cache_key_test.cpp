// The name of a cached file changes with all that the file was made from, and with nothing else.
#include "preprocessing/cache_key.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "corpora/tiny_tokenizer.h"
#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

std::string key_of(const std::vector<std::string>& files) {
  CacheKey key;
  key.add_files(files);
  return key.text();
}

void set_times(const std::string& path) {
  const timespec times[2] = {{.tv_sec = 1704067200, .tv_nsec = 0}, {.tv_sec = 1704067200, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

TEST(CacheKey, SeesOtherContentsOfTheSameSizeAndTime) {
  const io::TemporaryFolder folder;
  const std::string path = folder.write("a.jsonl", R"({"text": "aaaa"})");
  set_times(path);
  const std::string before = key_of({path});
  folder.write("a.jsonl", R"({"text": "bbbb"})");
  set_times(path);
  EXPECT_NE(key_of({path}), before);
  folder.write("a.jsonl", R"({"text": "aaaa"})");
  EXPECT_EQ(key_of({path}), before) << "another time alone changes nothing";
}

TEST(CacheKey, SeesEveryByteOfALargeFile) {
  const io::TemporaryFolder folder;
  std::string text((size_t{2} << 20) + 5, 'a');
  const std::string path = folder.write("a.txt", text);
  const std::string before = key_of({path});
  for (const size_t at : {size_t{0}, size_t{1} << 20, text.size() - 1}) {
    std::string other = text;
    other[at] = 'b';
    folder.write("a.txt", other);
    EXPECT_NE(key_of({path}), before) << at;
  }
}

TEST(CacheKey, SeesTheFilesBesideATokenizer) {
  const io::TemporaryFolder folder;
  folder.write("tokenizer.json", corpora::tiny_tokenizer_json());
  const auto key_now = [&] {
    const auto tokenizer = corpora::tiny_tokenizer();
    CacheKey key;
    key.add_tokenizer(*tokenizer, folder.path(), folder.path());
    return key.text();
  };
  std::string before = key_now();
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}) {
    folder.write(name, R"({"bos_token": "<|endoftext|>"})");
    EXPECT_NE(key_now(), before) << name;
    before = key_now();
  }
}

}  // namespace
}  // namespace plimsoll::preprocessing
