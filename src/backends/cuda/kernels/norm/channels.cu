// Normalisations whose statistics are of channels. Sums over rows: a block takes 32 channels of a granule,
// then blocks of 32 channels join the granules. Maps: eight elements a thread.
#include "backends/cuda/device/grid.cuh"
#include "backends/cuda/device/place.cuh"
#include "backends/cuda/device/reduce.cuh"
#include "backends/cuda/device/vector.cuh"
#include "backends/cuda/kernels/norm/channels_args.h"

namespace plimsoll::cuda {

// The sum over the block's rows of threads, in order, for each column of threads. All threads call it.
template <typename T, int kRows>
__device__ __forceinline__ T sum_of_rows(T value, T (*shared)[kChannelsOfBlock + 1]) {
  __syncthreads();
  shared[threadIdx.y][threadIdx.x] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < kRows; ++i) sum += shared[i][threadIdx.x];
  return sum;
}

// What a block of sums over granules works on.
struct Part {
  i64 granule, channel, begin, end;
};
__device__ __forceinline__ Part part_of_block(const DeviceGranules& granules, i64 channels) {
  const i64 columns = (channels + kChannelsOfBlock - 1) / kChannelsOfBlock;
  const Place place = place_of(blockIdx.x, columns);
  return {place.row, place.col * kChannelsOfBlock + threadIdx.x, granule_begin(granules, place.row),
          granule_end(granules, place.row)};
}

extern "C" __global__ void channel_moments(ChannelMoments a) {
  begin_grid();
  __shared__ float shared[kChannelRows][kChannelsOfBlock + 1];
  const Part part = part_of_block(a.granules, a.channels);
  const bool has_channel = part.channel < a.channels;
  // Differences from the first row: a mean far from zero costs no digits.
  const float first = has_channel ? load(a.x, part.begin * a.channels + part.channel) : 0.0f;
  float sum = 0;
  if (has_channel)
    for (i64 r = part.begin + threadIdx.y; r < part.end; r += kChannelRows)
      sum += load(a.x, r * a.channels + part.channel) - first;
  const float mean = first + sum_of_rows<float, kChannelRows>(sum, shared) / (float)(part.end - part.begin);
  float squares = 0;
  if (has_channel)
    for (i64 r = part.begin + threadIdx.y; r < part.end; r += kChannelRows) {
      const float difference = load(a.x, r * a.channels + part.channel) - mean;
      squares += difference * difference;
    }
  squares = sum_of_rows<float, kChannelRows>(squares, shared);
  if (threadIdx.y != 0 || !has_channel) return;
  a.mean[part.granule * a.channels + part.channel] = mean;
  a.squares[part.granule * a.channels + part.channel] = squares;
}

extern "C" __global__ void join_moments(JoinMoments a) {
  begin_grid();
  __shared__ double shared[kJoinRows][kChannelsOfBlock + 1];
  const i64 c = blockIdx.x * (i64)kChannelsOfBlock + threadIdx.x;
  const bool has_channel = c < a.channels;
  double sum = 0;
  if (has_channel)
    for (i64 g = threadIdx.y; g < a.count; g += kJoinRows)
      sum += (double)(granule_end(a.granules, g) - granule_begin(a.granules, g)) *
             (double)a.means[g * a.channels + c];
  const double centre = sum_of_rows<double, kJoinRows>(sum, shared) / (double)a.rows;
  double total = 0;
  if (has_channel)
    for (i64 g = threadIdx.y; g < a.count; g += kJoinRows) {
      const double difference = (double)a.means[g * a.channels + c] - centre;
      total += (double)a.squares[g * a.channels + c] +
               (double)(granule_end(a.granules, g) - granule_begin(a.granules, g)) * difference * difference;
    }
  total = sum_of_rows<double, kJoinRows>(total, shared);
  if (threadIdx.y != 0 || !has_channel) return;
  a.mean[c] = (float)centre;
  a.variance[c] = (float)(total / (double)a.rows);
}

extern "C" __global__ void channel_coefficients(ChannelCoefficients a) {
  begin_grid();
  const i64 c = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (c >= a.channels) return;
  const float rstd = (float)(1.0 / sqrt((double)a.variance[c] + a.eps));
  a.rstd[c] = rstd;
  a.scale[c] = load(a.weight, c) * rstd;
  if (given(a.bias)) a.shift[c] = load(a.bias, c);
}

// ---- maps: elements [i, i + n) of a row, n <= 8

struct Stretch {
  i64 row, channel, set;  // the first element's; `set` is where its numbers begin
  int n;
};
__device__ __forceinline__ Stretch stretch_at(i64 i, i64 end, const DeviceChannels& by) {
  const Place at = place_of(i, by.channels);
  const i64 left = by.channels - at.col < end - i ? by.channels - at.col : end - i;
  return {at.row, at.col, at.row / by.rows_of_set * by.channels, left < 8 ? (int)left : 8};
}

// y at x before relu, without a residual.
__device__ __forceinline__ float mapped(const DeviceChannels& by, const Stretch& at, int e, float x) {
  const i64 c = at.set + at.channel + e;
  return (x - by.centre[c]) * by.scale[c] + by.shift[at.channel + e];
}

extern "C" __global__ void map_channels(MapChannels a) {
  begin_grid();
  const i64 first = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  const i64 end = first + 8 < a.n ? first + 8 : a.n;
  const bool vec = a.by.channels % 8 == 0 && aligned16(a.x) && aligned16(a.y) && aligned16(a.residual);
  for (i64 i = first; i < end;) {  // more than one stretch where a row ends in between
    const Stretch at = stretch_at(i, end, a.by);
    float v[8], r[8] = {};
    load_part(a.x, i, at.n, v, vec);
    if (given(a.residual)) load_part(a.residual, i, at.n, r, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e >= at.n) break;
      v[e] = mapped(a.by, at, e, v[e]);
      if (given(a.residual)) v[e] += r[e];
      if (a.relu && v[e] <= 0.0f) v[e] = 0.0f;
    }
    store_part(a.y, i, at.n, v, vec);
    i += at.n;
  }
}

// ---- gradients

// dz, dx may lie where dy, dy2, x or the mask does: a thread writes what it alone has read.
extern "C" __global__ void sum_channels(SumChannels a) {
  begin_grid();
  __shared__ float shared[kChannelRows][kChannelsOfBlock + 1];
  const i64 channels = a.by.channels;
  const Part part = part_of_block(a.granules, channels);
  const bool has_channel = part.channel < channels;
  const i64 c = part.begin / a.by.rows_of_set * channels + part.channel;
  float sum_w = 0, sum_b = 0;
  if (has_channel) {
    const float centre = a.by.centre[c], scale = a.by.scale[c];
    const float shift = a.relu ? a.by.shift[part.channel] : 0.0f;
    for (i64 r = part.begin + threadIdx.y; r < part.end; r += kChannelRows) {
      const i64 i = r * channels + part.channel;
      const float difference = load(a.x, i) - centre;
      float d = load(a.dy, i);
      if (given(a.dy2)) d += load(a.dy2, i);
      if (given(a.mask) ? load(a.mask, i) <= 0.0f : a.relu && difference * scale + shift <= 0.0f) d = 0.0f;
      if (given(a.dz)) store(a.dz, i, d);
      if (given(a.dx)) store(a.dx, i, d * scale);
      sum_b += d;
      sum_w += d * difference;
    }
  }
  if (a.dw == nullptr) return;
  sum_w = sum_of_rows<float, kChannelRows>(sum_w, shared);
  sum_b = sum_of_rows<float, kChannelRows>(sum_b, shared);
  if (threadIdx.y != 0 || !has_channel) return;
  a.dw[part.granule * channels + part.channel] = sum_w * a.rstd[c];
  a.db[part.granule * channels + part.channel] = sum_b;
}

// The block's threads bring the shares of kJoinRows granules; one row of threads adds them in order.
extern "C" __global__ void join_sums(JoinSums a) {
  begin_grid();
  __shared__ float dw[kJoinRows][kChannelsOfBlock + 1], db[kJoinRows][kChannelsOfBlock + 1];
  const i64 c = blockIdx.x * (i64)kChannelsOfBlock + threadIdx.x;
  const bool adds = threadIdx.y == 0 && c < a.channels;
  float sum_w = 0, sum_b = 0;
  double total_w = 0, total_b = 0;
  if (adds && given(a.acc_dw)) sum_w = load(a.acc_dw, c);
  if (adds && given(a.acc_db)) sum_b = load(a.acc_db, c);
  for (i64 begin = 0; begin < a.count; begin += kJoinRows) {
    const i64 g = begin + threadIdx.y;
    const int n = a.count - begin < kJoinRows ? (int)(a.count - begin) : kJoinRows;
    __syncthreads();
    if (g < a.count && c < a.channels) {
      dw[threadIdx.y][threadIdx.x] = a.dw_shares[g * a.channels + c];
      db[threadIdx.y][threadIdx.x] = a.db_shares[g * a.channels + c];
    }
    __syncthreads();
    for (int i = 0; adds && i < n; ++i) {
      const float w = dw[i][threadIdx.x], b = db[i][threadIdx.x];
      sum_w += w, sum_b += b;
      total_w += (double)w, total_b += (double)b;
    }
  }
  if (!adds) return;
  if (given(a.dw)) store(a.dw, c, sum_w);
  if (given(a.db)) store(a.db, c, sum_b);
  if (a.slope == nullptr) return;
  const double by = -(double)a.scale[c] / (double)a.rows;
  a.slope[c] = (float)(by * (double)a.rstd[c] * total_w);
  a.offset[c] = (float)(by * total_b);
}

extern "C" __global__ void channel_gradient(ChannelGradient a) {
  begin_grid();
  const i64 first = 8 * (blockIdx.x * (i64)blockDim.x + threadIdx.x);
  const i64 end = first + 8 < a.n ? first + 8 : a.n;
  const bool vec = a.by.channels % 8 == 0 && aligned16(a.x) && aligned16(a.dy) && aligned16(a.dx);
  for (i64 i = first; i < end;) {
    const Stretch at = stretch_at(i, end, a.by);
    float d[8], v[8];
    load_part(a.dy, i, at.n, d, vec), load_part(a.x, i, at.n, v, vec);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e >= at.n) break;
      const i64 c = at.set + at.channel + e;
      if (a.relu && mapped(a.by, at, e, v[e]) <= 0.0f) d[e] = 0.0f;
      d[e] = d[e] * a.by.scale[c] + ((v[e] - a.by.centre[c]) * a.slope[c] + a.offset[c]);
    }
    store_part(a.dx, i, at.n, d, vec);
    i += at.n;
  }
}

}  // namespace plimsoll::cuda
