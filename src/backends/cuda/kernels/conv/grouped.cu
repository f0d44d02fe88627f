// Convolutions in groups, whose products are too small for matrix units: a thread a result, and of the
// weight's gradient a block.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/conv/conv2d_args.h"

namespace plimsoll::cuda {

__device__ __forceinline__ float multiplied(const Operand& x, i64 i, int precision) {
  const float v = load(x, i);
  return precision == kToTf32 ? rounded_to_tf32(v) : rounded_to(v, precision);
}

extern "C" __global__ void grouped_conv(GroupedConv a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const ConvShape& s = a.shape;
  const Place out = place_of(i, s.out_channels), across = place_of(out.row, s.out_width),
              down = place_of(across.row, s.out_height);
  const i64 inputs = s.channels / s.groups, first = out.col / (s.out_channels / s.groups) * inputs;
  float sum = 0.0f;
  for (i64 kh = 0; kh < s.kernel[0]; ++kh) {
    const i64 h = down.col * s.stride[0] - s.padding[0] + kh * s.dilation[0];
    if (h < 0 || h >= s.height) continue;
    for (i64 kw = 0; kw < s.kernel[1]; ++kw) {
      const i64 w = across.col * s.stride[1] - s.padding[1] + kw * s.dilation[1];
      if (w < 0 || w >= s.width) continue;
      const i64 x = ((down.row * s.height + h) * s.width + w) * s.channels + first,
                k = ((out.col * s.kernel[0] + kh) * s.kernel[1] + kw) * inputs;
      for (i64 c = 0; c < inputs; ++c)
        sum += multiplied(a.x, x + c, a.precision) * multiplied(a.weight, k + c, a.precision);
    }
  }
  store(a.y, i, given(a.bias) ? sum + load(a.bias, out.col) : sum);
}

extern "C" __global__ void grouped_conv_input(GroupedConv a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  const ConvShape& s = a.shape;
  const Place channel = place_of(i, s.channels), across = place_of(channel.row, s.width),
              down = place_of(across.row, s.height);
  const i64 inputs = s.channels / s.groups, outputs = s.out_channels / s.groups;
  const i64 first = channel.col / inputs * outputs, c = channel.col % inputs;
  float sum = 0.0f;
  for (i64 kh = 0; kh < s.kernel[0]; ++kh) {
    const i64 h = down.col + s.padding[0] - kh * s.dilation[0];
    if (h < 0 || h % s.stride[0] != 0 || h / s.stride[0] >= s.out_height) continue;
    for (i64 kw = 0; kw < s.kernel[1]; ++kw) {
      const i64 w = across.col + s.padding[1] - kw * s.dilation[1];
      if (w < 0 || w % s.stride[1] != 0 || w / s.stride[1] >= s.out_width) continue;
      const i64 y =
          ((down.row * s.out_height + h / s.stride[0]) * s.out_width + w / s.stride[1]) * s.out_channels +
          first;
      for (i64 o = 0; o < outputs; ++o)
        sum += multiplied(a.y, y + o, a.precision) *
               multiplied(a.weight, (((first + o) * s.kernel[0] + kh) * s.kernel[1] + kw) * inputs + c,
                          a.precision);
    }
  }
  store(a.x, i, sum);
}

// `bias`: the accumulator. Pixels of y in order, by threads, then the threads.
extern "C" __global__ void grouped_conv_weight(GroupedConv a) {
  begin_grid();
  __shared__ float shared[32];
  const ConvShape& s = a.shape;
  const i64 inputs = s.channels / s.groups, outputs = s.out_channels / s.groups;
  const Place input = place_of(blockIdx.x, inputs), right = place_of(input.row, s.kernel[1]),
              below = place_of(right.row, s.kernel[0]);
  const i64 o = below.row, channel = o / outputs * inputs + input.col;
  const i64 rows = s.images * s.out_height * s.out_width;
  float sum = 0.0f;
  for (i64 row = threadIdx.x; row < rows; row += blockDim.x) {
    const Place across = place_of(row, s.out_width), down = place_of(across.row, s.out_height);
    const i64 h = down.col * s.stride[0] - s.padding[0] + below.col * s.dilation[0];
    const i64 w = across.col * s.stride[1] - s.padding[1] + right.col * s.dilation[1];
    if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
    sum += multiplied(a.x, ((down.row * s.height + h) * s.width + w) * s.channels + channel, a.precision) *
           multiplied(a.y, row * s.out_channels + o, a.precision);
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) store(a.weight, blockIdx.x, given(a.bias) ? load(a.bias, blockIdx.x) + sum : sum);
}

}  // namespace plimsoll::cuda
