// Codes of a dynamic map and back, a vector at a time: the same codes and values as DynamicMap on each
// instruction set. Where a vector has sixteen lanes nothing is gathered: tables are permuted in registers,
// and a code is computed from the pieces that the map is made of (DynamicMap::Pieces); too near to a bound,
// the general look-up decides.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_MAP_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_MAP_VECTORS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_MAP_VECTORS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_MAP_VECTORS_INL_H_
#endif

#include <array>

#include "backends/cpu/kernels/vectors-inl.h"
#include "hwy/highway.h"
#include "numerics/dynamic_map.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::map_vectors {

namespace hn = hwy::HWY_NAMESPACE;
using numerics::DynamicMap;
using vectors::F32;
using vectors::kWidth;
using vectors::set;
using vectors::V;
using I32 = hn::RebindToSigned<F32>;
using VI = hn::Vec<I32>;
using Bytes8 = hn::Rebind<uint8_t, F32>;

// DynamicMap's magnitude of each lane, given as its bits, by its table.
HWY_INLINE VI found(const DynamicMap& map, VI magnitude) {
  const VI half = hn::Sub(hn::ShiftRight<16>(magnitude), hn::Set(I32(), DynamicMap::kFirstHalf));
  const VI slot = hn::Min(hn::Max(half, hn::Zero(I32())), hn::Set(I32(), DynamicMap::kHalves - 1));
  const VI entry = hn::GatherIndex(I32(), map.halves.data(), slot);
  const VI lower = hn::And(magnitude, hn::Set(I32(), 0xFFFF));
  // A mask is -1 as an integer.
  const VI above = hn::VecFromMask(I32(), hn::Gt(lower, hn::ShiftRight<8>(entry)));
  return hn::Sub(hn::And(entry, hn::Set(I32(), 0xFF)), above);
}

#if HWY_TARGET == HWY_AVX3

// Entry `index` modulo 32 of 32 values; Highway 1.0.3 has no such permutation.
HWY_INLINE V pick32(const float* table, VI index) {
  return V{
      _mm512_permutex2var_ps(hn::LoadU(F32(), table).raw, index.raw, hn::LoadU(F32(), table + kWidth).raw)};
}
HWY_INLINE V pick16(const std::array<float, 16>& table, VI index) {
  return hn::TableLookupLanes(hn::Load(F32(), table.data()), hn::IndicesFromVec(F32(), index));
}

// Entry `index` modulo 128 of 128 values.
HWY_INLINE V pick128(const float* table, VI index) {
  const auto bit = [&](int b)
                       HWY_ATTR { return hn::RebindMask(F32(), hn::TestBit(index, hn::Set(I32(), b))); };
  const auto of_bit5 = bit(32), of_bit6 = bit(64);
  return hn::IfThenElse(of_bit6,
                        hn::IfThenElse(of_bit5, pick32(table + 96, index), pick32(table + 64, index)),
                        hn::IfThenElse(of_bit5, pick32(table + 32, index), pick32(table, index)));
}

// The values of kWidth codes.
template <bool kSigned>
HWY_INLINE V values(const DynamicMap& map, const uint8_t* codes) {
  const VI index = hn::PromoteTo(I32(), hn::LoadU(Bytes8(), codes));
  if constexpr (kSigned) {  // as far below 0 as above it, but for 1
    const VI place = hn::Sub(index, hn::Set(I32(), map.zero)), magnitude = hn::Abs(place);
    const auto is_one = hn::RebindMask(F32(), hn::Eq(magnitude, hn::Set(I32(), 128)));
    const V value = hn::IfThenElse(is_one, set(1.0F), pick128(map.values.data() + map.zero, magnitude));
    return hn::CopySignToAbs(value, hn::BitCast(F32(), place));
  }
  const auto upper = hn::RebindMask(F32(), hn::TestBit(index, hn::Set(I32(), 128)));
  return hn::IfThenElse(upper, pick128(map.values.data() + 128, index), pick128(map.values.data(), index));
}

// DynamicMap's magnitude of each lane: from the pieces, by the table where one is too near to a bound.
HWY_INLINE VI magnitudes(const DynamicMap& map, V x) {
  const DynamicMap::Pieces& p = map.pieces;
  const VI bits = hn::Max(hn::BitCast(I32(), x), hn::Set(I32(), DynamicMap::Pieces::kLeast));
  const auto* of_octave = reinterpret_cast<const float*>(p.of_octave.data());
  const VI low = hn::BitCast(I32(), pick32(of_octave, hn::ShiftRight<23>(bits)));
  const auto above = hn::RebindMask(I32(), hn::Gt(x, pick16(p.end, low)));
  const VI piece = hn::Sub(low, hn::VecFromMask(I32(), above));
  const V place =
      hn::Min(hn::MulAdd(x, pick16(p.slope, piece), pick16(p.offset, piece)), pick16(p.last, piece));
  const V whole = hn::Round(place);
  const V apart = hn::Abs(hn::Sub(place, whole));
  if (HWY_LIKELY(hn::AllTrue(F32(), hn::Lt(apart, set(0.5F - DynamicMap::Pieces::kMargin)))))
    return hn::ConvertTo(I32(), whole);
  return found(map, hn::BitCast(I32(), x));
}

// Codes, each of one byte.
HWY_INLINE void store_codes(VI codes, uint8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(codes.raw));
}

#else

HWY_INLINE void store_codes(VI codes, uint8_t* to) {
  hn::StoreU(hn::DemoteTo(Bytes8(), codes), Bytes8(), to);
}

template <bool kSigned>
HWY_INLINE V values(const DynamicMap& map, const uint8_t* codes) {
  return hn::GatherIndex(F32(), map.values.data(), hn::PromoteTo(I32(), hn::LoadU(Bytes8(), codes)));
}

HWY_INLINE VI magnitudes(const DynamicMap& map, V x) { return found(map, hn::BitCast(I32(), x)); }

#endif

// DynamicMap::code of each lane.
template <bool kSigned>
HWY_INLINE VI codes(const DynamicMap& map, V x) {
  const VI k = magnitudes(map, hn::Abs(x));
  if constexpr (!kSigned) return k;
  const VI zero = hn::Set(I32(), map.zero);
  const auto negative = hn::RebindMask(I32(), hn::Lt(x, vectors::zero()));
  return hn::IfThenElse(negative, hn::Sub(zero, hn::Min(k, zero)), hn::Add(zero, k));
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::map_vectors
HWY_AFTER_NAMESPACE();
#endif
