// The header of a GGUF file, version 3: metadata and the list of tensors.
//
//   "GGUF" | version | tensors | entries | key type value … | name dims type offset … | pad | tensor | pad |
//   …
//
// All numbers little-endian; texts are a 64-bit length and bytes; each tensor begins on a multiple of 32.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::gguf {

/// The kinds of tensors that are written, by ggml's numbers.
enum class TensorType : uint32_t { kF32 = 0, kF16 = 1, kQ8_0 = 8, kBf16 = 30 };
/// "f32", "q8_0".
std::string_view name(TensorType type);
/// Numbers that share a block; a row is a whole number of them.
int64_t block_elements(TensorType type);
/// Bytes of `elements`, a whole number of blocks.
int64_t tensor_bytes(TensorType type, int64_t elements);

/// Entries in the order in which they were added; a key stands once.
class Metadata {
 public:
  void add_u32(std::string_view key, int64_t value);
  void add_i32(std::string_view key, int64_t value);
  void add_f32(std::string_view key, double value);
  void add_bool(std::string_view key, bool value);
  void add_text(std::string_view key, std::string_view value);
  void add_texts(std::string_view key, const std::vector<std::string>& values);
  void add_i32s(std::string_view key, const std::vector<int32_t>& values);
  void add_f32s(std::string_view key, const std::vector<float>& values);

  [[nodiscard]] int64_t size() const { return count_; }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void begin(std::string_view key, uint32_t type);
  std::string bytes_;
  int64_t count_ = 0;
};

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  ///< as safetensors has it: the last one runs fastest
  TensorType type = TensorType::kF32;

  [[nodiscard]] int64_t elements() const;
  [[nodiscard]] int64_t bytes() const { return tensor_bytes(type, elements()); }
};

inline constexpr int64_t kAlignment = 32;

/// The bytes before the first tensor, padded, and where each tensor begins in the file.
struct Layout {
  std::string header;
  std::vector<int64_t> offsets;
  int64_t file_bytes = 0;
};
Layout lay_out(const Metadata& metadata, std::span<const TensorInfo> tensors);

}  // namespace plimsoll::gguf
