// Numbers of a row of blocks, each block with its own multiplier: to codes, counting what is clipped, and
// back; NF4 and int8, whose codes are decided exactly.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_BLOCK_RUNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_BLOCK_RUNS_INL_H_
#undef PLIMSOLL_NUMERICS_BLOCK_RUNS_INL_H_
#else
#define PLIMSOLL_NUMERICS_BLOCK_RUNS_INL_H_
#endif

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "hwy/highway.h"
#include "numerics/convert-inl.h"
#include "numerics/formats.h"
#include "numerics/minifloat-inl.h"
#include "numerics/other_codes-inl.h"
#include "numerics/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::ScalableTag<uint32_t>;
using VU32 = hn::Vec<U32>;

/// A number for each block of a row: that of element i is at[i >> shift].
struct OfBlocks {
  const float* at;
  int shift;
  HWY_INLINE V operator()(size_t i) const { return hn::Set(F32(), at[i >> shift]); }
};

/// Bytes from a number to what is needed soon, near and far; 0: neither.
struct Ahead {
  size_t near = 0, far = 0;
  HWY_INLINE void read(const float* x) const {
    prefetch_far(x, far);
    prefetch_near(x, near);
  }
};

HWY_INLINE V load_n(const float* x, size_t n) {
  if (n >= kLanes) return hn::LoadU(F32(), x);
  HWY_ALIGN float rest[kLanes] = {};
  std::memcpy(rest, x, n * sizeof(float));
  return hn::Load(F32(), rest);
}

using I32 = hn::ScalableTag<int32_t>;
using VI32 = hn::Vec<I32>;

/// Magnitudes as integers have the order of the numbers; a NaN is above infinity.
HWY_INLINE VI32 signless(V v) { return hn::BitCast(I32(), magnitude_bits(F32(), v)); }

/// The largest of each lane among n magnitudes.
HWY_INLINE VI32 largest_lanes(const float* x, size_t n, bool ahead) {
  auto m0 = hn::Zero(I32()), m1 = hn::Zero(I32());
  size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    if (ahead) prefetch_near(x + i, kNearBytes);
    if (ahead && kLanes == 16) prefetch_near(x + i + kLanes, kNearBytes);
    m0 = hn::Max(m0, signless(hn::LoadU(F32(), x + i)));
    m1 = hn::Max(m1, signless(hn::LoadU(F32(), x + i + kLanes)));
  }
  for (; i < n; i += kLanes) {
    if (ahead) prefetch_near(x + i, kNearBytes);
    m0 = hn::Max(m0, signless(load_n(x + i, n - i)));
  }
  return hn::Max(m0, m1);
}

HWY_INLINE uint32_t largest_bits(const float* x, size_t n, bool ahead) {
  return static_cast<uint32_t>(hn::GetLane(hn::MaxOfLanes(I32(), largest_lanes(x, n, ahead))));
}

/// The largest lane of each of kLanes vectors, in their order.
HWY_INLINE VI32 largest_of_each(const VI32* m) {
#if HWY_TARGET == HWY_SCALAR
  return m[0];
#else
  const I32 d;
  const hn::ScalableTag<int64_t> d64;
  const auto both = [=](VI32 a, VI32 b) HWY_ATTR {  // halves of blocks: a b a b
    return hn::Max(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  };
  const auto four = [=](const VI32* of) HWY_ATTR {  // in each block one number of each of four
    const auto a = hn::BitCast(d64, both(of[0], of[1])), b = hn::BitCast(d64, both(of[2], of[3]));
    return hn::Max(hn::BitCast(d, hn::InterleaveLower(d64, a, b)),
                   hn::BitCast(d, hn::InterleaveUpper(d64, a, b)));
  };
  const auto halves = [=](VI32 a, VI32 b) HWY_ATTR {  // half of the blocks: a a b b
    return hn::Max(hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
  };
  if constexpr (kLanes == 8) {
    return halves(four(m), four(m + 4));
  } else {
    const auto a = halves(four(m), four(m + 8)), b = halves(four(m + 4), four(m + 12));
    return hn::Max(hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a),
                   hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a)));
  }
#endif
}

/// Those of kLanes blocks of kWidth numbers each, in order.
template <size_t kWidth>
HWY_INLINE VI32 largest_of_blocks(const float* x) {
  constexpr size_t kEach = HWY_MAX(1, kWidth / kLanes);
  VI32 lanes[kLanes];
  HWY_UNROLL(16)
  for (size_t b = 0; b < kLanes; ++b) {
    lanes[b] = signless(hn::LoadU(F32(), x + b * kWidth));
    HWY_UNROLL(8)
    for (size_t k = 1; k < kEach; ++k)
      lanes[b] = hn::Max(lanes[b], signless(hn::LoadU(F32(), x + b * kWidth + k * kLanes)));
  }
  return largest_of_each(lanes);
}

/// Bits of the largest magnitude that is a number.
HWY_INLINE uint32_t largest_number_bits(const float* x, size_t n) {
  uint32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU;
    if (bits <= 0x7F800000U && bits > largest) largest = bits;
  }
  return largest;
}

/// Whether codes from here on may go past the caches.
HWY_INLINE bool is_aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % (kLanes * sizeof(float)) == 0;
}

/// Saturating codes of x times its block's multiplier.
template <class S, class Stored, bool kStream>
HWY_INLINE void encode_scaled(const float* x, size_t n, OfBlocks multiplier, Ahead ahead, std::byte* codes) {
  encode_vectors<Stored, kStream, false>(x, n, codes, [=](V v, size_t i) HWY_ATTR {
    ahead.read(x + i);
    return nearest_code<S, true>(F32(), hn::Mul(v, multiplier(i)));
  });
}

/// How many finite numbers are then beyond the largest code by more than rounding.
template <class S>
HWY_INLINE int64_t count_clipped(const float* x, size_t n, OfBlocks multiplier) {
  const F32 d;
  const auto infinity = hn::Set(U32(), 0x7F800000U);
  size_t clipped = 0;
  for (size_t i = 0; i < n; i += kLanes) {
    const V v = load_n(x + i, n - i);
    const auto code = round_nearest<S>(d, hn::Mul(v, multiplier(i)));
    clipped += hn::CountTrue(
        U32(), hn::And(less(d, hn::Set(U32(), S::kMax), code), less(d, magnitude_bits(d, v), infinity)));
  }
  return static_cast<int64_t>(clipped);
}

/// numbers(codes) times the block's factor.
template <class Stored, bool kStream, class F>
HWY_INLINE void decode_scaled(const std::byte* codes, size_t n, OfBlocks factor, F numbers, float* x) {
  decode_vectors<Stored, kStream>(
      codes, n, x, [=](VU32 code, size_t i) HWY_ATTR { return hn::Mul(numbers(code), factor(i)); });
}

// ---- NF4

/// The tree of thresholds of a block: a number is above one where it is above its product with absmax, which
/// a double holds (29 + 24 bits), rounded down to what an f32 can be compared with.
HWY_INLINE void nf4_tree(float absmax, float* tree) {
  using F64 = hn::ScalableTag<double>;
  using Half = hn::Rebind<float, F64>;
  const hn::RebindToUnsigned<Half> du;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (!(absmax > 0) || std::isinf(absmax)) {  // every number is 0, infinities are the ends
    for (int node = 0; node < 16; ++node)
      tree[node] = kNf4Tree[node] < 7 ? -kInfinity : std::numeric_limits<float>::max();
    return;
  }
  struct Ties {
    alignas(64) double at[16] = {};
    constexpr Ties() {
      for (int node = 0; node < 16; ++node) {
        const int i = kNf4Tree[node];
        at[node] = (double{kNf4Values[i]} + double{kNf4Values[i + 1]}) / 2;
      }
    }
  };
  static constexpr Ties kTies;
  for (size_t i = 0; i < 16; i += HWY_LANES(double)) {
    const auto exact = hn::Mul(hn::Load(F64(), kTies.at + i), hn::Set(F64(), double{absmax}));
    const auto near = hn::DemoteTo(Half(), exact);
    const auto beyond = hn::DemoteTo(Half(), hn::Sub(exact, hn::PromoteTo(F64(), near)));
    // One step down where the nearest is above: to smaller magnitudes, or larger ones below 0.
    const auto bits = hn::BitCast(du, near);
    const auto step = hn::ShiftRight<31>(hn::BitCast(du, beyond));
    const auto is_negative = hn::And(step, hn::ShiftRight<31>(bits));
    const auto down = hn::Add(hn::Sub(bits, step), hn::Add(is_negative, is_negative));
    hn::StoreU(hn::BitCast(Half(), down), Half(), tree + i);
  }
}

/// `trees`: 16 thresholds a block.
template <bool kStream>
HWY_INLINE void encode_nf4(const float* x, size_t n, const float* trees, int shift, Ahead ahead,
                           std::byte* codes) {
  encode_vectors<Nibble, kStream, false>(x, n, codes, [=](V v, size_t i) HWY_ATTR {
    ahead.read(x + i);
    return Nf4Coder(trees + 16 * (i >> shift))(v);
  });
}

// ---- int8, a block at a time

/// The integer nearest to 127 x / absmax, ties to even: the quotient is off by less than the distance of any
/// other tie, 2^-25.
HWY_INLINE uint32_t int8_exact(float x, float absmax) {
  if (std::isnan(x) || absmax == 0) return 0;
  if (std::isinf(absmax)) return std::isinf(x) ? (x > 0 ? 127U : 0x81U) : 0U;
  const double quotient = double{x} * 127.0 / double{absmax};
  return static_cast<uint32_t>(static_cast<int32_t>(std::nearbyint(quotient))) & 0xFFU;
}

// Beyond this a number's distance from its code is so near to a tie's that f32 might have fallen on its wrong
// side: the error of 127 x / absmax is below 127 * 2^-23.
constexpr float kNearTie = 0.5F - 0x1p-14F, kInt8Anchor = 0x1.8p23F;

/// Once more in double what is near a tie.
inline HWY_NOINLINE void mend_int8(const float* x, size_t n, float absmax, std::byte* codes) {
  const float inverse = 127.0F / absmax;
  for (size_t i = 0; i < n; ++i) {
    const float scaled = x[i] * inverse, nearest = (scaled + kInt8Anchor) - kInt8Anchor;
    if (std::abs(scaled - nearest) > kNearTie) codes[i] = static_cast<std::byte>(int8_exact(x[i], absmax));
  }
}

/// No number may be NaN.
HWY_INLINE void encode_int8(const float* x, size_t n, float absmax, Ahead ahead, std::byte* codes) {
  const F32 d;
  const float inverse = 127.0F / absmax;
  if (!std::isfinite(inverse) || inverse == 0) {  // absmax is 0, infinite or nearly either
    for (size_t i = 0; i < n; ++i) codes[i] = static_cast<std::byte>(int8_exact(x[i], absmax));
    return;
  }
  constexpr size_t kRun = 4 * kLanes;
  const V s = hn::Set(d, inverse), anchor = hn::Set(d, kInt8Anchor), bound = hn::Set(d, kNearTie);
  for (size_t begin = 0; begin < n; begin += kRun) {
    const size_t count = HWY_MIN(kRun, n - begin);
    V largest = hn::Zero(d);
    encode_vectors<uint8_t, false>(x + begin, count, codes + begin, [&](V v, size_t i) HWY_ATTR {
      ahead.read(x + begin + i);
      const V scaled = hn::Mul(v, s), sum = hn::Add(scaled, anchor);
      largest = hn::Max(largest, hn::Abs(hn::Sub(scaled, hn::Sub(sum, anchor))));
      return hn::BitCast(U32(), sum);
    });
    if (HWY_UNLIKELY(!hn::AllFalse(d, hn::Gt(largest, bound))))
      mend_int8(x + begin, count, absmax, codes + begin);
  }
}

// f32 of code * absmax / 127 with one rounding. absmax / 127 in two parts is off by 2^-47 of itself, and no
// product of at most 31 bits over 127 comes nearer than 2^-32 of itself to where rounding changes.
template <bool kStream>
HWY_INLINE void decode_int8(const std::byte* codes, size_t n, float absmax, float* x) {
  const bool is_plain = absmax >= 0x1p-60F && absmax < 0x1p120F;
  if (HWY_TARGET == HWY_SCALAR || !is_plain) {
    for (size_t i = 0; i < n; ++i) {
      const auto code = static_cast<int8_t>(codes[i]);
      x[i] = static_cast<float>(static_cast<double>(code) * double{absmax} / 127.0);
    }
    return;
  }
  const float upper = absmax / 127.0F;
  const auto lower = static_cast<float>((double{absmax} - 127.0 * double{upper}) / 127.0);
  const V high = hn::Set(F32(), upper), low = hn::Set(F32(), lower);
  decode_vectors<uint8_t, kStream>(codes, n, x, [=](VU32 code, size_t) HWY_ATTR {
    const V number = int8_from_code(F32(), code);
    return hn::MulAdd(number, high, hn::Mul(number, low));
  });
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
