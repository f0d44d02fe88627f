#include "numerics/bitsandbytes.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/units.h"
#include "numerics/convert.h"
#include "numerics/dynamic_map.h"

namespace plimsoll::numerics::bitsandbytes {
namespace {

constexpr float kLeastAbsmax = 1e-38F;
constexpr int kSteps = 65536;

/// Values in ascending order, their codes, and the midpoints between them.
struct Ordered {
  std::array<float, 16> values = {};
  std::array<uint8_t, 16> codes = {};
  std::array<float, 15> bounds = {};
};

Ordered make_ordered(FourBit type) {
  // Of FP4's two zeros code 0 stands first, then 8: 0 itself is 0, what is a little more is 8.
  constexpr std::array<uint8_t, 16> kFp4Order = {11, 10, 13, 12, 15, 14, 9, 0, 8, 1, 6, 7, 4, 5, 2, 3};
  Ordered ordered;
  for (size_t i = 0; i < 16; ++i) {
    ordered.codes[i] = type == FourBit::kNf4 ? static_cast<uint8_t>(i) : kFp4Order[i];
    ordered.values[i] = values_of(type)[ordered.codes[i]];
  }
  for (size_t i = 0; i < 15; ++i) ordered.bounds[i] = (ordered.values[i] + ordered.values[i + 1]) / 2.0F;
  return ordered;
}

const Ordered& ordered_of(FourBit type) {
  static const Ordered kOrdered[2] = {make_ordered(FourBit::kNf4), make_ordered(FourBit::kFp4)};
  return kOrdered[static_cast<size_t>(type)];
}

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

void quantize_4bit(FourBit type, std::span<const float> x, std::span<std::byte> codes,
                   std::span<float> absmax) {
  const auto n = static_cast<int64_t>(x.size());
  PLIMSOLL_CHECK(static_cast<int64_t>(codes.size()) == ceil_div(n, 2) &&
                 static_cast<int64_t>(absmax.size()) == ceil_div(n, kBlock));
  const Ordered& ordered = ordered_of(type);
  for (size_t b = 0; b < absmax.size(); ++b) {
    const size_t first = b * kBlock;
    const auto block = x.subspan(first, std::min<size_t>(kBlock, x.size() - first));
    const bool whole = block.size() == kBlock;
    const float most = largest(block), divisor = std::max(most, kLeastAbsmax);
    absmax[b] = whole ? most : divisor;
    const float inverse = 1.0F / divisor;
    std::array<float, kBlock> scaled = {};
    for (size_t i = 0; i < block.size(); ++i)
      scaled[i] = std::clamp(whole ? block[i] * inverse : block[i] / divisor, -1.0F, 1.0F);
    std::array<int32_t, kBlock> place = {};
    for (const float bound : ordered.bounds)
      for (size_t i = 0; i < kBlock; ++i) place[i] += scaled[i] > bound ? 1 : 0;
    const auto code = [&](size_t i) { return unsigned{ordered.codes[static_cast<size_t>(place[i])]}; };
    for (size_t i = 0; i < block.size(); i += 2)
      codes[(first + i) / 2] = static_cast<std::byte>(code(i) << 4U | code(i + 1));
  }
}

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
