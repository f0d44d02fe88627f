// Plain and packed files, whole, in several parts, cut off and damaged.
#include "corpora/input_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "corpora/packed.h"
#include "io/temporary_folder.h"

namespace plimsoll::corpora {
namespace {

using testing::HasSubstr;

Result<std::string> read_all(const std::string& path, size_t step = 70000) {
  PLIMSOLL_ASSIGN(const auto stream, InputStream::open(path));
  std::string all;
  std::string piece(step, '\0');
  for (;;) {
    PLIMSOLL_ASSIGN(const size_t count, stream->read(piece));
    if (count == 0) break;
    all.append(piece, 0, count);
  }
  EXPECT_EQ(stream->bytes_read(), stream->size_bytes());
  return all;
}

TEST(InputStream, UnpacksByContentNotByName) {
  const io::TemporaryFolder folder;
  const std::string text = some_text(1'000'000);
  const std::string first = text.substr(0, 300'000), second = text.substr(300'000);
  const std::pair<const char*, std::string> rows[] = {
      {"plain.txt", text},
      {"one.gz", gzip(text)},
      {"members.txt", gzip(first) + gzip("") + gzip(second)},
      {"padded.gz", gzip(text) + std::string(1000, '\0')},
      {"one.zst", zstd(text)},
      {"frames.jsonl", zstd(first) + std::string("\x50\x2A\x4D\x18\x03\0\0\0abc", 11) + zstd(second)},
  };
  for (const auto& [name, content] : rows)
    for (const size_t step : {size_t{1000}, size_t{1} << 20}) {
      const auto read = read_all(folder.write(name, content), step);
      ASSERT_TRUE(read) << name << ": " << read.error().message();
      EXPECT_TRUE(*read == text) << name;
    }
  EXPECT_EQ(*read_all(folder.write("empty.txt", "")), "");
  EXPECT_EQ(*read_all(folder.write("empty.gz", gzip(""))), "");
  EXPECT_EQ(*read_all(folder.write("named.gz", "plain text")), "plain text");
}

TEST(InputStream, NoticesEveryCutAndEveryChangedByte) {
  const io::TemporaryFolder folder;
  const std::string text = some_text(3000);
  for (const std::string& whole : {gzip(text), zstd(text)}) {
    const std::string path = folder.path("x.gz");
    for (size_t size = 0; size < whole.size(); size += 1 + size / 12) {
      folder.write("x.gz", whole.substr(0, size));
      const auto read = read_all(path);
      if (size == 0) continue;  // an empty file
      ASSERT_FALSE(read && size > 4 && *read == text) << size;
      if (size < 4) continue;  // too short to tell what it is
      ASSERT_FALSE(read) << size;
      EXPECT_EQ(read.error().code, ErrorCode::kBadData);
      EXPECT_THAT(read.error().message(), HasSubstr("x.gz"));
      EXPECT_THAT(read.error().what, HasSubstr("byte " + std::to_string(size)));
    }
    for (size_t at = 0; at < whole.size(); at += 17) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      folder.write("x.gz", changed);
      const auto read = read_all(path);
      // What the header says of times and names is under no checksum.
      ASSERT_TRUE(!read || *read == text) << at;
      ASSERT_TRUE(!read || at <= 20) << at;
    }
  }
}

TEST(InputStream, SaysThatAWindowIsTooLarge) {
  const io::TemporaryFolder folder;
  // A frame's header (RFC 8878, 3.1.1) with a window of 2^(10 + 17) bytes, then a last block of four raw
  // ones.
  std::string frame("\x28\xB5\x2F\xFD\x00\x88\x21\x00\x00text", 13);
  const auto largest = read_all(folder.write("a.zst", frame));
  ASSERT_TRUE(largest) << largest.error().message();
  EXPECT_EQ(*largest, "text");
  frame[5] = '\x90';
  const auto beyond = read_all(folder.write("a.zst", frame));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kBadData);
  EXPECT_THAT(beyond.error().what, HasSubstr("128 MiB"));
  EXPECT_THAT(beyond.error().hint, HasSubstr("without --long"));
}

TEST(InputStream, RefusesWhatFollowsGzip) {
  const io::TemporaryFolder folder;
  const auto read = read_all(folder.write("x.gz", gzip("text") + "garbage"));
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().what, HasSubstr("what follows the end is no gzip data"));
}

TEST(InputStream, NamesFormatsThatItDoesNotRead) {
  const io::TemporaryFolder folder;
  const std::pair<std::string, const char*> rows[] = {
      {std::string("\xFD"
                   "7zXZ\0more",
                   10),
       "a xz file"},
      {"PK\x03\x04 and more", "a zip file"},
      {"PAR1 and more", "a Parquet file"},
      {"BZh91AY&SY and more", "a bzip2 file"},
      {"version https://git-lfs.github.com/spec/v1\n", "a Git-LFS pointer"},
      {"\xff\xfe\x01", "does not begin as such data"},
  };
  for (const auto& [content, what] : rows) {
    const auto stream = InputStream::open(folder.write("x.txt.gz", content));
    ASSERT_FALSE(stream) << what;
    EXPECT_EQ(stream.error().code, ErrorCode::kBadData);
    EXPECT_THAT(stream.error().what, HasSubstr(what));
    EXPECT_FALSE(stream.error().hint.empty());
  }
  EXPECT_EQ(InputStream::open(folder.path("absent.txt")).error().code, ErrorCode::kBadData);
  EXPECT_EQ(InputStream::open(folder.path()).error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::corpora
