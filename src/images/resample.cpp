#include "images/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::images {
namespace {

constexpr int kPillowBits = 22;

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys's cubic convolution with a = -1/2, evaluated in Pillow's order of operations.
double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Filter {
  double (*at)(double);
  double support;
};

Filter filter_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBicubic:
      return {bicubic, 2.0};
    case Interpolation::kLanczos:
      return {lanczos, 3.0};
    default:
      return {bilinear, 1.0};
  }
}

// Pillow passes the box of the input as floats.
double scale_of(const AxisRange& range) {
  return static_cast<double>(static_cast<float>(range.input)) / static_cast<double>(range.output);
}

double support_of(const AxisRange& range, Interpolation interpolation) {
  return filter_of(interpolation).support * std::max(scale_of(range), 1.0);
}

int64_t most_weights(const AxisRange& range, Interpolation interpolation) {
  if (interpolation == Interpolation::kNearest) return 1;
  return static_cast<int64_t>(std::ceil(support_of(range, interpolation))) * 2 + 1;
}

// Pillow adds the scale up from output to output; torch multiplies, in single precision (nearest-exact).
void nearest_windows(const AxisRange& range, Backend backend, std::span<Window> windows,
                     std::span<int32_t> weights) {
  const double scale = scale_of(range);
  const auto single = static_cast<float>(range.input) / static_cast<float>(range.output);
  double position = scale * 0.5;
  for (int64_t i = 0; i < range.first_output + range.count; ++i, position += scale) {
    if (i < range.first_output) continue;
    const double input = backend == Backend::kPil ? position : (static_cast<float>(i) + 0.5F) * single;
    const int64_t nearest = std::min(static_cast<int64_t>(input), range.input - 1);
    windows[at(i - range.first_output)] = {static_cast<int32_t>(nearest), 1};
  }
  std::ranges::fill(weights, 1 << kPillowBits);
}

int32_t fixed_point(double weight, int bits) {
  const double one = 1 << bits;
  return static_cast<int32_t>(weight < 0 ? -0.5 + weight * one : 0.5 + weight * one);
}

// The weights of one output after the other, in double precision.
class ExactWeights {
 public:
  ExactWeights(const AxisRange& range, Interpolation interpolation, std::span<double> memory)
      : range_(range),
        filter_(filter_of(interpolation)),
        scale_(scale_of(range)),
        support_(support_of(range, interpolation)),
        inverse_scale_(1.0 / std::max(scale_, 1.0)),
        weights_(memory) {}

  // Of output `i` of the whole axis; valid until the next call.
  std::span<const double> of(int64_t i, Window& window) {
    const double center = (static_cast<double>(i) + 0.5) * scale_;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support_ + 0.5), 0);
    const int64_t count = std::min(static_cast<int64_t>(center + support_ + 0.5), range_.input) - first;
    window = {static_cast<int32_t>(first), static_cast<int32_t>(count)};
    double sum = 0;
    for (int64_t x = 0; x < count; ++x) {
      weights_[at(x)] = filter_.at((static_cast<double>(x + first) - center + 0.5) * inverse_scale_);
      sum += weights_[at(x)];
    }
    for (int64_t x = 0; x < count && sum != 0.0; ++x) weights_[at(x)] /= sum;
    return weights_.first(at(count));
  }

 private:
  AxisRange range_;
  Filter filter_;
  double scale_, support_, inverse_scale_;
  std::span<double> weights_;
};

// As many bits as bring the axis's largest weight to less than 2^15.
int torch_bits(const AxisRange& range, ExactWeights& exact) {
  double most = 0;
  Window window;
  for (int64_t i = 0; i < range.output; ++i)
    for (const double weight : exact.of(i, window)) most = std::max(most, weight);
  int bits = 0;
  while (bits < kPillowBits && static_cast<int>(0.5 + most * (1 << (bits + 1))) < 1 << 15) ++bits;
  return bits;
}

}  // namespace

int64_t axis_bytes(const AxisRange& range, Interpolation interpolation) {
  const int64_t most = most_weights(range, interpolation);
  return arena_piece(range.count * static_cast<int64_t>(sizeof(Window))) +
         arena_piece(range.count * most * static_cast<int64_t>(sizeof(int32_t))) +
         arena_piece(most * static_cast<int64_t>(sizeof(double)));
}

AxisWeights axis_weights(const AxisRange& range, Interpolation interpolation, Backend backend, Arena& arena) {
  const int64_t stride = most_weights(range, interpolation);
  const std::span<Window> windows = arena.take<Window>(range.count);
  const std::span<int32_t> weights = arena.take<int32_t>(range.count * stride);
  AxisWeights axis{.windows = windows, .weights = weights, .stride = stride, .bits = kPillowBits};
  if (interpolation == Interpolation::kNearest)
    return nearest_windows(range, backend, windows, weights), axis;
  ExactWeights exact(range, interpolation, arena.take<double>(stride));
  if (backend == Backend::kTorch) axis.bits = torch_bits(range, exact);
  for (int64_t i = 0; i < range.count; ++i) {
    const std::span<int32_t> fixed = weights.subspan(at(i * stride), at(stride));
    const std::span<const double> own = exact.of(range.first_output + i, windows[at(i)]);
    std::ranges::fill(fixed, 0);
    std::ranges::transform(own, fixed.begin(), [&](double weight) { return fixed_point(weight, axis.bits); });
  }
  return axis;
}

namespace {

uint8_t clipped(int32_t sum, int bits) { return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255)); }

// What rounds to the nearest when the bits behind the point are cut off.
int32_t half(const AxisWeights& axis) { return axis.bits == 0 ? 0 : 1 << (axis.bits - 1); }

}  // namespace

void resample_row(const AxisWeights& axis, const uint8_t* in, uint8_t* out) {
  const int32_t* weights = axis.weights.data();
  for (const Window& window : axis.windows) {
    const uint8_t* pixel = in + int64_t{3} * window.first;
    int32_t r = half(axis), g = r, b = r;
    for (int32_t i = 0; i < window.count; ++i, pixel += 3) {
      r += pixel[0] * weights[i];
      g += pixel[1] * weights[i];
      b += pixel[2] * weights[i];
    }
    out[0] = clipped(r, axis.bits);
    out[1] = clipped(g, axis.bits);
    out[2] = clipped(b, axis.bits);
    out += 3;
    weights += axis.stride;
  }
}

void resample_column(const AxisWeights& axis, int64_t i, const uint8_t* rows, int64_t bytes, uint8_t* out) {
  constexpr int64_t kBlock = 256;  // sums that stay in the first-level cache
  int32_t sums[kBlock];
  const int32_t* weights = axis.weights.data() + i * axis.stride;
  for (int64_t begin = 0; begin < bytes; begin += kBlock) {
    const int64_t count = std::min(kBlock, bytes - begin);
    std::fill_n(sums, count, half(axis));
    const uint8_t* row = rows + begin;
    for (int32_t tap = 0; tap < axis.windows[at(i)].count; ++tap, row += bytes)
      for (int64_t x = 0; x < count; ++x) sums[x] += row[x] * weights[tap];
    for (int64_t x = 0; x < count; ++x) out[begin + x] = clipped(sums[x], axis.bits);
  }
}

}  // namespace plimsoll::images
