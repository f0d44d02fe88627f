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

// The key of each round.
struct PhiloxKeys {
  uint64_t key0[kPhiloxRounds], key1[kPhiloxRounds];
  PhiloxKeys(uint32_t first0, uint32_t first1) {
    for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
      key0[round] = first0 + round * kPhiloxWeyl0;
      key1[round] = first1 + round * kPhiloxWeyl1;
    }
  }
  explicit PhiloxKeys(uint64_t seed)
      : PhiloxKeys(static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)) {}
};

// The words of one block at `to`, element by element; counters as RandomKey in convert.h says.
HWY_INLINE void block_words(const RandomKey& key, uint64_t block, uint32_t* to) {
  const PhiloxCounter words =
      philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
              static_cast<uint32_t>(key.stream), static_cast<uint32_t>(key.stream >> 32)},
             {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
  for (size_t i = 0; i < words.size(); ++i) to[i] = words[i];
}

#if HWY_TARGET == HWY_SCALAR

// numerics::philox of each lane's counter, with one key.
HWY_INLINE PhiloxVectors philox_vectors(PhiloxVectors c, uint32_t key0, uint32_t key1) {
  const U32 d;
  const PhiloxCounter words =
      philox({hn::GetLane(c.word[0]), hn::GetLane(c.word[1]), hn::GetLane(c.word[2]), hn::GetLane(c.word[3])},
             {key0, key1});
  return {hn::Set(d, words[0]), hn::Set(d, words[1]), hn::Set(d, words[2]), hn::Set(d, words[3])};
}

constexpr size_t kBlocksAtOnce = 1;

HWY_INLINE void random_words(const RandomKey& key, const PhiloxKeys&, uint64_t first, uint32_t* to) {
  block_words(key, first, to);
}

#else

using U64 = hn::ScalableTag<uint64_t>;
using VU64 = hn::Vec<U64>;

// Of counters, or what philox makes of them, in the lower halves of lanes: multiplication reads nothing else,
// so a product's lower half need not be taken out of it and anything may stand in the upper one.
struct PhiloxHalves {
  VU64 word[4];
};

// A product's upper half, in both halves of its lane; moved, not shifted, because multiplication and shifts
// share a port.
HWY_INLINE VU64 upper_half(VU64 product) {
  return hn::BitCast(U64(), hn::DupOdd(hn::BitCast(U32(), product)));
}

HWY_INLINE void philox_round(PhiloxHalves& c, VU64 key0, VU64 key1) {
  const U32 d;
  const VU64 p0 = hn::MulEven(hn::BitCast(d, c.word[0]), hn::Set(d, kPhiloxMultiplier0));
  const VU64 p1 = hn::MulEven(hn::BitCast(d, c.word[2]), hn::Set(d, kPhiloxMultiplier1));
  c = {hn::Xor3(upper_half(p1), c.word[1], key0), p1, hn::Xor3(upper_half(p0), c.word[3], key1), p0};
}

// Several at once: a round's steps wait for each other.
template <size_t kCount>
HWY_INLINE void philox_rounds(PhiloxHalves (&c)[kCount], const PhiloxKeys& keys) {
  const U64 d;
  HWY_UNROLL(10)  // else every round moves all words
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const VU64 key0 = hn::Set(d, keys.key0[round]), key1 = hn::Set(d, keys.key1[round]);
    HWY_UNROLL(4)
    for (size_t i = 0; i < kCount; ++i) philox_round(c[i], key0, key1);
  }
}

// u32 lanes: the lower halves of `even` where the index is even, of `odd` where it is odd.
HWY_INLINE VU32 join_lanes(VU64 even, VU64 odd) {
  const U32 d;
  return hn::OddEven(hn::DupEven(hn::BitCast(d, odd)), hn::BitCast(d, even));
}

// numerics::philox of each lane's counter, with one key.
HWY_INLINE PhiloxVectors philox_vectors(PhiloxVectors c, uint32_t key0, uint32_t key1) {
  const U64 d;
  PhiloxHalves halves[2];
  for (int i = 0; i < 4; ++i) {
    halves[0].word[i] = hn::BitCast(d, c.word[i]);
    halves[1].word[i] = hn::ShiftRight<32>(halves[0].word[i]);
  }
  philox_rounds(halves, PhiloxKeys(key0, key1));
  for (int i = 0; i < 4; ++i) c.word[i] = join_lanes(halves[0].word[i], halves[1].word[i]);
  return c;
}

// Counters of as many blocks as there are u64 lanes, with one upper half; even lanes have the first half of
// them, so that pairs of words from even and from odd lanes, interleaved, lie in order.
HWY_INLINE PhiloxHalves block_counters(const RandomKey& key, uint64_t first) {
  const U64 d;
  const VU64 lane = hn::Iota(d, 0), one = hn::Set(d, 1);
  const VU64 half = hn::Set(d, HWY_LANES(uint64_t) / 2);
  const VU64 is_odd = hn::Sub(hn::Zero(d), hn::And(lane, one));
  const VU64 order = hn::Add(hn::ShiftRight<1>(lane), hn::And(is_odd, half));
  return {hn::Add(hn::Set(d, first), order), hn::Set(d, first >> 32), hn::Set(d, key.stream),
          hn::Set(d, key.stream >> 32)};
}

HWY_INLINE void store_in_order(const PhiloxHalves& w, uint32_t* to) {
  const U64 d;
  const VU64 first = hn::BitCast(d, join_lanes(w.word[0], w.word[1]));
  const VU64 second = hn::BitCast(d, join_lanes(w.word[2], w.word[3]));
  hn::StoreU(hn::BitCast(U32(), hn::InterleaveLower(d, first, second)), U32(), to);
  hn::StoreU(hn::BitCast(U32(), hn::InterleaveUpper(d, first, second)), U32(), to + hn::Lanes(U32()));
}

// As many as fill half of the registers.
constexpr size_t kBlocksAtOnce = (HWY_TARGET <= HWY_AVX3 ? 4 : 2) * HWY_LANES(uint64_t);

// The words of blocks first ... first + kBlocksAtOnce - 1 at `to`, element by element.
inline HWY_NOINLINE void random_words(const RandomKey& key, const PhiloxKeys& keys, uint64_t first,
                                      uint32_t* to) {
  constexpr size_t kEach = HWY_LANES(uint64_t), kCount = kBlocksAtOnce / kEach;
  if (first >> 32 != (first + kBlocksAtOnce - 1) >> 32) {
    for (size_t i = 0; i < kBlocksAtOnce; ++i) block_words(key, first + i, to + 4 * i);
    return;
  }
  PhiloxHalves c[kCount];
  HWY_UNROLL(4)
  for (size_t i = 0; i < kCount; ++i) c[i] = block_counters(key, first + i * kEach);
  philox_rounds(c, keys);
  HWY_UNROLL(4)
  for (size_t i = 0; i < kCount; ++i) store_in_order(c[i], to + i * 4 * kEach);
}

#endif

// The words of n elements from key.first_element + at on. Returns where they begin in `buffer`, which holds
// n + 4 + 4 * kBlocksAtOnce.
HWY_INLINE const uint32_t* words_of(const RandomKey& key, const PhiloxKeys& keys, uint64_t at, size_t n,
                                    uint32_t* buffer) {
  const uint64_t element = key.first_element + at;
  const size_t skipped = element % 4;
  for (size_t block = 0; 4 * block < n + skipped; block += kBlocksAtOnce)
    random_words(key, keys, element / 4 + block, buffer + 4 * block);
  return buffer + skipped;
}

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
