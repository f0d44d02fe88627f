// Weights in codes of bitsandbytes (bitsandbytes.h), many at a time: blocks of 4-bit codes and back, and what
// of a stored tensor a product reads. A tensor is flat; blocks run over it in order, the last may be short.
// Sources: Dettmers et al. 2023, arXiv:2305.14314 (NF4, double quantisation), 2022, arXiv:2208.07339 (int8 by
// rows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/bitsandbytes.h"

namespace plimsoll::numerics {

using bitsandbytes::FourBit;

/// Codes of x, which begins at a block: two a byte, the first in its upper half, ceil(x / 2) bytes; and each
/// block's largest magnitude. A code is the number of bounds, half way between neighbouring values, that
/// x * (1 / scale) is above. A block that x does not fill is divided by its scale, which is 1e-38 at least;
/// the half byte after an odd end is the code of 0. What is not finite gives some code.
void quantize_four_bit(FourBit format, std::span<const float> x, std::span<std::byte> codes,
                       std::span<float> scales);

/// Scales [first, first + out) from codes and second scales of the whole tensor.
void dequantize_scales(const std::byte* codes, const float* second, float offset, int64_t first,
                       std::span<float> out);

/// Elements [first, first + out) of a tensor from its codes; `scales` are those of the blocks from the one of
/// `first` on. Each value is the code's times the scale, in f32; as bf16 rounded to nearest even from there.
void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<float> out);
void dequantize_four_bit(FourBit format, const std::byte* codes, int64_t first, const float* scales,
                         std::span<uint16_t> out);

/// code * scale * (1 / 127), in this order, in f32.
void dequantize_row(const std::byte* codes, float scale, std::span<float> out);
void dequantize_row(const std::byte* codes, float scale, std::span<uint16_t> out);

}  // namespace plimsoll::numerics
