// Launches of channels.cu that several ops share.
#pragma once

#include "backends/cuda/kernels/norm/channels_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {

/// [granules, channels] of f32: what granules give of each channel.
inline int64_t share_elements(const ir::Shape& x) { return Granules(x).count() * x.dim(-1); }
/// Numbers of each channel of each sample, [samples, channels].
inline int64_t sample_channels(const ir::Shape& x) { return x.dim(0) * x.dim(-1); }
inline constexpr Dim kGranuleThreads{kChannelsOfBlock, kChannelRows},
    kJoinThreads{kChannelsOfBlock, kJoinRows};
/// Blocks of sums over granules.
inline Dim granule_blocks(const ir::Shape& x) {
  return blocks(Granules(x).count() * ceil_div(x.dim(-1), kChannelsOfBlock), 1);
}

/// Means and sums of squared differences of granules; `squares` lies share_elements() behind `means`.
inline Status channel_moments(const TensorRef& x, float* means, Stream& stream) {
  return stream.launch(kChannelMoments, granule_blocks(x.shape()), kGranuleThreads, 0,
                       {.x = operand(x),
                        .mean = means,
                        .squares = means + share_elements(x.shape()),
                        .granules = device_granules(Granules(x.shape())),
                        .channels = x.shape().dim(-1)});
}
inline Status map_channels(const MapChannels& map, Stream& stream) {
  return stream.launch(kMapChannels, blocks(map.n, kEach * kThreads), {kThreads}, 0, map);
}
inline Status sum_channels(const ir::Shape& x, SumChannels sums, Stream& stream) {
  sums.granules = device_granules(Granules(x));
  return stream.launch(kSumChannels, granule_blocks(x), kGranuleThreads, 0, sums);
}
/// The granules' shares joined; `join` without their count.
inline Status join_sums(const ir::Shape& x, JoinSums join, Stream& stream) {
  join.count = Granules(x).count();
  join.rows = x.num_rows();
  join.channels = x.dim(-1);
  return stream.launch(kJoinSums, blocks(join.channels, kChannelsOfBlock), kJoinThreads, 0, join);
}
inline Status channel_gradient(const ChannelGradient& gradient, Stream& stream) {
  return stream.launch(kChannelGradient, blocks(gradient.n, kEach * kThreads), {kThreads}, 0, gradient);
}

}  // namespace plimsoll::cuda
