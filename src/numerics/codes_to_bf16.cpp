// A code's bits move to where bf16 has them, and the scale, a power of two, is added to the exponent. What is
// below the format's normal numbers comes from a table; infinities and NaN, the few blocks whose numbers bf16
// would hold as infinities or subnormals, and scales that are no powers of two, are multiplied one by one.
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
  static constexpr std::array<uint16_t, 32> small_numbers() {
    std::array<uint16_t, 32> numbers{};
    for (uint32_t m = 0; m < kLeastNormal; ++m) numbers[m] = bf16(m);
    return numbers;
  }
};
using E4m3Bits = CodeBits<3, 7, 0x7F, 0x7E>;
using E5m2Bits = CodeBits<2, 15, 0x7C, 0x7C>;

/// How far exponents move by a power of two of that exponent field, where all numbers of the format stay
/// normal ones in bf16.
inline std::optional<int> exponent_shift(uint32_t field) {
  const int shift = static_cast<int>(field) - 127;
  constexpr int kDown = E4m3Bits::kLeastExponent - 1, kUp = 254 - (E4m3Bits::bf16(0x7E) >> 7);
  return shift < -kDown || shift > kUp ? std::nullopt : std::optional(shift);
}
inline std::optional<int> exponent_shift_of(float scale) {
  const auto bits = std::bit_cast<uint32_t>(scale);
  return (bits & 0x807FFFFFU) != 0 ? std::nullopt : exponent_shift(bits >> 23);
}

}  // namespace plimsoll::numerics
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;
using U16 = hn::ScalableTag<uint16_t>;
using VU16 = hn::Vec<U16>;

/// Magnitudes below the normal numbers, which stand in 16 bytes, or in a vector of 32 numbers.
template <class S>
struct Small {
#if HWY_TARGET <= HWY_AVX3
  alignas(64) static constexpr std::array<uint16_t, 32> kTable = S::small_numbers();
  VU16 table;
  HWY_INLINE Small() : table(hn::Load(U16(), kTable.data())) {}
  HWY_INLINE VU16 operator()(VU16 m) const {
    return VU16{_mm512_permutexvar_epi16(m.raw, table.raw)};  // by the lowest five bits
  }
#else
  using Bytes = hn::Repartition<uint8_t, U16>;
  alignas(16) static constexpr std::array<uint8_t, 16> kTable = S::small_bytes();
  hn::Vec<Bytes> table;
  HWY_INLINE Small() : table(hn::LoadDup128(Bytes(), kTable.data())) {}
  HWY_INLINE VU16 operator()(VU16 m) const {
    const U16 d;
    const auto places = hn::Or(hn::Or(m, hn::ShiftLeft<8>(m)), hn::Set(d, 0x0800));
    return hn::BitCast(d, hn::TableLookupBytes(table, hn::BitCast(Bytes(), places)));
  }
#endif
};
#endif

/// The whole vectors of n codes up to the first that holds an infinity or a NaN; how many elements they are.
/// kMoves: their exponents move by `shift`.
template <class S, bool kMoves>
HWY_INLINE size_t move_vectors([[maybe_unused]] const uint8_t* codes, [[maybe_unused]] size_t n,
                               [[maybe_unused]] int shift, [[maybe_unused]] uint16_t* out) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const U16 d;
  const hn::Rebind<uint8_t, U16> half;
  const Small<S> small;
  const auto moved_by = hn::Set(d, static_cast<uint16_t>(shift * 128));
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto code = hn::PromoteTo(d, hn::LoadU(half, codes + i));
    const auto m = hn::And(code, hn::Set(d, 0x7F));
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(m, hn::Set(d, S::kSpecial - 1))))) return i;
    const auto normal = hn::Add(hn::ShiftLeft<S::kUp>(m), hn::Set(d, S::kMove));
    auto number = hn::IfThenElse(hn::Lt(m, hn::Set(d, S::kLeastNormal)), small(m), normal);
    if constexpr (kMoves) number = hn::IfThenElse(hn::Eq(m, hn::Zero(d)), number, hn::Add(number, moved_by));
    hn::StoreU(hn::OrAnd(number, hn::ShiftLeft<8>(code), hn::Set(d, 0x8000)), d, out + i);
  }
#endif
  return i;
}

/// A code times the scale.
template <class S>
uint16_t scaled_code(uint8_t code, float scale) {
  const uint32_t sign = static_cast<uint32_t>(code >> 7) << 15;
  const float number = std::bit_cast<float>((S::bf16(code & 0x7FU) | sign) << 16);
  const auto product = std::bit_cast<uint32_t>(number * scale);
  const bool is_nan = (product & 0x7FFFFFFFU) > 0x7F800000U;
  const uint32_t rounded = is_nan ? product | 0x00400000U : product + 0x7FFFU + (product >> 16 & 1U);
  return static_cast<uint16_t>(rounded >> 16);
}

/// n codes of a block; `shift`: how far its scale moves exponents, where it does no more.
template <class S>
HWY_INLINE void move_block(const uint8_t* codes, size_t n, std::optional<int> shift, float scale,
                           uint16_t* out) {
  constexpr size_t kOnes = 32;  // one by one, before vectors are tried again
  for (size_t i = 0; i < n;) {
    if (shift)
      i += *shift == 0 ? move_vectors<S, false>(codes + i, n - i, 0, out + i)
                       : move_vectors<S, true>(codes + i, n - i, *shift, out + i);
    for (const size_t end = std::min(n, i + kOnes); i < end; ++i) out[i] = scaled_code<S>(codes[i], scale);
  }
}

/// body(first, count, block) for the blocks of 2^kLog elements that [col, col + n) lies in.
template <int kLog, class Body>
HWY_INLINE void for_blocks_of(int64_t col, size_t n, Body body) {
  for (size_t i = 0; i < n;) {
    const int64_t at = col + static_cast<int64_t>(i), block = at >> kLog;
    const size_t count = std::min(n - i, static_cast<size_t>(((block + 1) << kLog) - at));
    body(i, count, block);
    i += count;
  }
}

void row_to_bf16(Scheme scheme, const uint8_t* codes, const uint8_t* scales, int64_t col, size_t n,
                 uint16_t* out) {
  const uint8_t* const from = codes + col;
  if (scheme == Scheme::kMxfp8)
    return for_blocks_of<5>(col, n, [=](size_t i, size_t count, int64_t block) HWY_ATTR {
      const uint32_t code = scales[block];
      const float scale = std::bit_cast<float>(code == 0 ? 0x00400000U : code << 23);
      move_block<E4m3Bits>(from + i, count, exponent_shift(code), scale, out + i);
    });
  if (info(scheme).block_cols == 0) {
    if (scheme == Scheme::kE5m2) return move_block<E5m2Bits>(from, n, 0, 1, out);
    return move_block<E4m3Bits>(from, n, 0, 1, out);
  }
  for_blocks_of<7>(col, n, [=](size_t i, size_t count, int64_t block) HWY_ATTR {
    float scale = 1;
    std::memcpy(&scale, scales + 4 * block, sizeof scale);
    move_block<E4m3Bits>(from + i, count, exponent_shift_of(scale), scale, out + i);
  });
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
