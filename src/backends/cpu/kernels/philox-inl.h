// ops/philox.h in vectors: lane l of a vector of counters is block l. Compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_PHILOX_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "numerics/philox-inl.h"
#include "ops/philox.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::philox {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using VU = hn::Vec<U32>;

using Words = numerics::HWY_NAMESPACE::PhiloxVectors;

// ops::random_words of blocks block, block + 1, ..., one a lane.
HWY_INLINE Words random_vectors(const ops::RandomStream& s, uint32_t block) {
  const U32 d;
  const Words counter{{hn::Add(hn::Iota(d, 0), hn::Set(d, block)), hn::Set(d, s.sequence), hn::Set(d, s.step),
                       hn::Set(d, s.op_key)}};
  return numerics::HWY_NAMESPACE::philox_vectors(counter, s.seed_low, s.seed_high);
}

// ops::attention_words of blocks block, block + 1, ..., one a lane.
HWY_INLINE Words attention_vectors(const ops::RandomStream& s, uint64_t block) {
  const U32 d;
  const auto low = static_cast<uint32_t>(block);
  const Words words = random_vectors(ops::attention_stream_of_block(s, block), low);
  const uint32_t left = ~low;  // blocks behind the first that have the same high bits
  if (left >= hn::Lanes(d) - 1) [[likely]]
    return words;
  const Words behind = random_vectors(ops::attention_stream_of_block(s, block + hn::Lanes(d)), low);
  const auto before = hn::FirstN(d, size_t{left} + 1);
  Words both;
  for (int i = 0; i < 4; ++i) both.word[i] = hn::IfThenElse(before, words.word[i], behind.word[i]);
  return both;
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
