// Arguments of groups.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Samples of granules of rows, and channels in groups.
struct DeviceGroups {
  DeviceGranules granules = {};
  i64 samples = 0, channels = 0, groups = 0;
};
/// Mean and rstd of each sample and group, from the means and sums of squared differences of granules and
/// channels.
struct JoinGroups {
  const float *means = nullptr, *squares = nullptr;
  float *mean = nullptr, *rstd = nullptr;  // [samples, groups]
  DeviceGroups by = {};
  double eps = 0;
};
/// The numbers of each channel of each sample: the group's mean and rstd, and weight * rstd; of a bias that
/// is given the f32.
struct SpreadGroups {
  const float *mean = nullptr, *rstd = nullptr;
  Operand weight = {}, bias = {};
  float *centre = nullptr, *scale = nullptr, *rstd_of_channels = nullptr;  // [samples, channels]
  float* shift = nullptr;                                                  // [channels]
  DeviceGroups by = {};
};
/// slope and offset [samples, channels] of dx = dy * scale + (x - centre) * slope + offset, from the
/// granules' shares of the gradients of weight and bias.
struct GroupSlopes {
  const float *dw_shares = nullptr, *db_shares = nullptr, *rstd = nullptr;  // rstd [samples, groups]
  Operand weight = {};
  float *slope = nullptr, *offset = nullptr;
  DeviceGroups by = {};
};
/// The numbers by which a branch is scaled: zeros, kept of each sample and scale * kept, [samples, channels];
/// scale and kept may be absent.
struct ScaleFactors {
  Operand scale = {};
  const float* kept = nullptr;
  float *zeros = nullptr, *kept_of_channels = nullptr, *product = nullptr;
  i64 samples = 0, channels = 0;
};
/// kept[i] is `value` where the first word of sequence i is at least the threshold, else 0.
struct KeptSamples {
  const u32* random = nullptr;
  float* kept = nullptr;
  i64 count = 0;
  u32 key = 0;
  u64 threshold = 0;
  float value = 1;
};

inline constexpr DeviceKernel<JoinGroups> kJoinGroups{"norm/groups", "join_groups"};
inline constexpr DeviceKernel<SpreadGroups> kSpreadGroups{"norm/groups", "spread_groups"};
inline constexpr DeviceKernel<GroupSlopes> kGroupSlopes{"norm/groups", "group_slopes"};
inline constexpr DeviceKernel<ScaleFactors> kScaleFactors{"norm/groups", "scale_factors"};
inline constexpr DeviceKernel<KeptSamples> kKeptSamples{"norm/groups", "kept_samples"};

}  // namespace plimsoll::cuda
