// Normalisations whose statistics are of channels: the passes over rows of channels that batch and group
// normalisation share. Operands are dense. Rows are cut into granules (ops/granules.h), of which each is a
// tile, so that no bit depends on the threads.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {

inline constexpr int64_t kFloatBytes = sizeof(float);

/// [granules, channels]: what granules give of each channel.
inline int64_t share_elements(const ir::Shape& x) { return Granules(x).count() * x.dim(-1); }

/// Numbers of each channel, [sets, channels]: a set is of `rows_of_set` rows one after the other, none of
/// whose granules belongs to two.
struct ChannelSets {
  int64_t rows_of_set = 1;
  const float *centre = nullptr, *scale = nullptr;
};

/// Of each granule and channel the mean, and the sum of squared differences from it: [granules, channels].
void channel_moments(const TensorRef& x, float* mean, float* squares, ThreadPool& pool);

/// y = (x - centre) * scale + shift [+ residual], then max(y, 0) where `relu`; y may lie where x or residual
/// does.
struct ChannelMap {
  TensorRef x = {}, residual = {}, y = {};  ///< residual may be absent
  ChannelSets sets = {};
  const float* shift = nullptr;  ///< [channels]
  bool relu = false;
};
void map_channels(const ChannelMap& map, ThreadPool& pool);

/// The first pass of a gradient. dz is dy, plus dy2 where that is there, where relu let pass, by `mask`, or
/// where that is absent and `relu` is set by (x - centre) * scale + shift. Of each granule and channel dw =
/// rstd * sum of dz * (x - centre) and db = sum of dz, [granules, channels], where dw is not null; dz and dx
/// = dz * scale where they are there, and these may lie where dy, dy2, x or the mask does.
struct ChannelSums {
  TensorRef dy = {}, dy2 = {}, x = {}, mask = {}, dz = {}, dx = {};
  ChannelSets sets = {};
  const float *shift = nullptr, *rstd = nullptr;  ///< [channels] and [sets, channels]
  bool relu = false;
  float *dw = nullptr, *db = nullptr;
};
void sum_channels(const ChannelSums& sums, ThreadPool& pool);

/// The second pass: dx = dz * scale + (x - centre) * slope + offset, with dz as above; dx may lie where dy or
/// x does.
struct ChannelGradient {
  TensorRef dy = {}, x = {}, dx = {};
  ChannelSets sets = {};
  const float* shift = nullptr;                     ///< [channels]; null: dy is dz
  const float *slope = nullptr, *offset = nullptr;  ///< [sets, channels]
};
void channel_gradient(const ChannelGradient& gradient, ThreadPool& pool);

}  // namespace plimsoll::cpu
