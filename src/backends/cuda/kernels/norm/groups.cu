// Numbers of each sample and channel: of group normalisation, of layer scale and of stochastic depth. What
// they are applied with is in channels.cu.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/philox.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/groups_args.h"

namespace plimsoll::cuda {

// A block's group: granules and channels, numbered along the granules' channels.
struct GroupOfBlock {
  i64 sample, first_granule, first_channel, of_group, count;
  // Of the block's i-th number.
  __device__ __forceinline__ i64 granule(i64 i) const { return first_granule + i / of_group; }
  __device__ __forceinline__ i64 channel(i64 i) const { return first_channel + i % of_group; }
};
__device__ __forceinline__ GroupOfBlock group_of_block(const DeviceGroups& by) {
  const Place place = place_of(blockIdx.x, by.groups);
  const i64 of_group = by.channels / by.groups;
  return {place.row, place.row * by.granules.per_segment, place.col * of_group, of_group,
          by.granules.per_segment * of_group};
}

extern "C" __global__ void join_groups(JoinGroups a) {
  begin_grid();
  __shared__ double shared[32];
  const GroupOfBlock group = group_of_block(a.by);
  const double count = (double)(a.by.granules.segment * group.of_group);
  const auto rows = [&](i64 g) {
    return (double)(granule_end(a.by.granules, g) - granule_begin(a.by.granules, g));
  };
  double sum = 0;
  for (i64 i = threadIdx.x; i < group.count; i += blockDim.x)
    sum += rows(group.granule(i)) * (double)a.means[group.granule(i) * a.by.channels + group.channel(i)];
  const double mean = block_sum(sum, shared) / count;
  double squares = 0;
  for (i64 i = threadIdx.x; i < group.count; i += blockDim.x) {
    const i64 at = group.granule(i) * a.by.channels + group.channel(i);
    const double difference = (double)a.means[at] - mean;
    squares += (double)a.squares[at] + rows(group.granule(i)) * difference * difference;
  }
  squares = block_sum(squares, shared);
  if (threadIdx.x != 0) return;
  a.mean[blockIdx.x] = (float)mean;
  a.rstd[blockIdx.x] = (float)(1.0 / sqrt(squares / count + a.eps));
}

extern "C" __global__ void spread_groups(SpreadGroups a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.by.samples * a.by.channels) return;
  const Place at = place_of(i, a.by.channels);
  const i64 group = at.row * a.by.groups + at.col / (a.by.channels / a.by.groups);
  a.centre[i] = a.mean[group];
  a.scale[i] = load(a.weight, at.col) * a.rstd[group];
  if (a.rstd_of_channels != nullptr) a.rstd_of_channels[i] = a.rstd[group];
  if (given(a.bias) && at.row == 0) a.shift[at.col] = load(a.bias, at.col);
}

extern "C" __global__ void group_slopes(GroupSlopes a) {
  begin_grid();
  __shared__ double shared[32];
  const GroupOfBlock group = group_of_block(a.by);
  const double count = (double)(a.by.granules.segment * group.of_group);
  double sum_g = 0, sum_gx = 0;
  for (i64 i = threadIdx.x; i < group.count; i += blockDim.x) {
    const i64 at = group.granule(i) * a.by.channels + group.channel(i);
    const double weight = (double)load(a.weight, group.channel(i));
    sum_g += weight * (double)a.db_shares[at];
    sum_gx += weight * (double)a.dw_shares[at];
  }
  sum_g = block_sum(sum_g, shared);
  sum_gx = block_sum(sum_gx, shared);
  const double rstd = (double)a.rstd[blockIdx.x];
  for (i64 c = threadIdx.x; c < group.of_group; c += blockDim.x) {
    const i64 i = group.sample * a.by.channels + group.first_channel + c;
    a.slope[i] = (float)(-rstd * rstd * sum_gx / count);
    a.offset[i] = (float)(-rstd * sum_g / count);
  }
}

extern "C" __global__ void scale_factors(ScaleFactors a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.samples * a.channels) return;
  const Place at = place_of(i, a.channels);
  const float kept = a.kept != nullptr ? a.kept[at.row] : 1.0f;
  a.zeros[i] = 0.0f;
  a.kept_of_channels[i] = kept;
  a.product[i] = given(a.scale) ? load(a.scale, at.col) * kept : kept;
}

extern "C" __global__ void kept_samples(KeptSamples a) {
  begin_grid();
  const i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (i >= a.count) return;
  const uint4 words = philox4(0, a.random[3] + (u32)i, a.random[2], a.key, a.random[0], a.random[1]);
  a.kept[i] = (u64)words.x >= a.threshold ? a.value : 0.0f;
}

}  // namespace plimsoll::cuda
