// A block's largest magnitude is that of its bits, its scale follows from it, and its codes from both.
#include "numerics/bf16_blocks.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/bf16_blocks.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>

#include "base/check.h"
#include "numerics/bf16_codes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

#if HWY_TARGET <= HWY_AVX3
/// Codes of a block of kWidth numbers and the field of its scale; false where bits alone do not decide.
template <size_t kWidth>
HWY_INLINE bool quantize_block(const uint16_t* x, uint8_t* codes, uint32_t& field) {
  constexpr size_t kVectors = kWidth / kBf16Lanes;
  __m512i numbers[kVectors];
  __m512i least = _mm512_set1_epi16(-1);
  HWY_UNROLL(4)
  for (size_t k = 0; k < kVectors; ++k) {
    numbers[k] = _mm512_loadu_si512(x + k * kBf16Lanes);
    least = _mm512_min_epu16(least, complements(numbers[k]));
  }
  constexpr uint32_t kInfinity = 0x7F80;
  const uint32_t amax = largest_bf16(least);
  field = ((amax + 31) >> 7) - 8;
  if (HWY_UNLIKELY(amax != 0 && (field - kLeastField > kMostField - kLeastField || amax >= kInfinity)))
    return false;
  const int move = amax == 0 ? -120 * 128 : (7 - static_cast<int>(field)) * 128;
  if (amax == 0) field = 0;
  const __m512i moves = _mm512_set1_epi16(static_cast<short>(move));
  HWY_UNROLL(4)
  for (size_t k = 0; k < kVectors; ++k)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k * kBf16Lanes),
                        _mm512_cvtepi16_epi8(codes_of_bf16(numbers[k], moves)));
  return true;
}
#endif

bool quantize_row([[maybe_unused]] Scheme scheme, [[maybe_unused]] const uint16_t* x,
                  [[maybe_unused]] size_t n, [[maybe_unused]] uint8_t* codes,
                  [[maybe_unused]] uint8_t* scales) {
#if HWY_TARGET <= HWY_AVX3
  uint32_t field = 0;
  if (scheme == Scheme::kMxfp8) {
    for (size_t i = 0; i < n; i += 32, ++scales) {
      if (!quantize_block<32>(x + i, codes + i, field)) return false;
      *scales = static_cast<uint8_t>(field);
    }
    return true;
  }
  for (size_t i = 0; i < n; i += 128, scales += 4) {
    if (!quantize_block<128>(x + i, codes + i, field)) return false;
    const uint32_t scale = (field == 0 ? 127 : field) << 23;
    std::memcpy(scales, &scale, sizeof scale);
  }
  return true;
#else
  return false;
#endif
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(quantize_row);

}  // namespace

bool has_blocks_of_bf16(Scheme scheme) {
  return scheme == Scheme::kMxfp8 || scheme == Scheme::kFp8Block1x128;
}

bool quantize_bf16_row(Scheme scheme, std::span<const uint16_t> row, std::byte* codes, std::byte* scales) {
  PLIMSOLL_CHECK(has_blocks_of_bf16(scheme), "blocks of bf16: scheme");
  if (row.size() % static_cast<size_t>(info(scheme).block_cols) != 0) return false;
  return HWY_DYNAMIC_DISPATCH(quantize_row)(scheme, row.data(), row.size(), reinterpret_cast<uint8_t*>(codes),
                                            reinterpret_cast<uint8_t*>(scales));
}

}  // namespace plimsoll::numerics
#endif
