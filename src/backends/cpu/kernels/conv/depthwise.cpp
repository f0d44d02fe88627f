// Cuts depthwise convolutions into tasks: an image, a block of channels, rows of results. The scratch of a
// task is a plane (depthwise_band.h). All tasks share the weights, which are arranged [taps, channels].
#include "backends/cpu/kernels/conv/depthwise.h"

#include <algorithm>

#include "backends/cpu/kernels/conv/depthwise_band.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kChannels = kDepthwiseChannels;
/// What of a plane should lie in the second-level cache.
constexpr int64_t kPlaneBytes = 256 << 10;
/// Images whose sums for the weight's gradient are in scratch at once.
constexpr int64_t kImagesAtOnce = 16;

/// One of the two maps from images to images: results, where a result's first tap lies, in pixels of the
/// source with its spacing.
struct DepthwiseMap {
  int64_t images = 0, channels = 0;
  std::array<int64_t, 2> source = {}, spacing = {1, 1};  ///< extents; pixels from one to the next
  std::array<int64_t, 2> result = {}, taps = {}, first = {}, step = {1, 1}, spread = {1, 1};

  [[nodiscard]] int64_t num_taps() const { return taps[0] * taps[1]; }
  [[nodiscard]] int64_t blocks() const { return ceil_div(channels, kChannels); }
  [[nodiscard]] int64_t block_channels(int64_t block) const {
    return std::min(kChannels, channels - block * kChannels);
  }
  [[nodiscard]] int64_t plane_extent(size_t axis, int64_t results) const {
    return (results - 1) * step[axis] + (taps[axis] - 1) * spread[axis] + 1;
  }
  /// Rows of results that a task takes.
  [[nodiscard]] int64_t band() const {
    const int64_t row_bytes = plane_extent(1, result[1]) * kChannels * 4;
    const int64_t rows = (kPlaneBytes / row_bytes - plane_extent(0, 1)) / step[0] + 1;
    return std::clamp<int64_t>(rows, 1, result[0]);
  }
  [[nodiscard]] int64_t bands() const { return ceil_div(result[0], band()); }
  [[nodiscard]] int64_t plane_floats() const {
    return plane_extent(0, band()) * plane_extent(1, result[1]) * kChannels;
  }
  [[nodiscard]] int64_t weight_floats() const { return blocks() * num_taps() * kChannels; }
};

DepthwiseMap forward_map(const ConvExtents& e) {
  return {.images = e.images,
          .channels = e.channels,
          .source = {e.height, e.width},
          .result = {e.out_height, e.out_width},
          .taps = {e.kernel_height, e.kernel_width},
          .first = {-e.how.padding[0], -e.how.padding[1]},
          .step = e.how.stride,
          .spread = e.how.dilation};
}

/// dy with zeros where the stride passes over, and the taps in falling order.
DepthwiseMap input_grad_map(const ConvExtents& e) {
  const auto first = [&](size_t axis, int64_t taps) {
    return e.how.padding[axis] - (taps - 1) * e.how.dilation[axis];
  };
  return {.images = e.images,
          .channels = e.channels,
          .source = {e.out_height, e.out_width},
          .spacing = e.how.stride,
          .result = {e.height, e.width},
          .taps = {e.kernel_height, e.kernel_width},
          .first = {first(0, e.kernel_height), first(1, e.kernel_width)},
          .spread = e.how.dilation};
}

/// A task's place.
struct DepthwiseTask {
  int64_t image, block, row, rows;
  DepthwiseTask(const DepthwiseMap& m, int64_t index)
      : image(index / m.bands() / m.blocks()),
        block(index / m.bands() % m.blocks()),
        row(index % m.bands() * m.band()),
        rows(std::min(m.band(), m.result[0] - row)) {}
  [[nodiscard]] int64_t channel() const { return block * kChannels; }
};

/// Fills `plane` for the task, and says what is in it.
DepthwiseBand filled(const DepthwiseMap& m, const DepthwiseTask& t, const TensorRef& source,
                     Precision precision, float* plane) {
  const int64_t columns = m.plane_extent(1, m.result[1]);
  depthwise_fill({.image = element_at(source, t.image * m.source[0] * m.source[1] * m.channels + t.channel()),
                  .dtype = source.type.dtype,
                  .precision = precision,
                  .height = m.source[0],
                  .width = m.source[1],
                  .pixel = m.channels,
                  .channels = m.block_channels(t.block),
                  .spacing = m.spacing,
                  .first = {m.first[0] + t.row * m.step[0], m.first[1]},
                  .rows = m.plane_extent(0, t.rows),
                  .columns = columns,
                  .to = plane});
  return {plane, m.plane_extent(0, t.rows), columns, t.rows, m.result[1], m.taps, m.step, m.spread};
}

/// body(first, count) over the taps of a channel, which lie side by side in weights.
constexpr int64_t kTapsAtOnce = 64;
template <typename Body>
void for_tap_parts(const DepthwiseMap& m, const Body& body) {
  for (int64_t first = 0; first < m.num_taps(); first += kTapsAtOnce)
    body(first, std::min(kTapsAtOnce, m.num_taps() - first));
}

/// [blocks, taps, kChannels] of f32, the taps in falling order where `flipped`; zeros beyond the channels.
void arrange_weights(const DepthwiseMap& m, const TensorRef& weight, Precision precision, bool flipped,
                     ThreadPool& pool, float* to) {
  pool.run(m.blocks(), [&](int64_t block, int) {
    float* at = to + block * m.num_taps() * kChannels;
    std::fill_n(at, m.num_taps() * kChannels, 0.0F);
    for (int64_t c = 0; c < m.block_channels(block); ++c)
      for_tap_parts(m, [&](int64_t first, int64_t count) {
        float taps[kTapsAtOnce];
        depthwise_convert(element_at(weight, (block * kChannels + c) * m.num_taps() + first),
                          weight.type.dtype, precision, taps, count);
        for (int64_t t = 0; t < count; ++t) {
          const int64_t tap = flipped ? m.num_taps() - 1 - (first + t) : first + t;
          at[tap * kChannels + c] = taps[t];
        }
      });
  });
}

int64_t map_bytes(const DepthwiseMap& m, int num_threads) {
  const int64_t own = m.plane_floats() + m.result[1] * kChannels;
  return round_up((m.weight_floats() + m.blocks() * kChannels + num_threads * own) * 4, 64);
}

void map_images(const DepthwiseMap& m, const TensorRef& source, const TensorRef& weight,
                const TensorRef& bias, const TensorRef& result, Precision precision, bool flipped,
                ThreadPool& pool, std::span<std::byte> scratch) {
  auto* weights = reinterpret_cast<float*>(scratch.data());
  float* biases = weights + m.weight_floats();
  float* planes = biases + m.blocks() * kChannels;
  const int64_t own = m.plane_floats() + m.result[1] * kChannels;
  arrange_weights(m, weight, precision, flipped, pool, weights);
  std::fill_n(biases, m.blocks() * kChannels, 0.0F);
  if (bias) depthwise_convert(bias.data, bias.type.dtype, Precision::kF32, biases, m.channels);
  pool.run(m.images * m.blocks() * m.bands(), [&](int64_t index, int thread) {
    const DepthwiseTask t(m, index);
    float* plane = planes + thread * own;
    const DepthwiseBand band = filled(m, t, source, precision, plane);
    depthwise_multiply(
        band,
        {.weight = weights + t.block * m.num_taps() * kChannels,
         .row = plane + m.plane_floats(),
         .to = element_at(result, ((t.image * m.result[0] + t.row) * m.result[1]) * m.channels + t.channel()),
         .pixel = m.channels,
         .channels = m.block_channels(t.block),
         .dtype = result.type.dtype,
         .bias = bias ? biases + t.channel() : nullptr});
  });
}

/// Scratch of a weight's gradient: sums of all, of each image that is at work, planes of x and dy.
struct WeightScratch {
  int64_t sums, image_sums, own, dy_floats;
  explicit WeightScratch(const DepthwiseMap& m)
      : sums(m.weight_floats()),
        image_sums(std::min(m.images, kImagesAtOnce) * m.weight_floats()),
        dy_floats(m.band() * m.result[1] * kChannels) {
    own = m.plane_floats() + dy_floats;
  }
  [[nodiscard]] int64_t bytes(int num_threads) const {
    return round_up((sums + image_sums + num_threads * own) * 4, 64);
  }
};

/// The sums of a block of channels of an image, row after row.
void sum_image(const DepthwiseMap& m, int64_t image, int64_t block, const TensorRef& x, const TensorRef& dy,
               Precision precision, float* plane, float* dy_plane, float* sums) {
  std::fill_n(sums, m.num_taps() * kChannels, 0.0F);
  for (int64_t b = 0; b < m.bands(); ++b) {
    const DepthwiseTask t(m, (image * m.blocks() + block) * m.bands() + b);
    const DepthwiseBand band = filled(m, t, x, precision, plane);
    depthwise_fill({.image = element_at(dy, image * m.result[0] * m.result[1] * m.channels + t.channel()),
                    .dtype = dy.type.dtype,
                    .precision = precision,
                    .height = m.result[0],
                    .width = m.result[1],
                    .pixel = m.channels,
                    .channels = m.block_channels(t.block),
                    .first = {t.row, 0},
                    .rows = t.rows,
                    .columns = m.result[1],
                    .to = dy_plane});
    depthwise_sum(band, dy_plane, sums);
  }
}

}  // namespace

int64_t depthwise_bytes(const ConvExtents& e, int num_threads) {
  return std::max(map_bytes(forward_map(e), num_threads), map_bytes(input_grad_map(e), num_threads));
}

int64_t depthwise_weight_bytes(const ConvExtents& e, int num_threads) {
  return WeightScratch(forward_map(e)).bytes(num_threads);
}

void depthwise(const ConvExtents& e, const TensorRef& x, const TensorRef& weight, const TensorRef& bias,
               const TensorRef& y, Precision precision, ThreadPool& pool, std::span<std::byte> scratch) {
  map_images(forward_map(e), x, weight, bias, y, precision, false, pool, scratch);
}

void depthwise_input_grad(const ConvExtents& e, const TensorRef& dy, const TensorRef& weight,
                          const TensorRef& dx, Precision precision, ThreadPool& pool,
                          std::span<std::byte> scratch) {
  map_images(input_grad_map(e), dy, weight, {}, dx, precision, true, pool, scratch);
}

void depthwise_weight_grad(const ConvExtents& e, const TensorRef& x, const TensorRef& dy,
                           const TensorRef& acc, const TensorRef& dw, Precision precision, ThreadPool& pool,
                           std::span<std::byte> scratch) {
  const DepthwiseMap m = forward_map(e);
  const WeightScratch sizes(m);
  const int64_t block_floats = m.num_taps() * kChannels;
  auto* sums = reinterpret_cast<float*>(scratch.data());
  float *image_sums = sums + sizes.sums, *planes = image_sums + sizes.image_sums;
  if (acc) arrange_weights(m, acc, Precision::kF32, false, pool, sums);
  for (int64_t first = 0; first < m.images; first += kImagesAtOnce) {
    const int64_t images = std::min(kImagesAtOnce, m.images - first);
    pool.run(images * m.blocks(), [&](int64_t index, int thread) {
      float* plane = planes + thread * sizes.own;
      sum_image(m, first + index / m.blocks(), index % m.blocks(), x, dy, precision, plane,
                plane + m.plane_floats(), image_sums + index * block_floats);
    });
    pool.run(m.blocks(), [&](int64_t block, int) {
      float* to = sums + block * block_floats;
      for (int64_t image = 0; image < images; ++image) {
        const float* from = image_sums + (image * m.blocks() + block) * block_floats;
        const bool is_first = first + image == 0 && !acc;
        for (int64_t i = 0; i < block_floats; ++i) to[i] = is_first ? from[i] : to[i] + from[i];
      }
    });
  }
  pool.run(m.blocks(), [&](int64_t block, int) {
    for (int64_t c = 0; c < m.block_channels(block); ++c)
      for_tap_parts(m, [&](int64_t first, int64_t count) {
        float taps[kTapsAtOnce];
        for (int64_t t = 0; t < count; ++t)
          taps[t] = sums[block * block_floats + (first + t) * kChannels + c];
        depthwise_narrow(taps, dw.type.dtype, element_at(dw, (block * kChannels + c) * m.num_taps() + first),
                         count);
      });
  });
}

}  // namespace plimsoll::cpu
