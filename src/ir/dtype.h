// Element types, what they occupy, and of which component storages a logical value of each consists.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plimsoll::ir {

/// Element types that the graph knows. Ops compute on f32, bf16, f16 and i32; the 8- and 4-bit types are
/// declared so that sizes, printing and planning hold for them from the start.
enum class DType : uint8_t { kF32, kBf16, kF16, kE4m3, kE5m2, kE8m0, kI8, kU8, kI32, kNf4 };
inline constexpr int kNumDTypes = 10;

/// "f32", "bf16", …, the spelling in the textual IR.
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);
/// Bits of one element, scales of block types not counted (nf4: 4).
int bits(DType dtype);
bool is_floating(DType dtype);
/// bf16 and f16: stored in two bytes, computed in f32.
bool is_short(DType dtype);
/// Floating dtypes whose values ops compute on: f32 and the short ones.
bool is_computable(DType dtype);

/// One storage of a logical value: plain types have one ("data"), block types carry their scales beside it.
struct Component {
  std::string_view name;
  Bytes bytes;
};

/// The storages of a dense value of `num_elements`. nf4: "data", two codes a byte, and "scales", one f32 for
/// each block of 64 elements (Dettmers et al. 2023, arXiv:2305.14314, without double quantisation).
std::vector<Component> components(DType dtype, int64_t num_elements);
/// The sum over `components`.
Bytes storage_bytes(DType dtype, int64_t num_elements);

}  // namespace plimsoll::ir
