// Documents made up for tests of shards, and shards of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/shard.h"

namespace plimsoll::datasets {

/// A file in memory, for tests that write thousands.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("test", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  /// Replaces the content; returns the file's path.
  [[nodiscard]] std::string holding(std::string_view bytes) const {
    EXPECT_TRUE(::ftruncate(fd_, 0) == 0 &&
                ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

struct Document {
  std::vector<int32_t> ids;
  std::vector<uint8_t> in_loss;
};

inline std::vector<Document> random_documents(int count, int longest, int64_t vocab_size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Document> documents(static_cast<size_t>(count));
  for (Document& d : documents) {
    d.ids.resize(1 + random() % static_cast<unsigned>(longest));
    d.in_loss.resize(d.ids.size());
    for (int32_t& id : d.ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocab_size));
    for (uint8_t& bit : d.in_loss) bit = random() % 3 != 0 ? 1 : 0;
  }
  return documents;
}

inline ShardInfo write_shard(const std::string& path, const std::vector<Document>& documents,
                             const ShardOptions& options, unsigned pieces = 1) {
  auto writer = ShardWriter::create(path, options);
  EXPECT_TRUE(writer);
  for (const Document& d : documents) {
    const size_t step = d.ids.size() / pieces + 1;
    for (size_t at = 0; at < d.ids.size(); at += step) {
      const size_t size = std::min(step, d.ids.size() - at);
      std::span<const uint8_t> in_loss;
      if (options.with_mask) in_loss = std::span(d.in_loss).subspan(at, size);
      EXPECT_TRUE(writer->add(std::span(d.ids).subspan(at, size), in_loss, at + size < d.ids.size()));
    }
  }
  auto info = writer->finish();
  EXPECT_TRUE(info) << (info ? "" : info.error().message());
  return *info;
}

}  // namespace plimsoll::datasets
