// Stored floating-point numbers into f32. Portable bit arithmetic that the compiler vectorises: no
// instruction beyond the baseline is asked for, and reading is bound by memory all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace plimsoll::io {

/// The stored types that weights are read from.
enum class FloatFormat : uint8_t { kF32, kF16, kBf16, kF64 };

/// By the format's name ("F32", "F16", "BF16", "F64"); nothing for every other dtype.
std::optional<FloatFormat> float_format(std::string_view dtype);
constexpr int64_t element_bytes(FloatFormat format) {
  return format == FloatFormat::kF64 ? 8 : format == FloatFormat::kF32 ? 4 : 2;
}

/// n little-endian numbers to f32: exact from 16 bits (subnormals, infinities, signs of zero; a NaN stays
/// one), rounded to nearest even from F64. `from` needs no alignment. Overlap: the source may be the last n *
/// element_bytes(format) bytes of the destination's (16-bit formats), so that a tensor is read into the upper
/// half of its place and spreads out from there; F32 may lie in its place. F64 must lie apart.
void convert_to_f32(FloatFormat format, const std::byte* from, float* to, int64_t n);

}  // namespace plimsoll::io
