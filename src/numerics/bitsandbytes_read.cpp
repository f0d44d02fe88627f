// Decoding of bitsandbytes tensors for file readers: the tables, and what codes stand for.
#include "numerics/bitsandbytes.h"
#include "numerics/dynamic_map.h"
#include "numerics/formats.h"

namespace plimsoll::numerics::bitsandbytes {
namespace {

std::array<float, 16> fp4_values() {
  constexpr float kTwelfths[8] = {0.0F, 0.0625F, 8.0F, 12.0F, 4.0F, 6.0F, 2.0F, 3.0F};
  std::array<float, 16> values = {};
  for (size_t i = 0; i < 8; ++i) {
    values[i] = kTwelfths[i] / 12.0F;
    values[i + 8] = i == 0 ? 0.0F : -values[i];
  }
  return values;
}

}  // namespace

const std::array<float, 16>& values_of(FourBit type) {
  static const std::array<float, 16> kNf4 = std::to_array(kNf4Values), kFp4 = fp4_values();
  return type == FourBit::kNf4 ? kNf4 : kFp4;
}

std::vector<float> dequantize_absmax(const Nested& nested) {
  const auto& map = signed_dynamic_map().values;
  std::vector<float> absmax(nested.codes.size());
  for (size_t i = 0; i < absmax.size(); ++i) {
    const float scaled = map[nested.codes[i]] * nested.absmax[i / kNestedBlock];
    absmax[i] = scaled + nested.offset;
  }
  return absmax;
}

}  // namespace plimsoll::numerics::bitsandbytes
