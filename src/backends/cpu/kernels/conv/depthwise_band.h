// The parts of depthwise convolutions that are compiled once per instruction set (depthwise_band.cpp).
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/kernels/gemm/gemm.h"

namespace plimsoll::cpu {

/// Channels that a task works on: a cache line of bf16.
inline constexpr int64_t kDepthwiseChannels = 32;

/// Rows of an image with zeros around it and, with `spacing`, zeros between its pixels, for a block of
/// channels as f32: row r and column c stand for pixel (first[0] + r, first[1] + c) / spacing.
struct DepthwisePlane {
  const std::byte* image = nullptr;  ///< the first channel of the block
  ir::DType dtype = ir::DType::kF32;
  Precision precision = Precision::kF32;
  int64_t height = 0, width = 0, pixel = 0, channels = 0;
  std::array<int64_t, 2> spacing = {1, 1}, first = {};
  int64_t rows = 0, columns = 0;
  float* to = nullptr;  ///< a part for each vector of the block: [rows, columns, channels of a vector]
};
void depthwise_fill(const DepthwisePlane& plane);

/// Rows of results from a plane: result (i, j) is the sum over taps (kh, kw) of the plane at
/// (i step + kh spread, j step + kw spread) times the weight.
struct DepthwiseBand {
  const float* plane = nullptr;
  int64_t plane_rows = 0, plane_columns = 0;
  int64_t rows = 0, columns = 0;  ///< of results
  std::array<int64_t, 2> taps = {}, step = {1, 1}, spread = {1, 1};
};
/// `weight` [taps, kDepthwiseChannels]; `row`: room for a row of a vector's results. Results go to `to`,
/// `pixel` elements from one to the next; `bias` may be null.
struct DepthwiseResults {
  const float* weight = nullptr;
  float* row = nullptr;
  std::byte* to = nullptr;
  int64_t pixel = 0, channels = 0;
  ir::DType dtype = ir::DType::kF32;
  const float* bias = nullptr;
};
void depthwise_multiply(const DepthwiseBand& band, const DepthwiseResults& results);
/// sums [taps, kDepthwiseChannels] += over the band's results: dy, a plane of [rows, columns], times the
/// plane.
void depthwise_sum(const DepthwiseBand& band, const float* dy, float* sums);
/// `count` elements as f32 that `precision` knows; and f32 as `dtype`.
void depthwise_convert(const void* from, ir::DType dtype, Precision precision, float* to, int64_t count);
void depthwise_narrow(const float* from, ir::DType dtype, void* to, int64_t count);

}  // namespace plimsoll::cpu
