#include "images/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/units.h"

namespace plimsoll::images {
namespace {

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

// Zeros behind the last weights of a window make it a multiple of what is computed together.
int64_t most_weights(const AxisRange& range, Interpolation interpolation) {
  if (interpolation == Interpolation::kNearest) return kTapsTogether;
  return round_up(static_cast<int64_t>(std::ceil(support_of(range, interpolation))) * 2 + 1, kTapsTogether);
}

// An axis's weights while they are made.
struct NewWeights {
  AxisWeights axis;
  std::span<Window> windows;
  std::span<int16_t> halves;

  void set(int64_t i, int64_t tap, int32_t weight) const {
    const size_t high = axis.place_of(i, tap);
    halves[high] = static_cast<int16_t>(weight >> AxisWeights::kLowBits);
    halves[high + kTapsTogether] = static_cast<int16_t>(weight & ((1 << AxisWeights::kLowBits) - 1));
  }
};

// Pillow adds the scale up from output to output; torch multiplies, in single precision (nearest-exact).
void nearest_windows(const AxisRange& range, Backend backend, const NewWeights& made) {
  const double scale = scale_of(range);
  const auto single = static_cast<float>(range.input) / static_cast<float>(range.output);
  double position = scale * 0.5;
  for (int64_t i = 0; i < range.first_output + range.count; ++i, position += scale) {
    if (i < range.first_output) continue;
    const double input = backend == Backend::kPil ? position : (static_cast<float>(i) + 0.5F) * single;
    const int64_t nearest = std::min(static_cast<int64_t>(input), range.input - 1);
    made.windows[at(i - range.first_output)] = {static_cast<int32_t>(nearest), 1};
  }
  for (int64_t i = 0; i < range.count; ++i) made.set(i, 0, 1 << kPillowBits);
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
         arena_piece(2 * range.count * most * static_cast<int64_t>(sizeof(int16_t))) +
         arena_piece(most * static_cast<int64_t>(sizeof(double)));
}

AxisWeights axis_weights(const AxisRange& range, Interpolation interpolation, Backend backend, Arena& arena) {
  const int64_t stride = most_weights(range, interpolation);
  const std::span<Window> windows = arena.take<Window>(range.count);
  const std::span<int16_t> halves = arena.take<int16_t>(2 * range.count * stride);
  std::ranges::fill(halves, int16_t{0});
  NewWeights made{
      {.windows = windows, .halves = halves, .stride = stride, .bits = kPillowBits}, windows, halves};
  if (interpolation == Interpolation::kNearest) return nearest_windows(range, backend, made), made.axis;
  ExactWeights exact(range, interpolation, arena.take<double>(stride));
  if (backend == Backend::kTorch) made.axis.bits = torch_bits(range, exact);
  for (int64_t i = 0; i < range.count; ++i) {
    const std::span<const double> own = exact.of(range.first_output + i, windows[at(i)]);
    for (size_t tap = 0; tap < own.size(); ++tap)
      made.set(i, static_cast<int64_t>(tap), fixed_point(own[tap], made.axis.bits));
  }
  return made.axis;
}

}  // namespace plimsoll::images
