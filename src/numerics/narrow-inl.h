// Codes between u32 lanes and memory. Vectors of u32 lanes, as many as fill one vector of codes, become one:
//
//   lanes of code 0, 1, 2, 3:   |a0 .. aN| |b0 .. bN| |c0 .. cN| |d0 .. dN|
//   joined, a byte each:        |d0 c0 b0 a0|d1 c1 b1 a1| ...
//   in order:                   |a0 a1 .. aN b0 .. bN c0 .. cN d0 .. dN|
//
// so that whole cache lines are written at once. A code stands in the lower bits of its lane; above its byte
// (16-bit codes: above those) anything may stand, but the byte of a 4-bit code holds nothing else.
//
// To be included after hwy/foreach_target.h; compiled once per target.
#if defined(PLIMSOLL_NUMERICS_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_NUMERICS_NARROW_INL_H_
#undef PLIMSOLL_NUMERICS_NARROW_INL_H_
#else
#define PLIMSOLL_NUMERICS_NARROW_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

struct Nibble {};  // a code of 4 bits, two in a byte, the even index in the lower half

/// Bits of a code in memory, and how many vectors of u32 lanes make one vector of codes.
template <class Stored>
inline constexpr size_t kStoredBits = 8 * sizeof(Stored);
template <>
inline constexpr size_t kStoredBits<Nibble> = 4;
template <class Stored>
inline constexpr size_t kJoined = 32 / kStoredBits<Stored>;

/// Distances to read ahead of, measured: from the second-level cache, and from memory into it.
constexpr size_t kNearBytes = 2048, kFarBytes = 16384;

/// Into the first-level cache, or into the second. An address as a number, as it may lie beyond the array.
HWY_INLINE void prefetch_near(const void* p, size_t bytes) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + bytes), 0, 3);
}
HWY_INLINE void prefetch_far(const void* p, size_t bytes) {
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(p) + bytes), 0, 2);
}

/// Ahead of `p`: the arithmetic of a conversion fills the window in which the processor would find the loads
/// behind it by itself.
HWY_INLINE void read_ahead(const void* p) {
  prefetch_far(p, kFarBytes);
  prefetch_near(p, kNearBytes);
}

#if HWY_TARGET != HWY_SCALAR

using LaneTag = hn::ScalableTag<uint32_t>;
using ByteTag = hn::ScalableTag<uint8_t>;
using Lanes = hn::Vec<LaneTag>;
constexpr size_t kBlocks = HWY_LANES(uint32_t) / 4;  // of 128 bits in a vector

/// 32-bit groups from block after block into order: those of one source vector follow each other.
/// kSources sources have 4 / kSources groups in each block.
template <size_t kSources>
struct GroupOrder {
  alignas(64) uint32_t index[HWY_LANES(uint32_t)];
  constexpr GroupOrder() : index() {
    constexpr size_t kEach = 4 / kSources;
    for (size_t source = 0; source < kSources; ++source)
      for (size_t block = 0; block < kBlocks; ++block)
        for (size_t i = 0; i < kEach; ++i)
          index[(source * kBlocks + block) * kEach + i] =
              static_cast<uint32_t>(4 * block + source * kEach + i);
  }
};

template <size_t kSources>
HWY_INLINE Lanes in_order(Lanes joined, const uint8_t* bytes_of_block) {
  static constexpr GroupOrder<kSources> kOrder;
  const LaneTag d;
  const ByteTag d8;
  const auto grouped = hn::TableLookupBytes(hn::BitCast(d8, joined), hn::LoadDup128(d8, bytes_of_block));
  return hn::TableLookupLanes(hn::BitCast(d, grouped), hn::SetTableIndices(d, kOrder.index));
}

HWY_INLINE hn::Vec<ByteTag> join_bytes(Lanes a, Lanes b, Lanes c, Lanes e) {
  alignas(16) static constexpr uint8_t kBytes[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
  const LaneTag d;
  const auto byte = hn::Set(d, 0xFFU), half = hn::Set(d, 0xFFFFU);
  const auto lower = hn::OrAnd(hn::ShiftLeft<8>(b), a, byte);
  const auto upper = hn::OrAnd(hn::ShiftLeft<8>(e), c, byte);
  return hn::BitCast(ByteTag(), in_order<4>(hn::OrAnd(hn::ShiftLeft<16>(upper), lower, half), kBytes));
}

HWY_INLINE Lanes join_halves(Lanes a, Lanes b) {
  alignas(16) static constexpr uint8_t kBytes[16] = {0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15};
  const LaneTag d;
  return in_order<2>(hn::OrAnd(hn::ShiftLeft<16>(b), a, hn::Set(d, 0xFFFFU)), kBytes);
}

/// Two codes a byte from a byte a code.
HWY_INLINE hn::Vec<ByteTag> join_nibbles(hn::Vec<ByteTag> a, hn::Vec<ByteTag> b) {
  const hn::ScalableTag<uint16_t> d16;
  const ByteTag d8;
  const auto pairs = [=](auto codes) HWY_ATTR {
    const auto pair = hn::BitCast(d16, codes);
    return hn::BitCast(d8, hn::Or(pair, hn::ShiftRight<4>(pair)));
  };
  return hn::ConcatEven(d8, pairs(b), pairs(a));
}

/// kJoined<Stored> vectors as one of codes, in u32 lanes.
template <class Stored>
HWY_INLINE Lanes joined(const Lanes* c) {
  const LaneTag d;
  if constexpr (kStoredBits<Stored> == 32)
    return c[0];
  else if constexpr (kStoredBits<Stored> == 16)
    return join_halves(c[0], c[1]);
  else if constexpr (kStoredBits<Stored> == 8)
    return hn::BitCast(d, join_bytes(c[0], c[1], c[2], c[3]));
  else
    return hn::BitCast(d,
                       join_nibbles(join_bytes(c[0], c[1], c[2], c[3]), join_bytes(c[4], c[5], c[6], c[7])));
}

/// Stores the codes of kJoined<Stored> vectors; kStream: past the caches, `to` being aligned to a vector.
template <class Stored, bool kStream>
HWY_INLINE void store_codes(const Lanes* c, std::byte* to) {
  const LaneTag d;
  auto* at = reinterpret_cast<uint32_t*>(to);
  if constexpr (kStream)
    hn::Stream(joined<Stored>(c), d, at);
  else
    hn::StoreU(joined<Stored>(c), d, at);
}

/// What is narrow already, a vector's worth a half.
template <class Stored, bool kStream>
HWY_INLINE void store_codes(const hn::Vec<hn::Rebind<uint16_t, LaneTag>>* c, std::byte* to) {
  const hn::ScalableTag<uint16_t> d;
  auto* at = reinterpret_cast<uint16_t*>(to);
  const auto both = hn::Combine(d, c[1], c[0]);
  if constexpr (kStream)
    hn::Stream(both, d, at);
  else
    hn::StoreU(both, d, at);
}

/// The codes of elements i ... i + lanes - 1, in u32 lanes; i is a multiple of the lanes.
template <class Stored>
HWY_INLINE Lanes load_codes(const std::byte* from, size_t i) {
  const LaneTag d;
  if constexpr (kStoredBits<Stored> == 4) {
    alignas(64) static constexpr uint32_t kShift[16] = {0, 4, 8, 12, 16, 20, 24, 28,
                                                        0, 4, 8, 12, 16, 20, 24, 28};
    uint32_t words[2] = {};
    std::memcpy(words, from + i / 2, HWY_LANES(uint32_t) / 2);
    auto word = hn::Set(d, words[0]);
    if constexpr (HWY_LANES(uint32_t) > 8)
      word = hn::IfThenElse(hn::FirstN(d, 8), word, hn::Set(d, words[1]));
    return hn::And(hn::Shr(word, hn::Load(d, kShift)), hn::Set(d, 15U));
  } else {
    const hn::Rebind<Stored, LaneTag> narrow;
    const auto codes = hn::LoadU(narrow, reinterpret_cast<const Stored*>(from) + i);
    if constexpr (sizeof(Stored) == 4)
      return codes;
    else
      return hn::PromoteTo(d, codes);
  }
}

#else  // a lane at a time

using LaneTag = hn::ScalableTag<uint32_t>;
using Lanes = hn::Vec<LaneTag>;

template <class Stored, bool kStream, class Codes>
HWY_INLINE void store_codes(const Codes* c, std::byte* to) {
  if constexpr (kStoredBits<Stored> == 4) {
    for (size_t i = 0; i < kJoined<Stored>; i += 2)
      to[i / 2] = static_cast<std::byte>(hn::GetLane(c[i]) | hn::GetLane(c[i + 1]) << 4);
  } else {
    for (size_t i = 0; i < kJoined<Stored>; ++i) {
      const auto code = static_cast<Stored>(hn::GetLane(c[i]));
      std::memcpy(to + i * sizeof(Stored), &code, sizeof(Stored));
    }
  }
}

template <class Stored>
HWY_INLINE Lanes load_codes(const std::byte* from, size_t i) {
  const LaneTag d;
  if constexpr (kStoredBits<Stored> == 4) {
    return hn::Set(d, std::to_integer<uint32_t>(from[i / 2]) >> (i % 2 * 4) & 15);
  } else {
    Stored code;
    std::memcpy(&code, from + i * sizeof(Stored), sizeof(Stored));
    return hn::Set(d, uint32_t{code});
  }
}
#endif

}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
