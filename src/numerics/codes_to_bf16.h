// Codes of FP8 with their scales of blocks as bf16, which holds each exactly: what products of them multiply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/blocks.h"

namespace plimsoll::numerics {

/// Whether the scheme has codes of FP8.
bool has_fp8_codes(Scheme scheme);

/// Elements [col, col + out) of a row of codes of a byte, times the scale of each one's block, to nearest
/// even (which rounds below 2^-126 alone). Precondition: has_fp8_codes. `scales`: of the row, from its first
/// block on; schemes with a scale of the tensor read none, and give the codes' numbers themselves.
void fp8_row_to_bf16(Scheme scheme, const std::byte* codes, const std::byte* scales, int64_t col,
                     std::span<uint16_t> out);

}  // namespace plimsoll::numerics
