// The safetensors writer: the layout is known from names and shapes alone, the payload is streamed from where
// it lies, so writing a checkpoint costs no memory but the header.
//
//   u64 header bytes | JSON header, padded with spaces to 8 | tensor 0 | tensor 1 | …   no holes, in list
//   order
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::io {

/// One tensor of the file to be.
struct SafetensorsEntry {
  std::string name;
  std::string dtype =
      "F32";  ///< the format's names: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 I32 I16 I8 U8 BOOL …
  std::vector<int64_t> shape = {};
};

/// Bytes of one element of a dtype by the format's name; 0 for a name that it does not have, and for types of
/// less than a byte.
int64_t safetensors_dtype_bytes(std::string_view dtype);

/// What stands before the payload, and where each tensor lies behind it.
struct SafetensorsLayout {
  std::string header;         ///< the length and the JSON
  std::vector<int64_t> ends;  ///< payload offsets: tensor i is [ends[i], ends[i + 1])

  /// Errors: kInvalidArgument for a name twice, an unknown dtype, a negative or overflowing shape.
  static Result<SafetensorsLayout> create(
      const std::vector<SafetensorsEntry>& entries,
      const std::vector<std::pair<std::string, std::string>>& metadata = {});
  [[nodiscard]] int64_t header_bytes() const { return static_cast<int64_t>(header.size()); }
  [[nodiscard]] int64_t file_bytes() const { return header_bytes() + ends.back(); }
};

/// Writes one file: `create`, then each tensor's bytes in any order and in pieces, then `finish`.
class SafetensorsWriter {
 public:
  /// Lays the file out and writes its header to a temporary beside `path`.
  /// Errors: kIo; as SafetensorsLayout::create.
  static Result<SafetensorsWriter> create(const std::string& path, std::vector<SafetensorsEntry> entries,
                                          std::vector<std::pair<std::string, std::string>> metadata = {});

  /// Writes `bytes` of tensor `index` from byte `offset` of its payload on.
  /// Errors: kIo. Writing beyond the tensor is a bug (checked).
  Status write(size_t index, std::span<const std::byte> bytes, int64_t offset = 0);
  /// Syncs and renames. Errors: kIo. That every byte was written is checked.
  Status finish();
  [[nodiscard]] int64_t payload_bytes(size_t index) const { return ends_[index + 1] - ends_[index]; }
  [[nodiscard]] int64_t file_bytes() const { return header_bytes_ + ends_.back(); }

 private:
  SafetensorsWriter(AtomicFile file, int64_t header_bytes, std::vector<int64_t> ends)
      : file_(std::move(file)), header_bytes_(header_bytes), ends_(std::move(ends)) {}
  AtomicFile file_;
  int64_t header_bytes_ = 0;
  std::vector<int64_t> ends_;  ///< payload offsets: tensor i is [ends_[i], ends_[i + 1])
  int64_t written_bytes_ = 0;
};

}  // namespace plimsoll::io
