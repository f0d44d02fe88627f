// The two ops of delayed scaling: a thread has a slot.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/kernels/loss/fp8_scaling_args.h"

namespace plimsoll::cuda {

extern "C" __global__ void record_amax(const __grid_constant__ RecordAmax a) {
  begin_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const float amax = a.amax[i][0];
  float* most = a.history + a.slot[i];
  if (amax > *most) *most = amax;  // false for NaN
}

extern "C" __global__ void next_fp8_scales(const __grid_constant__ NextScales a) {
  begin_grid();
  const i64 slot = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (slot >= a.slots) return;
  float* history = a.history + slot;
  const float now = history[0];
  float amax = now > 0.0f ? now : 0.0f;
  const bool moves = now != 0.0f;  // nothing moves where this step had no amax
  for (i64 i = 1; i < a.length; ++i) {
    const float value = history[i * a.slots];
    if (!a.most_recent && value > amax) amax = value;
    if (moves) history[(i - 1) * a.slots] = value;
  }
  if (moves) history[(a.length - 1) * a.slots] = now;
  if (moves) history[0] = 0.0f;
  const u32 bits = __float_as_uint(amax);
  if (bits == 0 || bits >= 0x7f800000u) return;  // no amax, or one that is not finite, keeps the scale
  const float largest = slot >= a.first_gradient ? a.largest_gradient : a.largest;
  a.scales[slot] = fminf(__fdiv_rn(largest, amax), 3.402823466e+38f);
}

}  // namespace plimsoll::cuda
