// Rows and columns of an element's number.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

struct Place {
  i64 row, col;
};
// i / cols and i % cols, of numbers that are not negative: by 32 bits where both fit, which takes a fraction
// of the instructions of a division by 64.
__device__ __forceinline__ Place place_of(i64 i, i64 cols) {
  if (((u64)i | (u64)cols) >> 32 == 0) {
    const u32 row = (u32)i / (u32)cols;
    return {(i64)row, (i64)((u32)i - row * (u32)cols)};
  }
  const i64 row = i / cols;
  return {row, i - row * cols};
}

}  // namespace plimsoll::cuda
