// The safetensors reader: a header that is checked whole before anything of it is believed, and positioned
// reads of payloads into the caller's memory. Nothing is mapped.
//
//   u64 header bytes | JSON header | payload   offsets count from the payload's start; no holes, no overlaps
//
// Format: https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::io {

/// Longer headers are refused, here and by the other readers.
inline constexpr int64_t kMaxSafetensorsHeader = 100'000'000;

/// One tensor of a file. The shape's product times the dtype's size is `bytes`; [] is a scalar.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;  ///< the format's spelling: "F32", "BF16", …
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< of the first byte, from the file's start
  int64_t bytes = 0;

  [[nodiscard]] int64_t num_elements() const;
};

/// Bits of one element of a dtype that files may hold (F4 has 4, F6 types 6); 0 for an unknown name.
int safetensors_dtype_bits(std::string_view dtype);
/// A name for messages: its first 80 bytes, cut between characters.
std::string shown_name(std::string_view name);
/// "F32 [8, 64]", for messages.
std::string to_string(const SafetensorsTensor& tensor);

/// What a header says.
struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  ///< in order of offset; empty ones before what starts there
  std::vector<std::pair<std::string, std::string>> metadata;  ///< in the file's order
  std::vector<uint32_t> by_name;  ///< indices into `tensors`, sorted by name's bytes
};

/// Bytes of the JSON text, from the file's first 8 bytes (fewer where the file is shorter).
/// Errors: kBadData where they are no length of a header of at most 100 MB within the file.
Result<int64_t> safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_bytes);
/// Reads and checks the JSON text that follows them. Memory: about twice the text.
/// Errors: kBadData for everything that the format does not allow; `where` is left to the caller.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, int64_t file_bytes);

/// A file whose header has been checked. Moves; `read` may be called from any thread.
class SafetensorsFile {
 public:
  /// Errors: kBadData for whatever is wrong with the content, with a hint for what is often mistaken for the
  /// format (Git-LFS pointers, pickles, web pages); kIo where the operating system refuses.
  static Result<SafetensorsFile> open(const std::string& path);
  static Result<SafetensorsFile> open(ReadFile file);
  /// With a header that needs no checking: who made it says where in the file its tensors lie.
  static SafetensorsFile of_header(ReadFile file, SafetensorsHeader header) {
    return {std::move(file), std::move(header)};
  }

  [[nodiscard]] const std::vector<SafetensorsTensor>& tensors() const { return header_.tensors; }
  /// The tensor of that name, or null. O(log n).
  [[nodiscard]] const SafetensorsTensor* find(std::string_view name) const;
  [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& metadata() const {
    return header_.metadata;
  }
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] int64_t size_bytes() const { return file_.size_bytes(); }
  /// Fills `out` from byte `offset` of the tensor's payload; reading beyond it is a bug (checked).
  /// Errors: kIo; kBadData where the file has been cut since.
  Status read(const SafetensorsTensor& tensor, int64_t offset, std::span<std::byte> out) const;

 private:
  SafetensorsFile(ReadFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}
  ReadFile file_;
  SafetensorsHeader header_;
};

}  // namespace plimsoll::io
