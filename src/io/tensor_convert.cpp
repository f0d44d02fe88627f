// Conversion in blocks: a block is copied to a small array first, so that the source may overlap the
// destination and the loop's trip count is constant, which is what makes g++ vectorise it at -O2.
#include "io/tensor_convert.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace plimsoll::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "payloads are little-endian, as this code's target");

constexpr int64_t kConvertBlock = 512;

/// bf16 is the upper half of an f32.
float from_bf16(uint16_t h) { return std::bit_cast<float>(static_cast<uint32_t>(h) << 16); }

/// All ones where a < b, else zero; both below 2^31. Signed, because the baseline compares no unsigned lanes.
uint32_t mask_less(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(-static_cast<int32_t>(static_cast<int32_t>(a) < static_cast<int32_t>(b)));
}

/// f16 1/5/10 to f32 1/8/23, without a branch. The exponent is moved by 112 (127 - 15), twice for infinities
/// and NaNs. A subnormal m * 2^-24 is made from (1 + m/1024) * 2^-14 by taking the 2^-14 off again, which is
/// exact.
float from_f16(uint16_t h) {
  constexpr uint32_t kOne = 1U << 23, kMove = 112 * kOne;
  const uint32_t magnitude = (h & 0x7fffU) << 13;
  const uint32_t normal = magnitude + kMove + (kMove & ~mask_less(magnitude, 31 * kOne));
  const auto subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude + kMove + kOne) - 0x1p-14F);
  const uint32_t is_subnormal = mask_less(magnitude, kOne);
  return std::bit_cast<float>((subnormal & is_subnormal) | (normal & ~is_subnormal) | (h & 0x8000U) << 16);
}

float from_f64(double d) { return static_cast<float>(d); }

template <typename Stored, float (*kConvert)(Stored)>
void convert_blocks(const std::byte* from, float* to, int64_t n) {
  Stored stored[kConvertBlock];
  float converted[kConvertBlock];
  for (int64_t i = 0; i < n; i += kConvertBlock) {
    const auto count = static_cast<size_t>(std::min(kConvertBlock, n - i));
    std::memcpy(stored, from + i * static_cast<int64_t>(sizeof(Stored)), count * sizeof(Stored));
    if (count < kConvertBlock) std::fill(stored + count, stored + kConvertBlock, Stored{});
    for (int64_t k = 0; k < kConvertBlock; ++k) converted[k] = kConvert(stored[k]);
    std::memcpy(to + i, converted, count * sizeof(float));
  }
}

}  // namespace

std::optional<FloatFormat> float_format(std::string_view dtype) {
  if (dtype == "F32") return FloatFormat::kF32;
  if (dtype == "F16") return FloatFormat::kF16;
  if (dtype == "BF16") return FloatFormat::kBf16;
  if (dtype == "F64") return FloatFormat::kF64;
  return std::nullopt;
}

void convert_to_f32(FloatFormat format, const std::byte* from, float* to, int64_t n) {
  if (n == 0) return;
  switch (format) {
    case FloatFormat::kF32:
      std::memmove(to, from, static_cast<size_t>(n) * sizeof(float));
      return;
    case FloatFormat::kF16:
      return convert_blocks<uint16_t, from_f16>(from, to, n);
    case FloatFormat::kBf16:
      return convert_blocks<uint16_t, from_bf16>(from, to, n);
    case FloatFormat::kF64:
      return convert_blocks<double, from_f64>(from, to, n);
  }
}

}  // namespace plimsoll::io
