// Streams of any length arrive byte by byte, and a failure is told.
#include "io/stream_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

constexpr size_t kBuffer = static_cast<size_t>(StreamWriter::kBufferBytes);

std::string some_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 977);
  return bytes;
}

TEST(StreamWriterTest, WritesEveryByteInOrder) {
  const TemporaryFolder folder;
  const auto writer = *StreamWriter::create();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, kBuffer - 1, kBuffer,
                            2 * kBuffer, 3 * kBuffer + 4097})
    for (const size_t piece : {size_t{777}, size_t{128} << 10, 2 * kBuffer + 5}) {
      const std::string path = folder.path("f" + std::to_string(size) + "-" + std::to_string(piece));
      const std::string bytes = some_bytes(size);
      auto file = OutputFile::create(path);
      ASSERT_TRUE(file);
      StreamWriter::Stream stream = writer->begin(std::move(*file));
      for (size_t at = 0; at < size; at += piece)
        ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes)).subspan(at, std::min(piece, size - at))));
      auto written = stream.finish();
      ASSERT_TRUE(written);
      ASSERT_TRUE(written->close());
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
  const auto writer = *StreamWriter::create();
  {
    auto file = OutputFile::create(folder.path("a"));
    ASSERT_TRUE(file);
    ::setrlimit(RLIMIT_FSIZE, &small);
    StreamWriter::Stream stream = writer->begin(std::move(*file));
    Status status = stream.append(std::as_bytes(std::span(bytes)));
    if (status)
      if (auto finished = stream.finish(); !finished) status = std::move(finished).error();
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
  }
  std::signal(SIGXFSZ, ignored);
  auto file = OutputFile::create(folder.path("b"));
  ASSERT_TRUE(file);
  StreamWriter::Stream stream = writer->begin(std::move(*file));
  ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes))));
  ASSERT_TRUE(stream.finish());
  EXPECT_TRUE(read_all(folder.path("b")) == bytes);
}

// The descriptor stays open until what was on its way has arrived: else it would go to the next file.
TEST(StreamWriterTest, WhatIsLeftEarlyArrivesBeforeTheFileIsClosed) {
  const TemporaryFolder folder;
  const auto writer = *StreamWriter::create();
  const std::string bytes = some_bytes(8 * kBuffer);
  for (int i = 0; i < 6; ++i) {
    const std::string left = folder.path("left" + std::to_string(i)),
                      next = folder.path("next" + std::to_string(i));
    {
      auto file = OutputFile::create(left);
      ASSERT_TRUE(file);
      StreamWriter::Stream stream = writer->begin(std::move(*file));
      ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes)).first(kBuffer + 17 + kBuffer * (i % 3))));
    }  // left in the midst, as by an error
    EXPECT_EQ(read_all(left).size() % kBuffer, 0U) << "whole buffers arrive";
    auto file = OutputFile::create(next);
    ASSERT_TRUE(file);
    StreamWriter::Stream stream = writer->begin(std::move(*file));
    ASSERT_TRUE(stream.append(std::as_bytes(std::span(bytes)).first(100)));
    auto written = stream.finish();
    ASSERT_TRUE(written && written->close());
    EXPECT_EQ(read_all(next), bytes.substr(0, 100));
  }
}

}  // namespace
}  // namespace plimsoll::io
