// The Hadamard transform and the stochastic rounding of FP8's recipes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "numerics/fp8_recipes.h"

namespace plimsoll::numerics {
namespace {

constexpr uint32_t kSigns = 0xD7E8;  // bit i: element i is negated
constexpr size_t kBlock = 16;        // of nvfp4

/// The multiplier of an nvfp4 block, from the code of its scale: as nearest codes have it.
float encode_factor(std::byte scale, float tensor_scale) {
  float value = 0;
  decode(Format::kE4m3, {&scale, 1}, {&value, 1});
  return std::min(1.0F / (value * (1.0F / tensor_scale)), std::numeric_limits<float>::max());
}

}  // namespace

void random_hadamard(std::span<float> x) {
  PLIMSOLL_CHECK(x.size() % kHadamardRun == 0, "random_hadamard: a run is not whole");
  for (size_t begin = 0; begin < x.size(); begin += kHadamardRun) {
    std::array<float, kHadamardRun> v;
    for (size_t i = 0; i < v.size(); ++i) v[i] = (kSigns >> i & 1U) != 0 ? -x[begin + i] : x[begin + i];
    for (size_t half = 1; half < v.size(); half *= 2)
      for (size_t i = 0; i < v.size(); ++i) {
        if ((i & half) != 0) continue;
        const float a = v[i], b = v[i + half];
        v[i] = a + b;
        v[i + half] = a - b;
      }
    for (float& each : v) each *= 0.25F;
    std::array<std::byte, 2 * kHadamardRun> rounded;
    encode(Format::kBf16, v, rounded);
    decode(Format::kBf16, rounded, x.subspan(begin, kHadamardRun));
  }
}

void quantize_stochastically(const TensorScale& tensor, std::span<const float> row,
                             std::span<std::byte> codes, std::span<std::byte> scales,
                             const RandomKey& random) {
  quantize(Scheme::kNvfp4, tensor, row, 1, static_cast<int64_t>(row.size()), codes, scales);
  std::array<float, 1024> scaled;  // a multiple of a block, and of an even number of codes
  for (size_t begin = 0; begin < row.size(); begin += scaled.size()) {
    const size_t n = std::min(scaled.size(), row.size() - begin);
    for (size_t b = 0; b < n; b += kBlock) {
      const float factor = encode_factor(scales[(begin + b) / kBlock], tensor.scale);
      for (size_t i = b; i < std::min(n, b + kBlock); ++i) scaled[i] = row[begin + i] * factor;
    }
    RandomKey key = random;
    key.first_element += begin;
    encode(Format::kE2m1, std::span(scaled).first(n), codes.subspan(begin / 2, (n + 1) / 2),
           {.rounding = Rounding::kStochastic, .saturate = true, .random = key});
  }
}

}  // namespace plimsoll::numerics
