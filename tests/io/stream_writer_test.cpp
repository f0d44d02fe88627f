// Streams of any length arrive byte by byte, and a failure is told.
#include "io/stream_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "temporary_folder.h"

namespace plimsoll {
namespace {

constexpr size_t kBuffer = static_cast<size_t>(StreamWriter::kBufferBytes);

std::string some_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 977);
  return bytes;
}

TEST(StreamWriterTest, WritesEveryByteInOrder) {
  const TemporaryFolder folder;
  StreamWriter stream;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, kBuffer - 1, kBuffer,
                            2 * kBuffer, 3 * kBuffer + 4097})
    for (const size_t piece : {size_t{777}, size_t{128} << 10, 2 * kBuffer + 5}) {
      const std::string path = folder.path("f" + std::to_string(size) + "-" + std::to_string(piece));
      const std::string bytes = some_bytes(size);
      auto file = OutputFile::create(path);
      ASSERT_TRUE(file);
      stream.begin(*file);
      for (size_t at = 0; at < size; at += piece)
        ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes)).subspan(at, std::min(piece, size - at))));
      ASSERT_TRUE(stream.flush());
      ASSERT_TRUE(file->close());
      EXPECT_TRUE(read_all(path) == bytes) << size << " in pieces of " << piece;
    }
}

TEST(StreamWriterTest, TellsOfAFailureAndGoesOnWithTheNextFile) {
  const TemporaryFolder folder;
  const auto ignored = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = kBuffer + 100;
  const std::string bytes = some_bytes(6 * kBuffer);
  StreamWriter stream;
  {
    auto file = OutputFile::create(folder.path("a"));
    ASSERT_TRUE(file);
    ::setrlimit(RLIMIT_FSIZE, &small);
    stream.begin(*file);
    Status status = stream.append(std::as_bytes(std::span(bytes)));
    if (status) status = stream.flush();
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
  }
  std::signal(SIGXFSZ, ignored);
  auto file = OutputFile::create(folder.path("b"));
  ASSERT_TRUE(file);
  stream.begin(*file);
  ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes))));
  ASSERT_TRUE(stream.flush());
  EXPECT_TRUE(read_all(folder.path("b")) == bytes);
}

}  // namespace
}  // namespace plimsoll
