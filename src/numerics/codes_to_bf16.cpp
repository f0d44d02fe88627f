// A code's bits move to where bf16 has them, and the scale, a power of two, is added to the exponent. What is
// below the format's normal numbers comes from a table of 16 bytes; the few blocks whose numbers bf16 would
// hold as infinities or subnormals, and scales that are no powers of two, are multiplied one by one.
#include "numerics/codes_to_bf16.h"

#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/codes_to_bf16.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#ifndef PLIMSOLL_NUMERICS_CODES_TO_BF16_ONCE
#define PLIMSOLL_NUMERICS_CODES_TO_BF16_ONCE
namespace plimsoll::numerics {

/// Of a format of eight bits: kSpecial: the first magnitude that is no number; beyond kInfinity is NaN.
template <int kM, int kFormatBias, uint16_t kFirstSpecial, uint16_t kInfinityCode>
struct CodeBits {
  static constexpr int kUp = 7 - kM;
  static constexpr uint16_t kMove = (127 - kFormatBias) << 7;
  static constexpr uint16_t kLeastNormal = 1 << kM;
  static constexpr uint16_t kSpecial = kFirstSpecial, kInfinity = kInfinityCode;
  static constexpr int kLeastExponent = 127 + 1 - kFormatBias - kM;  ///< in bf16, of the least number

  /// A magnitude in bf16.
  static constexpr uint16_t bf16(uint32_t m) {
    if (m >= kSpecial) return m > kInfinity ? 0x7FC0 : 0x7F80;
    if (m >= kLeastNormal) return static_cast<uint16_t>((m << kUp) + kMove);
    if (m == 0) return 0;
    const int top = std::bit_width(m) - 1;
    return static_cast<uint16_t>(static_cast<uint32_t>(kLeastExponent + top) << 7 | (m << (7 - top) & 0x7FU));
  }
  /// Below the normal numbers: lower bytes, then upper ones.
  static constexpr std::array<uint8_t, 16> small_bytes() {
    std::array<uint8_t, 16> bytes{};
    for (uint32_t m = 0; m < kLeastNormal; ++m) {
      bytes[m] = static_cast<uint8_t>(bf16(m) & 0xFF);
      bytes[8 + m] = static_cast<uint8_t>(bf16(m) >> 8);
    }
    return bytes;
  }
};
using E4m3Bits = CodeBits<3, 7, 0x7F, 0x7E>;
using E5m2Bits = CodeBits<2, 15, 0x7C, 0x7C>;

/// How far exponents move, where all numbers of the format stay normal ones in bf16.
inline std::optional<int> exponent_shift(float scale) {
  const auto bits = std::bit_cast<uint32_t>(scale);
  const int shift = static_cast<int>(bits >> 23) - 127;
  constexpr int kDown = E4m3Bits::kLeastExponent - 1, kUp = 254 - (E4m3Bits::bf16(0x7E) >> 7);
  if ((bits & 0x807FFFFFU) != 0 || shift < -kDown || shift > kUp) return std::nullopt;
  return shift;
}

}  // namespace plimsoll::numerics
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The whole vectors of n codes; how many elements they are.
template <class S>
HWY_INLINE size_t move_vectors([[maybe_unused]] const uint8_t* codes, [[maybe_unused]] size_t n,
                               [[maybe_unused]] int shift, [[maybe_unused]] uint16_t* out) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  alignas(16) static constexpr std::array<uint8_t, 16> kSmall = S::small_bytes();
  const hn::ScalableTag<uint16_t> d;
  const hn::Repartition<uint8_t, decltype(d)> bytes;
  const hn::Rebind<uint8_t, decltype(d)> half;
  const auto table = hn::LoadDup128(bytes, kSmall.data());
  const auto moved_by = hn::Set(d, static_cast<uint16_t>(shift * 128));
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto code = hn::PromoteTo(d, hn::LoadU(half, codes + i));
    const auto m = hn::And(code, hn::Set(d, 0x7F));
    const auto places = hn::Or(hn::Or(m, hn::ShiftLeft<8>(m)), hn::Set(d, 0x0800));
    const auto small = hn::BitCast(d, hn::TableLookupBytes(table, hn::BitCast(bytes, places)));
    const auto normal = hn::Add(hn::ShiftLeft<S::kUp>(m), hn::Set(d, S::kMove));
    const auto number =
        hn::Add(hn::IfThenElse(hn::Lt(m, hn::Set(d, S::kLeastNormal)), small, normal), moved_by);
    const auto special =
        hn::IfThenElse(hn::Gt(m, hn::Set(d, S::kInfinity)), hn::Set(d, 0x7FC0), hn::Set(d, 0x7F80));
    const auto finite = hn::IfThenElse(hn::Lt(m, hn::Set(d, S::kSpecial)), number, special);
    const auto magnitude = hn::IfThenZeroElse(hn::Eq(m, hn::Zero(d)), finite);
    hn::StoreU(hn::Or(magnitude, hn::ShiftLeft<8>(hn::Xor(code, m))), d, out + i);
  }
#endif
  return i;
}

/// n codes of a block; `shift`: how far its scale moves exponents, where it does no more.
template <class S>
HWY_INLINE void move_block(const uint8_t* codes, size_t n, std::optional<int> shift, float scale,
                           uint16_t* out) {
  size_t i = shift ? move_vectors<S>(codes, n, *shift, out) : 0;
  for (; i < n; ++i) {
    const uint32_t sign = static_cast<uint32_t>(codes[i] >> 7) << 15;
    const float number = std::bit_cast<float>((S::bf16(codes[i] & 0x7FU) | sign) << 16);
    const auto product = std::bit_cast<uint32_t>(number * scale);
    const bool is_nan = (product & 0x7FFFFFFFU) > 0x7F800000U;
    const uint32_t rounded = is_nan ? product | 0x00400000U : product + 0x7FFFU + (product >> 16 & 1U);
    out[i] = static_cast<uint16_t>(rounded >> 16);
  }
}

float scale_of(Scheme scheme, const uint8_t* scales, int64_t block) {
  if (scheme == Scheme::kMxfp8) {
    const auto code = static_cast<uint32_t>(scales[block]);
    return std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23);
  }
  float scale = 1;
  std::memcpy(&scale, scales + 4 * block, sizeof scale);
  return scale;
}

void row_to_bf16(Scheme scheme, const uint8_t* codes, const uint8_t* scales, int64_t col, size_t n,
                 uint16_t* out) {
  const SchemeInfo& s = info(scheme);
  if (s.block_cols == 0) {
    if (s.codes == Format::kE5m2) return move_block<E5m2Bits>(codes + col, n, 0, 1, out);
    return move_block<E4m3Bits>(codes + col, n, 0, 1, out);
  }
  for (size_t i = 0; i < n;) {
    const int64_t at = col + static_cast<int64_t>(i), block = at / s.block_cols;
    const size_t count = std::min(n - i, static_cast<size_t>((block + 1) * s.block_cols - at));
    const float scale = scale_of(scheme, scales, block);
    move_block<E4m3Bits>(codes + at, count, exponent_shift(scale), scale, out + i);
    i += count;
  }
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(row_to_bf16);

}  // namespace

bool has_fp8_codes(Scheme scheme) {
  const Format codes = info(scheme).codes;
  return codes == Format::kE4m3 || codes == Format::kE5m2;
}

void fp8_row_to_bf16(Scheme scheme, const std::byte* codes, const std::byte* scales, int64_t col,
                     std::span<uint16_t> out) {
  HWY_DYNAMIC_DISPATCH(row_to_bf16)
  (scheme, reinterpret_cast<const uint8_t*>(codes), reinterpret_cast<const uint8_t*>(scales), col, out.size(),
   out.data());
}

}  // namespace plimsoll::numerics
#endif
