// Element types, what they occupy, and of which component storages a logical value of each consists.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace plimsoll::ir {

/// Element types that the graph knows. Ops compute on f32, bf16, f16 and i32; the 8- and 4-bit types are
/// declared so that sizes, printing and planning hold for them from the start.
enum class DType : uint8_t {
  kF32,
  kBf16,
  kF16,
  kE4m3,
  kE5m2,
  kE8m0,
  kI8,
  kU8,
  kI32,
  kNf4,
  kNf4Double,
  kFp4,
  kFp4Double,
  kI8Rows
};
inline constexpr int kNumDTypes = 14;

/// "f32", "bf16", …, the spelling in the textual IR.
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);
/// Bits of one element, scales of block types not counted (nf4: 4).
int bits(DType dtype);
bool is_floating(DType dtype);
/// bf16 and f16: stored in two bytes, computed in f32.
bool is_half_precision(DType dtype);
/// Floating dtypes whose values ops compute on: f32 and the short ones.
bool is_computable(DType dtype);

/// Types whose elements share scales: a value of one is several components, and cannot be viewed by rows.
bool is_block(DType dtype);

/// A part of a logical value's storage: plain types have one ("data"), block types carry their scales beside
/// it. All lie in the one storage of the value, so that they are placed, moved and saved together, and a
/// kernel reaches each from the value's address (runtime/component.h).
struct Component {
  std::string_view name;
  DType dtype = DType::kF32;
  int64_t num_elements = 0;
  int64_t offset = 0;  ///< in the storage, a multiple of kComponentAlignment
  Bytes bytes = {};
};
inline constexpr int64_t kComponentAlignment = 64;

/// A few, without the heap, which a training step asks for nothing.
class Components {
 public:
  void push_back(const Component& component) { all_[size_++] = component; }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] const Component& operator[](size_t i) const { return all_[i]; }
  [[nodiscard]] const Component& back() const { return all_[size_ - 1]; }
  [[nodiscard]] const Component* begin() const { return all_.data(); }
  [[nodiscard]] const Component* end() const { return all_.data() + size_; }

 private:
  std::array<Component, 4> all_ = {};
  size_t size_ = 0;
};

/// The components of a dense value of `num_elements` in rows of `row` elements, in their order in its
/// storage. Blocks run over the elements in order, across rows.
///   nf4         "data", two codes a byte, the first in its upper half; "scales", one f32 for each block of
///   64
///               elements
///   nf4_double  the same codes; "scales", a code of 8 bits for each block; "second", one f32 for each 256 of
///               these; "offset", one f32 that all scales are relative to
///   fp4, fp4_double  the same with other codes
///   i8_rows     "data", a code of a byte; "scales", one f32 for each row
/// Source: Dettmers et al. 2023, arXiv:2305.14314; of i8_rows 2022, arXiv:2208.07339.
Components components(DType dtype, int64_t num_elements, int64_t row);
/// Of all `components`, with what lies between them.
Bytes storage_bytes(DType dtype, int64_t num_elements, int64_t row);

}  // namespace plimsoll::ir
