// A matrix stored as codes of FP8 or FP4 with the scales of its blocks, as packing reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/scaled_operand.h"

namespace plimsoll::cpu {

struct CodedMatrix {
  numerics::Scheme scheme = numerics::Scheme::kE4m3;
  const std::byte *codes = nullptr, *scales = nullptr;
  int64_t cols = 0;          ///< of what is stored
  int64_t row = 0, col = 0;  ///< where the matrix begins in it

  /// Elements from (`r`, `c`) on, side by side, as bf16: codes times the scales of blocks, exactly.
  void numbers(int64_t r, int64_t c, std::span<uint16_t> to) const {
    ops::dequantize_codes(scheme, codes, scales, cols, row + r, col + c, to);
  }
};

}  // namespace plimsoll::cpu
