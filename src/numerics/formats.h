// The number formats of mixed precision: what each one is. Converting is convert.h, formats with shared
// scales are blocks.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::numerics {

/// kE8m0 holds scales, kE2m1, kNf4 and kInt8 are held together with one (blocks.h).
enum class Format : uint8_t { kFp32, kTf32, kFp16, kBf16, kE4m3, kE5m2, kE8m0, kE2m1, kNf4, kInt8 };

/// What a format can hold. Numbers that it does not have (NF4 has no exponent) are 0.
struct FormatInfo {
  Format format;
  std::string_view name;      ///< "bf16", as `inspect --as` and settings spell it
  int bits;                   ///< that carry information; tf32 has 19 of the 32 that it is stored in
  int stored_bits;            ///< in memory: 32, 16, 8 or 4
  int sign_bits;              ///< 0 for E8M0
  int exponent_bits;          ///< 0 where codes are not exponent and mantissa
  int mantissa_bits;          ///< stored ones, without the implicit one
  int bias;                   ///< a normal number is 2^(exponent - bias) (1 + mantissa / 2^mantissa_bits)
  double max;                 ///< the largest finite number
  double smallest_normal;     ///< the smallest positive one with full precision
  double smallest_subnormal;  ///< the smallest positive one below that
  double epsilon;             ///< the step from 1 to the next larger number (NF4: to the next smaller one)
  bool has_infinity;
  bool has_nan;
  std::string_view source;  ///< who defines it
};

/// All formats, in the order of the enumeration.
std::span<const FormatInfo> formats();
const FormatInfo& info(Format format);

/// NF4's values by code: quantiles of the normal distribution, scaled to [-1, 1], 0 among them.
/// Source: Dettmers, Pagnoni, Holtzman, Zettlemoyer 2023, arXiv:2305.14314, appendix E.
inline constexpr float kNf4Values[16] = {
    -1.0F,
    -0.6961928009986877F,
    -0.5250730514526367F,
    -0.39491748809814453F,
    -0.28444138169288635F,
    -0.18477343022823334F,
    -0.09105003625154495F,
    0.0F,
    0.07958029955625534F,
    0.16093020141124725F,
    0.24611230194568634F,
    0.33791524171829224F,
    0.44070982933044434F,
    0.5626170039176941F,
    0.7229568362236023F,
    1.0F,
};

}  // namespace plimsoll::numerics
