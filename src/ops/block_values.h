// Values of block types (ir/dtype.h): from their components to numbers and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/shape.h"

namespace plimsoll::ops {

/// Elements [first, first + out) of a dense value of a block type that lies at `storage`, as f32, or as bf16
/// rounded to nearest even from there. Source: numerics/quantized.h.
void dequantize(const ir::TensorType& type, const std::byte* storage, int64_t first, std::span<float> out);
void dequantize(const ir::TensorType& type, const std::byte* storage, int64_t first, std::span<uint16_t> out);

/// A run of x that begins a block (i8_rows: a row) and ends one or the value: its codes, and a scale for each
/// block.
void quantize(const ir::TensorType& type, std::span<const float> x, std::span<std::byte> codes,
              std::span<float> scales);
/// Elements of a block that has a scale.
int64_t quantized_block(const ir::TensorType& type);
/// Where in a value's storage what follows the codes begins, and its bytes, from the scales of all blocks.
int64_t scales_offset(const ir::TensorType& type);
std::vector<std::byte> stored_scales(const ir::TensorType& type, std::span<const float> scales);

}  // namespace plimsoll::ops
