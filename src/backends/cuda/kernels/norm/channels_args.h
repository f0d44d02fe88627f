// Arguments of channels.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// A block takes so many channels of one granule, with so many threads for each; where granules are joined
/// more of these.
constexpr int kChannelsOfBlock = 32, kChannelRows = 8, kJoinRows = 32;

/// Of each granule and channel the mean, and the sum of squared differences from it: [granules, channels].
struct ChannelMoments {
  Operand x = {};
  float *mean = nullptr, *squares = nullptr;
  DeviceGranules granules = {};
  i64 channels = 0;
};
/// The same of all rows: mean and biased variance.
struct JoinMoments {
  const float *means = nullptr, *squares = nullptr;
  float *mean = nullptr, *variance = nullptr;
  DeviceGranules granules = {};
  i64 count = 0, rows = 0, channels = 0;
};
/// rstd = 1/sqrt(variance + eps), scale = weight * rstd, shift = bias where that is given.
struct ChannelCoefficients {
  const float* variance = nullptr;
  Operand weight = {}, bias = {};
  double eps = 0;
  float *rstd = nullptr, *scale = nullptr, *shift = nullptr;
  i64 channels = 0;
};
/// Numbers of each channel, [sets, channels]; a set is of `rows_of_set` rows. shift [channels].
struct DeviceChannels {
  const float *centre = nullptr, *scale = nullptr, *shift = nullptr;
  i64 channels = 0, rows_of_set = 1;
};
/// y = (x - centre) * scale + shift [+ residual], then max(y, 0) where `relu`.
struct MapChannels {
  Operand x = {}, residual = {}, y = {};
  DeviceChannels by = {};
  i64 n = 0;
  int relu = 0;
};
/// dz is dy, plus dy2 where given, where relu let pass: by `mask`, or where `relu` is set by x. dw = rstd *
/// sum of dz * (x - centre) and db = sum of dz, [granules, channels]; dz and dx = dz * scale where they are
/// given.
struct SumChannels {
  Operand dy = {}, dy2 = {}, x = {}, mask = {}, dz = {}, dx = {};
  DeviceChannels by = {};
  const float* rstd = nullptr;
  float *dw = nullptr, *db = nullptr;
  DeviceGranules granules = {};
  int relu = 0;
};
/// The granules' shares in order, onto acc where given, to dw and db where given; where `slope` is given also
/// what dx = dz * scale + (x - centre) * slope + offset goes by, of statistics of `rows` rows.
struct JoinSums {
  const float *dw_shares = nullptr, *db_shares = nullptr, *scale = nullptr, *rstd = nullptr;
  float *slope = nullptr, *offset = nullptr;
  Operand acc_dw = {}, acc_db = {}, dw = {}, db = {};
  i64 count = 0, channels = 0, rows = 0;
};
/// dx = dz * scale + (x - centre) * slope + offset; dz as above by x.
struct ChannelGradient {
  Operand dy = {}, x = {}, dx = {};
  DeviceChannels by = {};
  const float *slope = nullptr, *offset = nullptr;  // [sets, channels]
  i64 n = 0;
  int relu = 0;
};

inline constexpr DeviceKernel<ChannelMoments> kChannelMoments{"norm/channels", "channel_moments"};
inline constexpr DeviceKernel<JoinMoments> kJoinMoments{"norm/channels", "join_moments"};
inline constexpr DeviceKernel<ChannelCoefficients> kChannelCoefficients{"norm/channels",
                                                                        "channel_coefficients"};
inline constexpr DeviceKernel<MapChannels> kMapChannels{"norm/channels", "map_channels"};
inline constexpr DeviceKernel<SumChannels> kSumChannels{"norm/channels", "sum_channels"};
inline constexpr DeviceKernel<JoinSums> kJoinSums{"norm/channels", "join_sums"};
inline constexpr DeviceKernel<ChannelGradient> kChannelGradient{"norm/channels", "channel_gradient"};

}  // namespace plimsoll::cuda
