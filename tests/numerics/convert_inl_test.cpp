// The vectors that kernels use against the arrays of convert.h, each instruction set in its turn.
#include "numerics/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/convert_inl_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cstring>

#include "numerics/convert-inl.h"

// Once, although this file is read for each target.
#ifndef PLIMSOLL_TESTS_NUMERICS_CONVERT_INL_RESULTS_
#define PLIMSOLL_TESTS_NUMERICS_CONVERT_INL_RESULTS_
namespace plimsoll::numerics {

/// Each function over n numbers; the last, shorter vector goes through the _n forms.
struct VectorResults {
  uint16_t *bf16, *f16, *bf16_stochastic;
  uint32_t* pairs;
  float *tf32, *tf32_stochastic, *from_bf16, *from_f16;
};

}  // namespace plimsoll::numerics
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::numerics::HWY_NAMESPACE {
namespace {

void run_all(const float* x, const uint32_t* words, size_t n, const VectorResults& r) {
  const hn::ScalableTag<float> d;
  const UnsignedOf<decltype(d)> du;
  const hn::Rebind<uint16_t, decltype(d)> du16;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto word = hn::LoadU(du, words + i);
    store_bf16(v, d, r.bf16 + i);
    store_f16(v, d, r.f16 + i);
    hn::StoreU(lower_halves(d, bf16_bits_stochastic(d, v, word)), du16, r.bf16_stochastic + i);
    hn::StoreU(bf16_pairs(d, v, hn::Neg(v)), du, r.pairs + i);
    hn::StoreU(round_tf32(d, v), d, r.tf32 + i);
    hn::StoreU(round_tf32_stochastic(d, v, word), d, r.tf32_stochastic + i);
    hn::StoreU(load_bf16(d, r.bf16 + i), d, r.from_bf16 + i);
    hn::StoreU(load_f16(d, r.f16 + i), d, r.from_f16 + i);
  }
  if (i == n) return;
  HWY_ALIGN float rest[HWY_LANES(float)] = {};
  std::memcpy(rest, x + i, (n - i) * sizeof(float));
  store_bf16_n(hn::Load(d, rest), d, r.bf16 + i, n - i);
  store_f16_n(hn::Load(d, rest), d, r.f16 + i, n - i);
  hn::Store(load_bf16_n(d, r.bf16 + i, n - i), d, rest);
  std::memcpy(r.from_bf16 + i, rest, (n - i) * sizeof(float));
  hn::Store(load_f16_n(d, r.f16 + i, n - i), d, rest);
  std::memcpy(r.from_f16 + i, rest, (n - i) * sizeof(float));
}

}  // namespace
}  // namespace plimsoll::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include "numerics/convert.h"
#include "numerics/reference.h"

namespace plimsoll::numerics {
namespace {

HWY_EXPORT(run_all);

template <class T>
std::vector<T> encoded(Format format, std::span<const float> x, const EncodeOptions& options = {}) {
  std::vector<T> codes(x.size());
  encode(format, x, std::as_writable_bytes(std::span(codes)), options);
  return codes;
}

template <class T, class U>
bool same_bytes(const std::vector<T>& a, const std::vector<U>& b, size_t n) {
  return std::memcmp(a.data(), b.data(), n * sizeof(T)) == 0;
}

TEST(ConvertInl, VectorsAgreeWithArrays) {
  // Random bits, NaN payloads and both formats' ties. Words of all ones round up what can be rounded up.
  auto x = adversarial(finite_values(kDefinitions[0]));
  const auto more = random_floats(5003);
  x.insert(x.end(), more.begin(), more.end());
  const std::vector<uint32_t> words(x.size(), 0xFFFFFFFFU);
  const size_t n = x.size(), whole = n / 16 * 16;
  EachTarget().run([&](const char* target) {
    std::vector<uint16_t> bf16(n), f16(n), up(n);
    std::vector<uint32_t> pairs(n);
    std::vector<float> tf32(n), tf32_up(n), from_bf16(n), from_f16(n), expected(n);
    HWY_DYNAMIC_DISPATCH(run_all)
    (x.data(), words.data(), n,
     {bf16.data(), f16.data(), up.data(), pairs.data(), tf32.data(), tf32_up.data(), from_bf16.data(),
      from_f16.data()});
    EXPECT_TRUE(same_bytes(bf16, encoded<uint16_t>(Format::kBf16, x), n)) << target;
    EXPECT_TRUE(same_bytes(f16, encoded<uint16_t>(Format::kFp16, x), n)) << target;
    EXPECT_TRUE(same_bytes(tf32, encoded<uint32_t>(Format::kTf32, x), whole)) << target;
    decode(Format::kFp16, std::as_bytes(std::span(f16)), expected);
    EXPECT_TRUE(same_bytes(from_f16, expected, n)) << target;
    decode(Format::kBf16, std::as_bytes(std::span(bf16)), expected);
    EXPECT_TRUE(same_bytes(from_bf16, expected, n)) << target;
    for (size_t i = 0; i < whole; ++i) {
      ASSERT_EQ(pairs[i], static_cast<uint32_t>(bf16[i]) | static_cast<uint32_t>(bf16[i] ^ 0x8000U) << 16)
          << target;
      const auto bits = std::bit_cast<uint32_t>(x[i]), special = bits & 0x7F800000U;
      if (special == 0x7F800000U) continue;
      ASSERT_EQ(up[i], (bits + 0xFFFFU) >> 16) << target;
      ASSERT_EQ(std::bit_cast<uint32_t>(tf32_up[i]), (bits + 0x1FFFU) & 0xFFFFE000U) << target;
    }
  });
}

TEST(ConvertInl, StochasticVectorsAreStochasticArrays) {
  const RandomKey key{5, 6, 0};
  const auto x = ordinary_floats(256);
  // Where the array rounds up, a word of 0 does not, unless nothing is cut off.
  const std::vector<uint32_t> zeros(x.size());
  std::vector<uint16_t> unused(x.size()), down(x.size());
  std::vector<uint32_t> pairs(x.size());
  std::vector<float> a(x.size()), b(x.size()), c(x.size()), e(x.size());
  const auto drawn = encoded<uint16_t>(Format::kBf16, x, {.rounding = Rounding::kStochastic, .random = key});
  HWY_DYNAMIC_DISPATCH(run_all)
  (x.data(), zeros.data(), x.size(),
   {unused.data(), unused.data(), down.data(), pairs.data(), a.data(), b.data(), c.data(), e.data()});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(down[i], std::bit_cast<uint32_t>(x[i]) >> 16);
    ASSERT_LE(drawn[i] - down[i], 1);
  }
}

}  // namespace
}  // namespace plimsoll::numerics
#endif
