#include "numerics/dynamic_map.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace plimsoll::numerics {
namespace {

constexpr int kDecades = 7;

/// Point i of `n` evenly spaced ones from 0.1 to 1, as torch.linspace has it: from the nearer end, in one
/// rounding.
float point(int i, int n) {
  const float first = 0.1F, step = (1.0F - first) / static_cast<float>(n - 1);
  return i < n / 2 ? std::fma(step, static_cast<float>(i), first)
                   : std::fma(-step, static_cast<float>(n - 1 - i), 1.0F);
}

/// `bounds`: of DynamicMap::halves.
DynamicMap::Pieces make_pieces(bool is_signed, const std::vector<float>& bounds) {
  DynamicMap::Pieces pieces;
  pieces.end.fill(std::numeric_limits<float>::infinity());
  int first = 1;  // magnitude of the piece
  for (int decade = 0; decade < kDecades; ++decade) {
    const auto at = static_cast<size_t>(decade + 1);
    const int count = 1 << (decade + (is_signed ? 0 : 1));
    const double scale = std::pow(10.0, decade - (kDecades - 1)), slope = count / (0.9 * scale);
    pieces.end[at - 1] = bounds[static_cast<size_t>(first - 1)];
    pieces.slope[at] = static_cast<float>(slope);
    pieces.offset[at] = static_cast<float>(first - 0.5 - 0.1 * scale * slope);
    first += count;
    pieces.last[at] = static_cast<float>(first - 1);
  }
  pieces.end[kDecades] = bounds.back();
  pieces.offset[kDecades + 1] = pieces.last[kDecades + 1] = static_cast<float>(first);
  for (int octave = -23; octave <= 0; ++octave) {
    const float least = std::ldexp(1.0F, octave);
    const auto piece = std::lower_bound(pieces.end.begin(), pieces.end.end(), least) - pieces.end.begin();
    pieces.of_octave[static_cast<size_t>((octave + 127) % 32)] = static_cast<int32_t>(piece);
  }
  return pieces;
}

DynamicMap make_map(bool is_signed) {
  std::vector<float> values = {0.0F, 1.0F};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int points = (1 << (decade + (is_signed ? 0 : 1))) + 1;
    const auto scale = static_cast<float>(std::pow(10.0, decade - (kDecades - 1)));
    for (int i = 0; i + 1 < points; ++i) {
      const float value = scale * ((point(i, points) + point(i + 1, points)) / 2.0F);
      values.push_back(value);
      if (is_signed) values.push_back(-value);
    }
  }
  std::sort(values.begin(), values.end());
  DynamicMap map;
  map.is_signed = is_signed;
  std::copy(values.begin(), values.end(), map.values.begin());
  map.zero = static_cast<uint8_t>(std::find(values.begin(), values.end(), 0.0F) - values.begin());
  const size_t count = values.size() - map.zero;
  std::vector<float> bounds;  // magnitude k + 1 begins behind bound k
  for (size_t k = 0; k + 1 < count; ++k)
    bounds.push_back((map.values[map.zero + k] + map.values[map.zero + k + 1]) / 2.0F);
  map.pieces = make_pieces(is_signed, bounds);
  for (int32_t half = 0; half < DynamicMap::kHalves; ++half) {
    const int32_t least = (half + DynamicMap::kFirstHalf) << 16;
    const auto next = std::lower_bound(bounds.begin(), bounds.end(), std::bit_cast<float>(least));
    const int32_t bound = next == bounds.end() ? 0 : std::bit_cast<int32_t>(*next);
    const int32_t lower = bound >> 16 == least >> 16 ? bound & 0xFFFF : 0xFFFF;
    map.halves[static_cast<size_t>(half)] = static_cast<int32_t>(next - bounds.begin()) | lower << 8;
  }
  return map;
}

}  // namespace

uint8_t DynamicMap::code(float x) const {
  const auto magnitude = std::bit_cast<int32_t>(std::abs(x));
  const int32_t half = std::clamp((magnitude >> 16) - kFirstHalf, 0, kHalves - 1);
  const int32_t entry = halves[static_cast<size_t>(half)];
  const int32_t k = (entry & 0xFF) + ((magnitude & 0xFFFF) > entry >> 8 ? 1 : 0);
  return static_cast<uint8_t>(is_signed && x < 0 ? zero - std::min<int32_t>(k, zero) : zero + k);
}

const DynamicMap& signed_dynamic_map() {
  static const DynamicMap kMap = make_map(true);
  return kMap;
}

const DynamicMap& unsigned_dynamic_map() {
  static const DynamicMap kMap = make_map(false);
  return kMap;
}

}  // namespace plimsoll::numerics
