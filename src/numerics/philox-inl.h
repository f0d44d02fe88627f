// philox.h in vectors: a counter a lane.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_PHILOX_INL_H_
#undef PLIMSOLL_NUMERICS_PHILOX_INL_H_
#else
#define PLIMSOLL_NUMERICS_PHILOX_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "numerics/convert.h"
#include "numerics/philox.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using U32 = hn::ScalableTag<uint32_t>;
using VU32 = hn::Vec<U32>;

// Of counters, or what philox makes of them.
struct PhiloxVectors {
  VU32 word[4];
};

struct WideProduct {
  VU32 high, low;
};

// a * m in 64 bits.
HWY_INLINE WideProduct multiply_wide(VU32 a, uint32_t m) {
  const U32 d;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(a)} * m;
  return {hn::Set(d, static_cast<uint32_t>(product >> 32)), hn::Set(d, static_cast<uint32_t>(product))};
#else
  const hn::RepartitionToWide<U32> d64;
  const VU32 factor = hn::Set(d, m);
  const auto even = hn::BitCast(d, hn::MulEven(a, factor));
  const auto shifted = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a)));
  const auto odd = hn::BitCast(d, hn::MulEven(shifted, factor));
  const auto even_high = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, even)));
  const auto odd_low = hn::BitCast(d, hn::ShiftLeft<32>(hn::BitCast(d64, odd)));
  return {hn::OddEven(odd, even_high), hn::OddEven(odd_low, even)};
#endif
}

// numerics::philox of each lane's counter, with one key.
HWY_INLINE PhiloxVectors philox_vectors(PhiloxVectors c, uint32_t key0, uint32_t key1) {
  const U32 d;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const WideProduct p0 = multiply_wide(c.word[0], kPhiloxMultiplier0);
    const WideProduct p1 = multiply_wide(c.word[2], kPhiloxMultiplier1);
    c.word[0] = hn::Xor(hn::Xor(p1.high, c.word[1]), hn::Set(d, key0));
    c.word[1] = p1.low;
    c.word[2] = hn::Xor(hn::Xor(p0.high, c.word[3]), hn::Set(d, key1));
    c.word[3] = p0.low;
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return c;
}

// The words of blocks first ... first + lanes - 1, element by element: 4 * lanes words at `to`. Lane l has
// block first + l; counters as RandomKey in convert.h says.
HWY_INLINE void random_words(const RandomKey& key, uint64_t first, uint32_t* to) {
  const U32 d;
  const VU32 base = hn::Set(d, static_cast<uint32_t>(first));
  const VU32 lower = hn::Add(base, hn::Iota(d, 0));
  // A carry into the upper half, in the lanes whose lower half went past 2^32.
  const VU32 wrapped = hn::ShiftRight<31>(hn::AndNot(lower, base));
  const VU32 upper = hn::Add(hn::Set(d, static_cast<uint32_t>(first >> 32)), wrapped);
  const PhiloxVectors counter{{lower, upper, hn::Set(d, static_cast<uint32_t>(key.stream)),
                               hn::Set(d, static_cast<uint32_t>(key.stream >> 32))}};
  const PhiloxVectors w =
      philox_vectors(counter, static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32));
  hn::StoreInterleaved4(w.word[0], w.word[1], w.word[2], w.word[3], d, to);
}

// The words of n elements from key.first_element + at on. Returns where they begin in `buffer`, which holds
// n + 4 + 4 * lanes.
HWY_INLINE const uint32_t* words_of(const RandomKey& key, uint64_t at, size_t n, uint32_t* buffer) {
  const uint64_t element = key.first_element + at;
  const size_t skipped = element % 4, lanes = hn::Lanes(U32());
  for (size_t block = 0; 4 * block < n + skipped; block += lanes)
    random_words(key, element / 4 + block, buffer + 4 * block);
  return buffer + skipped;
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
