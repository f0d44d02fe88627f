#include "numerics/bitsandbytes.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "numerics/convert.h"
#include "numerics/dynamic_map.h"

namespace plimsoll::numerics::bitsandbytes {
namespace {

constexpr int kSteps = 65536;

float largest(std::span<const float> x) {
  float most = 0;
  for (const float v : x) most = std::max(most, std::abs(v));
  return most;
}

/// By step of [-1, 1]: the code of the value whose midpoints enclose it.
std::vector<uint8_t> make_steps() {
  const auto& values = signed_dynamic_map().values;
  std::vector<uint8_t> steps(kSteps);
  size_t code = 0;
  for (int i = 0; i < kSteps; ++i) {
    const float value = -1.0F + (2.0F * static_cast<float>(i)) / static_cast<float>(kSteps - 1);
    while (code < 255 && 0.5F * (values[code] + values[code + 1]) < value) ++code;
    steps[static_cast<size_t>(i)] = static_cast<uint8_t>(code);
  }
  return steps;
}

}  // namespace

Nested quantize_absmax(std::span<const float> absmax) {
  double sum = 0;
  for (const float v : absmax) sum += v;
  const double mean = absmax.empty() ? 0.0 : sum / static_cast<double>(absmax.size());
  return quantize_absmax(absmax, static_cast<float>(mean));
}

Nested quantize_absmax(std::span<const float> absmax, float offset) {
  static const std::vector<uint8_t> kCodes = make_steps();
  Nested nested{.offset = offset, .codes = std::vector<uint8_t>(absmax.size()), .absmax = {}};
  std::array<float, kNestedBlock> block = {};
  for (size_t first = 0; first < absmax.size(); first += kNestedBlock) {
    const size_t count = std::min<size_t>(kNestedBlock, absmax.size() - first);
    for (size_t i = 0; i < count; ++i) block[i] = absmax[first + i] - offset;
    const float most = largest(std::span(block).first(count));
    nested.absmax.push_back(most);
    if (most == 0) continue;
    const float inverse = 1.0F / most;
    for (size_t i = 0; i < count; ++i) {
      const float v = std::clamp(block[i] * inverse, -1.0F, 1.0F);
      const float half = (v + 1.0F) * 0.5F;
      nested.codes[first + i] = kCodes[static_cast<size_t>(half * static_cast<float>(kSteps - 1) + 0.5F)];
    }
  }
  return nested;
}

float quantize_int8_row(std::span<const float> x, std::span<int8_t> codes) {
  PLIMSOLL_CHECK(x.size() == codes.size());
  std::vector<std::byte> halves(
      static_cast<size_t>(encoded_bytes(Format::kFp16, static_cast<int64_t>(x.size()))));
  std::vector<float> row(x.size());
  encode(Format::kFp16, x, halves);
  decode(Format::kFp16, halves, row);
  const float most = largest(row);
  PLIMSOLL_CHECK(std::isfinite(most), "a row that fp16 does not hold");
  const float scale = most == 0 ? 0.0F : 1.0F / most * 127.0F;  // PyTorch divides a number by a tensor so
  for (size_t i = 0; i < row.size(); ++i) codes[i] = static_cast<int8_t>(std::nearbyint(row[i] * scale));
  return most;
}

}  // namespace plimsoll::numerics::bitsandbytes
