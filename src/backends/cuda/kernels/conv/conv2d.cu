// Between images and the matrices that convolutions multiply: patches gathered, and gradients of patches
// summed to where they came from.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/conv/conv2d_args.h"

namespace plimsoll::cuda {

// Where element k of a row of patches lies in x; -1: outside the image.
__device__ __forceinline__ i64 patch_element(const ConvShape& s, i64 row, i64 k) {
  const Place tap = place_of(k, s.channels), cell = place_of(tap.row, s.kernel[1]);
  const Place across = place_of(row, s.out_width), down = place_of(across.row, s.out_height);
  const i64 h = down.col * s.stride[0] - s.padding[0] + cell.row * s.dilation[0];
  const i64 w = across.col * s.stride[1] - s.padding[1] + cell.col * s.dilation[1];
  if (h < 0 || h >= s.height || w < 0 || w >= s.width) return -1;
  return ((down.row * s.height + h) * s.width + w) * s.channels + tap.col;
}

// A thread takes kEach elements, of one tap where the channels are a multiple of so many.
extern "C" __global__ void gather_patches(GatherPatches a) {
  begin_grid();
  const i64 i = kEach * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  if (i >= a.n) return;
  const ConvShape& s = a.shape;
  const i64 width = s.kernel[0] * s.kernel[1] * s.channels;
  float v[kEach];
  if (s.channels % kEach == 0) {
    const Place place = place_of(i, width);
    const i64 from = patch_element(s, place.row, place.col);
    if (from >= 0) load8(a.x, from, v, aligned16(a.x));
    for (int e = 0; e < kEach; ++e) v[e] = from < 0 ? 0.0f : a.tf32 ? rounded_to_tf32(v[e]) : v[e];
    store8(a.patches, i, v, aligned16(a.patches));
    return;
  }
  for (i64 k = i; k < a.n && k < i + kEach; ++k) {
    const Place place = place_of(k, width);
    const i64 from = patch_element(s, place.row, place.col);
    const float x = from < 0 ? 0.0f : load(a.x, from);
    store(a.patches, k, a.tf32 ? rounded_to_tf32(x) : x);
  }
}

// A thread an element of dx; taps in order.
extern "C" __global__ void sum_patches(SumPatches a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const ConvShape& s = a.shape;
  const Place channel = place_of(i, s.channels), across = place_of(channel.row, s.width),
              down = place_of(across.row, s.height);
  float sum = 0.0f;
  for (i64 kh = 0; kh < s.kernel[0]; ++kh) {
    const i64 h = down.col + s.padding[0] - kh * s.dilation[0];
    if (h < 0 || h % s.stride[0] != 0 || h / s.stride[0] >= s.out_height) continue;
    for (i64 kw = 0; kw < s.kernel[1]; ++kw) {
      const i64 w = across.col + s.padding[1] - kw * s.dilation[1];
      if (w < 0 || w % s.stride[1] != 0 || w / s.stride[1] >= s.out_width) continue;
      const i64 row = (down.row * s.out_height + h / s.stride[0]) * s.out_width + w / s.stride[1];
      sum += a.patches[((row * s.kernel[0] + kh) * s.kernel[1] + kw) * s.channels + channel.col];
    }
  }
  store(a.dx, i, sum);
}

}  // namespace plimsoll::cuda
