// ops/philox.h in vectors: lane l of a vector of counters is block l. Compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "ops/philox.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::philox {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using VU = hn::Vec<U32>;

struct Product {
  VU high, low;
};

// a * m in 64 bits.
HWY_INLINE Product multiply_wide(VU a, uint32_t m) {
  const U32 d;
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = uint64_t{hn::GetLane(a)} * m;
  return {hn::Set(d, static_cast<uint32_t>(product >> 32)), hn::Set(d, static_cast<uint32_t>(product))};
#else
  const hn::RepartitionToWide<U32> d64;
  const VU factor = hn::Set(d, m);
  const auto even = hn::MulEven(a, factor);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(d64, a))), factor);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
#endif
}

struct Words {
  VU word[4];
};

// ops::random_words of blocks block, block + 1, ..., one a lane.
HWY_INLINE Words random_vectors(const ops::RandomStream& s, uint32_t block) {
  const U32 d;
  VU c0 = hn::Add(hn::Iota(d, 0), hn::Set(d, block)), c1 = hn::Set(d, s.sequence);
  VU c2 = hn::Set(d, s.step), c3 = hn::Set(d, s.op_key);
  uint32_t key0 = s.seed_low, key1 = s.seed_high;
  for (int round = 0; round < ops::kPhiloxRounds; ++round) {
    const Product p0 = multiply_wide(c0, ops::kPhiloxMultiplier0),
                  p1 = multiply_wide(c2, ops::kPhiloxMultiplier1);
    c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(d, key0));
    c1 = p1.low;
    c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(d, key1));
    c3 = p0.low;
    key0 += ops::kPhiloxWeyl0;
    key1 += ops::kPhiloxWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

// Which words keep their element: those of at least the threshold.
class Threshold {
 public:
  HWY_INLINE explicit Threshold(uint32_t threshold) : bound_(flipped(hn::Set(U32(), threshold))) {}
  HWY_INLINE hn::Mask<F32> keeps(VU word) const {
    return hn::Not(hn::RebindMask(F32(), hn::Lt(flipped(word), bound_)));
  }

 private:
  // Turns unsigned order into signed order.
  static HWY_INLINE hn::Vec<I32> flipped(VU word) {
    return hn::BitCast(I32(), hn::Xor(word, hn::Set(U32(), 0x80000000U)));
  }
  hn::Vec<I32> bound_;
};

}  // namespace plimsoll::cpu::HWY_NAMESPACE::philox
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
