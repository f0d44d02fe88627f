// The Hadamard transform and the stochastic rounding of FP8's recipes, a chunk of numbers at a time: what is
// called for each run of sixteen takes longer than its arithmetic.
#include "numerics/fp8_recipes.h"
#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/fp8_rounding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

constexpr uint32_t kSigns = 0xD7E8;  // bit i: element i is negated

#if HWY_TARGET != HWY_SCALAR
namespace hn = hwy::HWY_NAMESPACE;

using Four = hn::FixedTag<float, 4>;
using VFour = hn::Vec<Four>;

/// -0 in lanes whose bit of `bits` is set, else 0.
HWY_INLINE VFour signs_of(uint32_t bits) {
  const hn::FixedTag<uint32_t, 4> d;
  const auto lanes = hn::And(hn::Set(d, bits), hn::Shl(hn::Set(d, 1U), hn::Iota(d, 0)));
  return hn::BitCast(Four(), hn::IfThenElseZero(hn::Ne(lanes, hn::Zero(d)), hn::Set(d, 0x80000000U)));
}

/// In each pair the sum, and the first less the second; pairs of neighbours, and of those two apart.
HWY_INLINE VFour neighbours(VFour v) { return hn::Add(hn::Shuffle2301(v), hn::Xor(v, signs_of(0b1010))); }
HWY_INLINE VFour two_apart(VFour v) { return hn::Add(hn::Shuffle1032(v), hn::Xor(v, signs_of(0b1100))); }

/// H16 diag(s) x / 4 of a run, which is not rounded yet.
HWY_INLINE void transform_run(const float* x, float* out) {
  const Four d;
  VFour v[4];
  for (size_t k = 0; k < 4; ++k)
    v[k] = two_apart(neighbours(hn::Xor(hn::LoadU(d, x + 4 * k), signs_of(kSigns >> 4 * k & 15U))));
  const VFour a = hn::Add(v[0], v[1]), b = hn::Sub(v[0], v[1]);
  const VFour e = hn::Add(v[2], v[3]), f = hn::Sub(v[2], v[3]);
  const VFour quarter = hn::Set(d, 0.25F);
  hn::StoreU(hn::Mul(hn::Add(a, e), quarter), d, out);
  hn::StoreU(hn::Mul(hn::Add(b, f), quarter), d, out + 4);
  hn::StoreU(hn::Mul(hn::Sub(a, e), quarter), d, out + 8);
  hn::StoreU(hn::Mul(hn::Sub(b, f), quarter), d, out + 12);
}
#else
void transform_run(const float* x, float* out) {
  std::array<float, kHadamardRun> v;
  for (size_t i = 0; i < v.size(); ++i) v[i] = (kSigns >> i & 1U) != 0 ? -x[i] : x[i];
  for (size_t half = 1; half < v.size(); half *= 2)
    for (size_t i = 0; i < v.size(); ++i) {
      if ((i & half) != 0) continue;
      const float a = v[i], b = v[i + half];
      v[i] = a + b;
      v[i + half] = a - b;
    }
  for (size_t i = 0; i < v.size(); ++i) out[i] = v[i] * 0.25F;
}
#endif

void transform(const float* x, size_t n, float* out) {
  for (size_t i = 0; i < n; i += kHadamardRun) transform_run(x + i, out + i);
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::numerics {
namespace {

HWY_EXPORT(transform);

constexpr size_t kBlock = 16;    // of nvfp4
constexpr size_t kChunk = 1024;  // whole runs and blocks, and an even number of codes

}  // namespace

void random_hadamard(std::span<float> x) {
  PLIMSOLL_CHECK(x.size() % kHadamardRun == 0, "random_hadamard: a run is not whole");
  alignas(64) std::array<float, kChunk> transformed;
  alignas(64) std::array<std::byte, 2 * kChunk> rounded;
  for (size_t begin = 0; begin < x.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, x.size() - begin);
    HWY_DYNAMIC_DISPATCH(transform)(x.data() + begin, n, transformed.data());
    encode(Format::kBf16, std::span(transformed).first(n), std::span(rounded).first(2 * n));
    decode(Format::kBf16, std::span(rounded).first(2 * n), x.subspan(begin, n));
  }
}

void quantize_stochastically(const TensorScale& tensor, std::span<const float> row,
                             std::span<std::byte> codes, std::span<std::byte> scales,
                             const RandomKey& random) {
  quantize(Scheme::kNvfp4, tensor, row, 1, static_cast<int64_t>(row.size()), codes, scales);
  alignas(64) std::array<float, kChunk> scaled;
  std::array<float, kChunk / kBlock> factors;
  for (size_t begin = 0; begin < row.size(); begin += kChunk) {
    const size_t n = std::min(kChunk, row.size() - begin), blocks = (n + kBlock - 1) / kBlock;
    decode(Format::kE4m3, scales.subspan(begin / kBlock, blocks), std::span(factors).first(blocks));
    // As nearest codes have it.
    for (float& factor : std::span(factors).first(blocks))
      factor = std::min(1.0F / (factor * (1.0F / tensor.scale)), std::numeric_limits<float>::max());
    for (size_t b = 0; b < blocks; ++b)
      for (size_t i = b * kBlock, end = std::min(n, i + kBlock); i < end; ++i)
        scaled[i] = row[begin + i] * factors[b];
    RandomKey key = random;
    key.first_element += begin;
    encode(Format::kE2m1, std::span(scaled).first(n), codes.subspan(begin / 2, (n + 1) / 2),
           {.rounding = Rounding::kStochastic, .saturate = true, .random = key});
  }
}

}  // namespace plimsoll::numerics
#endif  // HWY_ONCE
