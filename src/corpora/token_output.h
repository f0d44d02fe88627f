// Writes tokens to a NumPy array or a token shard; the file is complete at the end, or not there at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "datasets/shard.h"
#include "io/file.h"

namespace plimsoll::corpora {

/// A 1-D .npy written front to back: u16 where every id fits, else i32 (which torch.from_numpy takes too).
/// Memory: 1 MiB.
class NpyWriter {
 public:
  /// Errors: kIo.
  static Result<NpyWriter> create(const std::string& path, int64_t vocab_size);
  /// `ids` are below vocab_size. Errors: kIo.
  Status add(std::span<const int32_t> ids);
  /// Writes the header, syncs, gives the file its name. Errors: kIo, then no file.
  Status finish();

 private:
  NpyWriter(io::AtomicFile file, int id_bytes) : file_(std::move(file)), id_bytes_(id_bytes) {}
  Status flush();
  io::AtomicFile file_;
  int id_bytes_;
  int64_t num_tokens_ = 0;
  int64_t offset_ = 0;
  std::vector<std::byte> buffer_ = {};
};

/// The one of the two that the file's name asks for: .npy or a shard.
class TokenOutput {
 public:
  /// Errors: kIo.
  static Result<TokenOutput> create(const std::string& path, const datasets::ShardOptions& options);
  [[nodiscard]] bool is_npy() const { return npy_.has_value(); }
  /// As ShardWriter::add; an .npy drops the mask and where documents end.
  Status add(std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues);
  Status finish();

 private:
  TokenOutput() = default;
  std::optional<NpyWriter> npy_;
  std::optional<datasets::ShardWriter> shard_;
};

}  // namespace plimsoll::corpora
