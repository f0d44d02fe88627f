// Stochastic rounding of what an update stores in bf16, by the random words of its elements.
//
// To be included after hwy/foreach_target.h, like any "-inl.h" of Highway; it is compiled once per target.
#if defined(PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_DRAWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_DRAWS_INL_H_
#undef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_DRAWS_INL_H_
#else
#define PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_DRAWS_INL_H_
#endif

#include <cstdint>

#include "backends/cpu/kernels/philox-inl.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE::draws {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::V;

// The random words of 4 * kWidth elements.
struct Draws {
  HWY_ALIGN uint32_t words[4 * vectors::kWidth];

  // Those whose first element is 4 * block.
  HWY_INLINE void draw(const ops::RandomStream& stream, uint32_t block) {
    const auto w = philox::random_vectors(stream, block);
    hn::StoreInterleaved4(w.word[0], w.word[1], w.word[2], w.word[3], philox::U32(), words);
  }
  // ops::update_bits, in the upper half of each lane.
  HWY_INLINE philox::VU bits(int result, int64_t vector) const {
    const auto word = hn::Load(philox::U32(), words + vector * vectors::kWidth),
               lower = hn::ShiftLeft<16>(word);
    return result == 0 ? word : result == 1 ? lower : hn::Xor(word, lower);
  }
};

// Bf16 by the random bits. What is stored as a multiple of bf16's spacing is rounded no further.
HWY_INLINE V round_by(V v, philox::VU bits) {
  return hn::BitCast(vectors::F32(),
                     hn::ShiftLeft<16>(stored::convert::bf16_bits_stochastic(vectors::F32(), v, bits)));
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE::draws
HWY_AFTER_NAMESPACE();

#endif  // include guard, toggled per target
