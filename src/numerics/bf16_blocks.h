// Blocks of a row of bf16 numbers, without a detour to f32 where the instruction set has what it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/blocks.h"

namespace plimsoll::numerics {

/// Whether quantize_bf16_row and quantize_bf16_columns know the scheme.
bool has_blocks_of_bf16(Scheme scheme);

/// Codes and scales of a row, with the bits that quantize() gives of its numbers. False where bits alone do
/// not decide them, with codes and scales written in part: instruction sets without 16-bit shifts by lane,
/// rows with a last block that is not whole, infinities, NaN, and blocks beyond bf16's middle range.
/// Precondition: has_blocks_of_bf16.
bool quantize_bf16_row(Scheme scheme, std::span<const uint16_t> row, std::byte* codes, std::byte* scales);

}  // namespace plimsoll::numerics
