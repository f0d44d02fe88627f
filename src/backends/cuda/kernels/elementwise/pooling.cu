// Pooling over windows of images: a thread a result; gradients gather.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/elementwise/pooling_args.h"

namespace plimsoll::cuda {

struct Range {
  i64 begin, end;
};
__device__ __forceinline__ i64 start_of(const DevicePoolAxis& axis, i64 window) {
  return window * axis.stride - axis.padding;
}
__device__ __forceinline__ Range elements_of(const DevicePoolAxis& axis, i64 window) {
  const i64 begin = start_of(axis, window), end = begin + axis.kernel;
  return {begin < 0 ? 0 : begin, end < axis.extent ? end : axis.extent};
}
// The windows that cover an element.
__device__ __forceinline__ Range covering(const DevicePoolAxis& axis, i64 element) {
  const i64 first = element + axis.padding - axis.kernel + 1, last = (element + axis.padding) / axis.stride;
  return {first <= 0 ? 0 : (first + axis.stride - 1) / axis.stride,
          last + 1 < axis.windows ? last + 1 : axis.windows};
}
__device__ __forceinline__ float divisor_of(const Pooling& a, i64 oh, i64 ow) {
  if (!a.skip_padding) return (float)(a.rows.kernel * a.cols.kernel);
  const Range hs = elements_of(a.rows, oh), ws = elements_of(a.cols, ow);
  return (float)((hs.end - hs.begin) * (ws.end - ws.begin));
}

extern "C" __global__ void pool(Pooling a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const Place channel = place_of(i, a.channels), col = place_of(channel.row, a.cols.windows),
              row = place_of(col.row, a.rows.windows);
  const Range hs = elements_of(a.rows, row.col), ws = elements_of(a.cols, col.col);
  const i64 image = row.row * a.rows.extent, top = start_of(a.rows, row.col),
            left = start_of(a.cols, col.col);
  float value = a.index != nullptr ? -__int_as_float(0x7f800000) : 0.0f;
  i64 where = (hs.begin - top) * a.cols.kernel + ws.begin - left;
  for (i64 h = hs.begin; h < hs.end; ++h)
    for (i64 w = ws.begin; w < ws.end; ++w) {
      const float v = load(a.whole, ((image + h) * a.cols.extent + w) * a.channels + channel.col);
      if (a.index == nullptr) {
        value += v;
      } else if (v > value || v != v) {
        value = v;
        where = (h - top) * a.cols.kernel + w - left;
      }
    }
  if (a.index != nullptr)
    a.index[i] = (unsigned char)where;
  else
    value /= divisor_of(a, row.col, col.col);
  store(a.parts, i, value);
}

extern "C" __global__ void pool_grad(Pooling a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const Place channel = place_of(i, a.channels), col = place_of(channel.row, a.cols.extent),
              row = place_of(col.row, a.rows.extent);
  const Range rows = covering(a.rows, row.col), cols = covering(a.cols, col.col);
  float sum = 0;
  for (i64 oh = rows.begin; oh < rows.end; ++oh)
    for (i64 ow = cols.begin; ow < cols.end; ++ow) {
      const i64 part = ((row.row * a.rows.windows + oh) * a.cols.windows + ow) * a.channels + channel.col;
      const i64 position = (row.col - start_of(a.rows, oh)) * a.cols.kernel + col.col - start_of(a.cols, ow);
      if (a.index == nullptr)
        sum += load(a.parts, part) / divisor_of(a, oh, ow);
      else if (a.index[part] == position)
        sum += load(a.parts, part);
    }
  store(a.whole, i, sum);
}

}  // namespace plimsoll::cuda
