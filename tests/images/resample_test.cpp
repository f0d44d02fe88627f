// Resampling against sums as one writes them down, for windows of every length, and rows that turn around.
// Which weights these are, Pillow's pictures say (load_test).
#include "images/resample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/at.h"

namespace plimsoll::images {
namespace {

constexpr uint8_t kUntouched = 0xEE;

std::vector<uint8_t> noise(int64_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> noise(at(bytes));
  for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  return noise;
}

/// An axis and the memory of its weights.
struct Axis {
  Axis(const AxisRange& range, Interpolation interpolation, Backend backend)
      : memory(at(axis_bytes(range, interpolation) + kArenaAlignment)),
        arena(memory),
        weights(axis_weights(range, interpolation, backend, arena)) {}
  std::vector<std::byte> memory;
  Arena arena;
  AxisWeights weights;

  /// Output `i` of elements `stride` apart.
  [[nodiscard]] uint8_t output(int64_t i, const uint8_t* in, int64_t stride) const {
    int64_t sum = weights.bits == 0 ? 0 : int64_t{1} << (weights.bits - 1);
    for (int64_t tap = 0; tap < weights.windows[at(i)].count; ++tap)
      sum += int64_t{weights.weight(i, tap)} * in[(weights.windows[at(i)].first + tap) * stride];
    return static_cast<uint8_t>(std::clamp<int64_t>(sum >> weights.bits, 0, 255));
  }
};

template <typename Visit>
void for_axes(Visit visit) {
  const std::vector<AxisRange> ranges = {
      {1, 1, 0, 1},     {1, 7, 0, 7},    {2, 3, 0, 3},     {5, 8, 0, 8},   {40, 40, 0, 40}, {217, 224, 0, 64},
      {300, 224, 3, 9}, {50, 16, 0, 16}, {500, 64, 10, 5}, {700, 9, 0, 9}, {9, 90, 1, 88}};
  for (const AxisRange& range : ranges)
    for (const Interpolation interpolation : {Interpolation::kBilinear, Interpolation::kBicubic,
                                              Interpolation::kLanczos, Interpolation::kNearest})
      for (const Backend backend : {Backend::kPil, Backend::kTorch})
        visit(range, Axis(range, interpolation, backend));
}

TEST(Resample, ARowIsTheSumsOfItsWindows) {
  for_axes([](const AxisRange& range, const Axis& axis) {
    const std::vector<uint8_t> in = noise(3 * range.input + kRowSlack, 3);
    std::vector<uint8_t> out(at(3 * range.count + 16), kUntouched), expected = out;
    resample_row(axis.weights, in.data(), out.data());
    for (int64_t i = 0; i < 3 * range.count; ++i) expected[at(i)] = axis.output(i / 3, in.data() + i % 3, 3);
    ASSERT_EQ(out, expected) << range.input << " to " << range.output;
  });
}

TEST(Resample, AColumnIsTheSumsOfItsWindow) {
  for_axes([](const AxisRange& range, const Axis& axis) {
    for (const int64_t bytes : {1, 15, 33, 100, 672}) {
      const std::vector<uint8_t> in = noise(range.input * bytes, 4);
      std::vector<uint8_t> out(at(bytes + 64), kUntouched), expected = out;
      const int64_t i = range.count / 2;
      for (int64_t x = 0; x < bytes; ++x) expected[at(x)] = axis.output(i, in.data() + x, bytes);
      resample_column(axis.weights, i, in.data() + axis.weights.windows[at(i)].first * bytes, bytes,
                      out.data());
      ASSERT_EQ(out, expected) << range.input << " to " << range.output << ", " << bytes << " bytes";
    }
  });
}

TEST(Resample, AMirroredRowHasItsPixelsInTheOppositeOrder) {
  for (int64_t width = 1; width <= 80; ++width) {
    const std::vector<uint8_t> row = noise(3 * width + 32, static_cast<unsigned>(width));
    std::vector<uint8_t> mirrored = row, expected = row;
    for (int64_t i = 0; i < 3 * width; ++i)
      expected[at(16 + i)] = row[at(16 + 3 * (width - 1 - i / 3) + i % 3)];
    mirror_row(mirrored.data() + 16, width);
    ASSERT_EQ(mirrored, expected) << width;
  }
}

}  // namespace
}  // namespace plimsoll::images
