// ggml's blocks of 32 numbers in 8 bits with one scale.
#pragma once

#include <cstddef>
#include <span>

namespace plimsoll::gguf {

/// A block: d = max|x| / 127 as fp16, then round(x · (1/d)), half away from zero, as signed bytes; 1/d is
/// that of d in fp32, 0 where d is 0. Bit for bit as quantize_row_q8_0_ref of ggml. Shapes: x in blocks of 32
/// -> 34 bytes each (checked).
void encode_q8_0(std::span<const float> x, std::span<std::byte> out);

}  // namespace plimsoll::gguf
