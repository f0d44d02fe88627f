// Arguments of fp8_scaling.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Slots that one launch handles.
constexpr int kSlotsAtOnce = 256;

/// history[slot[i]] = the larger of it and amax[i][0]; NaN is passed over.
struct RecordAmax {
  float* history = nullptr;
  int n = 0;
  int slot[kSlotsAtOnce] = {};
  const float* amax[kSlotsAtOnce] = {};
};
/// history [length, slots], scales [slots], as ops/fp8_scaling.h moves them on; slots from `first_gradient`
/// on have the second of the largest codes.
struct NextScales {
  float *history = nullptr, *scales = nullptr;
  i64 length = 1, slots = 0, first_gradient = 0;
  float largest = 0, largest_gradient = 0;  ///< code, below it the margin
  int most_recent = 0;
};
static_assert(sizeof(RecordAmax) <= kMostArgumentBytes);

inline constexpr DeviceKernel<RecordAmax> kRecordAmax{"loss/fp8_scaling", "record_amax"};
inline constexpr DeviceKernel<NextScales> kNextScales{"loss/fp8_scaling", "next_fp8_scales"};

}  // namespace plimsoll::cuda
