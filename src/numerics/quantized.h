// Weights in codes of 4 or 8 bits with scales, as bitsandbytes has them: what its packages call nf4 and fp4
// in blocks of 64, their scales quantised once more ("double quantisation"), and int8 by rows. A tensor is
// flat; blocks run over it in order, the last may be short. Sources: Dettmers et al. 2023, arXiv:2305.14314
// (NF4, double quantisation), 2022, arXiv:2208.07339 (int8 by rows); values, bounds and the order of
// operations are those of bitsandbytes 0.50.2 on a CPU (docs/formats.md says where it is not followed).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::numerics {

enum class FourBit : uint8_t { kNf4, kFp4 };
inline constexpr int64_t kFourBitBlock = 64;  ///< elements of a scale
inline constexpr int64_t kSecondBlock = 256;  ///< scales of a second scale

/// Values by code.
std::span<const float, 16> values_of(FourBit format);

/// Codes of x, which begins at a block: two a byte, the first in its upper half, ceil(x / 2) bytes; and each
/// block's largest magnitude. A code is the number of bounds, half way between neighbouring values, that
/// x * (1 / scale) is above. What is not finite gives some code.
void quantize_four_bit(FourBit format, std::span<const float> x, std::span<std::byte> codes,
                       std::span<float> scales);

/// Scales as codes of the signed dynamic map (dynamic_map.h), relative to their mean `offset`, a scale for
/// each 256 of them. The mean is taken in double and rounded once.
void quantize_scales(std::span<const float> scales, std::span<std::byte> codes, std::span<float> second,
                     float& offset);
/// Scales [first, first + out) from codes and second scales of the whole tensor.
void dequantize_scales(const std::byte* codes, const float* second, float offset, int64_t first,
                       std::span<float> out);

/// Elements [first, first + out) of a tensor from its codes; `scales` are those of the blocks from the one of
/// `first` on. Each value is the code's times the scale, in f32; as bf16 rounded to nearest even from there.
void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<float> out);
void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<uint16_t> out);

/// One row as int8: round to nearest even of x * (127 / scale); returns the scale, the row's largest
/// magnitude. A row of zeros has codes 0.
float quantize_row(std::span<const float> x, std::span<std::byte> codes);
/// code * scale * (1 / 127), in this order, in f32.
void dequantize_row(const std::byte* codes, float scale, std::span<float> out);
void dequantize_row(const std::byte* codes, float scale, std::span<uint16_t> out);

}  // namespace plimsoll::numerics
