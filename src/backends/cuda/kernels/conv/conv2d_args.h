// Arguments of conv2d.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Of x, the weight [out, kernel, channels / groups] and y. Axes: height, then width.
struct ConvShape {
  i64 images = 0, height = 0, width = 0, channels = 0;
  i64 out_height = 0, out_width = 0, out_channels = 0;
  i64 kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  i64 groups = 1;
};
/// Rows [pixels of y, kernel * channels] of one group's convolution, zeros outside the image; n elements.
/// `tf32`: rounded to that.
struct GatherPatches {
  Operand x, patches;
  ConvShape shape;
  i64 n = 0;
  int tf32 = 0, padding = 0;
};
/// dx, n elements: the sums of the patches [pixels of y, kernel * channels] that hold them.
struct SumPatches {
  const float* patches = nullptr;
  Operand dx;
  ConvShape shape;
  i64 n = 0;
};
/// A convolution in groups, n results; operands rounded to `precision` (a dtype, or kToTf32) first. Of its
/// three operands two are read and one is written.
enum : int { kToTf32 = -1 };
struct GroupedConv {
  Operand x, weight, y, bias;
  ConvShape shape;
  i64 n = 0;
  int precision = kF32, padding = 0;
};

inline constexpr DeviceKernel<GatherPatches> kGatherPatches{"conv/conv2d", "gather_patches"};
inline constexpr DeviceKernel<SumPatches> kSumPatches{"conv/conv2d", "sum_patches"};
inline constexpr DeviceKernel<GroupedConv> kGroupedConv{"conv/grouped", "grouped_conv"};
inline constexpr DeviceKernel<GroupedConv> kGroupedConvInput{"conv/grouped", "grouped_conv_input"};
inline constexpr DeviceKernel<GroupedConv> kGroupedConvWeight{"conv/grouped", "grouped_conv_weight"};

}  // namespace plimsoll::cuda
