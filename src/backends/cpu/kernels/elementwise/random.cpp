// Dropout and normals. Lane l of a vector of counters is block l, whose four words are elements 4l .. 4l+3;
// so four vectors of words interleave into consecutive elements.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/random.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/kernels/elementwise/stored_runs.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/philox-inl.h"
#include "backends/cpu/kernels/random_operand.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/philox.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using philox::I32;
using philox::random_vectors;
using philox::U32;
using philox::VU;
using philox::Words;
using vectors::F32;
using vectors::kWidth;
using vectors::set;
using vectors::V;

// Up to four vectors' worth of elements at `to`.
HWY_INLINE void store_interleaved(V a, V b, V c, V e, float* to, int64_t n) {
  if (n >= 4 * kWidth) return hn::StoreInterleaved4(a, b, c, e, F32(), to);
  HWY_ALIGN float buffer[4 * kWidth];
  hn::StoreInterleaved4(a, b, c, e, F32(), buffer);
  std::memcpy(to, buffer, static_cast<size_t>(n) * sizeof(float));
}

// mask[i] = 1 where element 4 * block + i is kept, else 0, for i < n; the word is at least `threshold` <=
// 2^32 - 1.
void keep_mask(const ops::RandomStream& s, uint32_t block, uint32_t threshold, float* mask, int64_t n) {
  const philox::Threshold bound(threshold);
  const auto keep = [&](VU word) HWY_ATTR { return hn::IfThenElseZero(bound.keeps(word), set(1.0f)); };
  for (int64_t i = 0; i < n; i += 4 * kWidth, block += static_cast<uint32_t>(kWidth)) {
    const Words w = random_vectors(s, block);
    store_interleaved(keep(w.word[0]), keep(w.word[1]), keep(w.word[2]), keep(w.word[3]), mask + i, n - i);
  }
}

// y = 0 where the mask is, else x / keep; x may be y.
void apply_mask(const float* x, const float* mask, float keep, float* y, int64_t n) {
  const V k = set(keep);
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const auto dropped = hn::Eq(vectors::load(mask + i, part), vectors::zero());
    vectors::store(hn::IfThenZeroElse(dropped, hn::Div(vectors::load(x + i, part), k)), y + i, part);
  });
}

// word + 1/2 with one rounding; both halves convert exactly.
HWY_INLINE V to_float_plus_half(VU word) {
  const U32 d;
  const I32 di;
  const V high = hn::ConvertTo(F32(), hn::BitCast(di, hn::ShiftRight<16>(word)));
  const V low = hn::ConvertTo(F32(), hn::BitCast(di, hn::And(word, hn::Set(d, 0xFFFFU))));
  return hn::MulAdd(high, set(65536.0f), hn::Add(low, set(0.5f)));
}

// sqrt(-2 ln u), u = (word + 1/2) / 2^32. In the upper half from 1 - u, which loses nothing near u = 1:
// ln(1 - v) = ln(w) + (v's rounding error in w) / w, w = 1 - v rounded.
HWY_INLINE V radius(VU word) {
  const U32 d;
  const auto upper = hn::RebindMask(F32(), hn::Lt(hn::BitCast(I32(), word), hn::Zero(I32())));
  const V f = hn::Mul(to_float_plus_half(hn::IfThenElse(hn::RebindMask(d, upper), hn::Not(word), word)),
                      set(0x1p-32f));
  const V one = set(1.0f), w = hn::IfThenElse(upper, hn::Sub(one, f), f);
  const V lost = hn::IfThenElseZero(upper, hn::Sub(hn::Sub(one, w), f));
  const V log = hn::Add(Log(F32(), w), hn::Div(lost, w));
  return hn::Sqrt(hn::Mul(set(-2.0f), log));
}

struct CosSin {
  V cos, sin;
};

// Of 2 pi (word + 1/2) / 2^32: the nearest quarter turn and a signed rest of at most an eighth, exact in
// integers. Polynomials are Taylor's, shortened by a minimax fit over [-pi/4, pi/4]; errors below 1e-7.
HWY_INLINE CosSin cos_sin(VU word) {
  const U32 d;
  const I32 di;
  const VU quarter = hn::ShiftRight<30>(hn::Add(word, hn::Set(d, 1U << 29)));
  const auto rest = hn::BitCast(di, hn::Sub(word, hn::ShiftLeft<30>(quarter)));
  const V r = hn::Mul(hn::Add(hn::ConvertTo(F32(), rest), set(0.5f)), set(1.46291807927e-9f));  // 2 pi / 2^32
  const V r2 = hn::Mul(r, r);
  constexpr float s[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
  constexpr float c[] = {4.166664568298827e-2f, -1.388731625493765e-3f, 2.443315711809948e-5f};
  const V sin = hn::MulAdd(hn::Mul(r, r2), vector_math::polynomial(F32(), r2, s), r);
  const V cos = hn::MulAdd(hn::Mul(r2, r2), vector_math::polynomial(F32(), r2, c),
                           hn::NegMulAdd(r2, set(0.5f), set(1.0f)));
  const auto odd = hn::RebindMask(F32(), hn::TestBit(hn::BitCast(di, quarter), hn::Set(di, 1)));
  const V a = hn::IfThenElse(odd, sin, cos), b = hn::IfThenElse(odd, cos, sin);
  const VU sign_cos = hn::And(hn::ShiftLeft<30>(hn::Add(quarter, hn::Set(d, 1))), hn::Set(d, 0x80000000U));
  const VU sign_sin = hn::And(hn::ShiftLeft<30>(quarter), hn::Set(d, 0x80000000U));
  return {hn::Xor(a, hn::BitCast(F32(), sign_cos)), hn::Xor(b, hn::BitCast(F32(), sign_sin))};
}

// y[i] = mean + std * normal of element 4 * block + i, i < n.
void normals(const ops::RandomStream& s, uint32_t block, float mean, float std, float* y, int64_t n) {
  const V m = set(mean), scale = set(std);
  for (int64_t i = 0; i < n; i += 4 * kWidth, block += static_cast<uint32_t>(kWidth)) {
    const Words w = random_vectors(s, block);
    const V r0 = hn::Mul(radius(w.word[0]), scale), r1 = hn::Mul(radius(w.word[2]), scale);
    const CosSin a = cos_sin(w.word[1]), b = cos_sin(w.word[3]);
    store_interleaved(hn::MulAdd(r0, a.cos, m), hn::MulAdd(r0, a.sin, m), hn::MulAdd(r1, b.cos, m),
                      hn::MulAdd(r1, b.sin, m), y + i, n - i);
  }
}

// Rounded on the way from a block that stays in the first cache.
template <class To>
void stored_normals(const ops::RandomStream& s, uint32_t block, float mean, float std, void* to, int64_t n) {
  constexpr int64_t kDrawn = 1024;
  alignas(64) std::array<float, kDrawn> drawn;
  auto* y = static_cast<To*>(to);
  for (int64_t i = 0; i < n; i += kDrawn) {
    const int64_t count = std::min(kDrawn, n - i);
    normals(s, block + static_cast<uint32_t>(i / 4), mean, std, drawn.data(), count);
    vectors::for_vectors(count, [&](int64_t j, auto part) HWY_ATTR {
      stored::store(stored::load(drawn.data() + j, part), y + i + j, part);
    });
  }
}

}  // namespace

// Non-template names for the dispatch table.
void normals_f32(const ops::RandomStream& s, uint32_t block, float mean, float std, void* y, int64_t n) {
  normals(s, block, mean, std, static_cast<float*>(y), n);
}
void normals_bf16(const ops::RandomStream& s, uint32_t block, float mean, float std, void* y, int64_t n) {
  stored_normals<stored::Bf16>(s, block, mean, std, y, n);
}
void normals_f16(const ops::RandomStream& s, uint32_t block, float mean, float std, void* y, int64_t n) {
  stored_normals<stored::F16>(s, block, mean, std, y, n);
}

}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(keep_mask);
HWY_EXPORT(apply_mask);
HWY_EXPORT(normals_f32);
HWY_EXPORT(normals_bf16);
HWY_EXPORT(normals_f16);

// Sequence by sequence in blocks; a block's mask lies on the stack.
void dropout(const KernelCall& call, ThreadPool& pool) {
  constexpr int64_t kBlock = 4096;
  const TensorRef& x = call.inputs[0];
  const StoredRuns<1> runs(call);
  const ops::RandomStream base = stream_of(call.inputs[1], call.op->attrs);
  const double p = call.op->attrs.f64("p");
  const uint64_t threshold = ops::dropout_threshold(p);
  const float keep = static_cast<float>(1.0 - p);
  const int64_t per_sequence = x.num_elements() / x.shape().dim(0), blocks = ceil_div(per_sequence, kBlock);
  pool.run(x.shape().dim(0) * blocks, [&](int64_t tile, int) {
    const int64_t sequence = tile / blocks, begin = tile % blocks * kBlock,
                  n = std::min(kBlock, per_sequence - begin);
    alignas(64) std::array<float, kBlock> mask;
    ops::RandomStream s = base;
    s.sequence += static_cast<uint32_t>(sequence);
    if (threshold > UINT32_MAX)
      std::fill(mask.begin(), mask.end(), 0.0f);
    else
      HWY_DYNAMIC_DISPATCH(keep_mask)
    (s, static_cast<uint32_t>(begin / 4), static_cast<uint32_t>(threshold), mask.data(), n);
    const int64_t from = sequence * per_sequence + begin;
    int64_t drawn = 0;
    runs.for_runs(from, from + n, [&](const float* values, float* kept, int64_t count) {
      HWY_DYNAMIC_DISPATCH(apply_mask)(values, mask.data() + drawn, keep, kept, count);
      drawn += count;
    });
  });
}

void random_normal(const KernelCall& call, ThreadPool& pool) {
  ops::RandomStream s = stream_of(call.inputs[0], call.op->attrs);
  s.step = s.sequence = 0;
  const auto mean = static_cast<float>(call.op->attrs.f64("mean")),
             std = static_cast<float>(call.op->attrs.f64("std"));
  const TensorRef& y = call.outputs[0];
  const int64_t element_bytes = ir::bits(y.type.dtype) / 8;
  const auto run = y.type.dtype == ir::DType::kF32    ? HWY_DYNAMIC_DISPATCH(normals_f32)
                   : y.type.dtype == ir::DType::kBf16 ? HWY_DYNAMIC_DISPATCH(normals_bf16)
                                                      : HWY_DYNAMIC_DISPATCH(normals_f16);
  for_blocks(pool, y.num_elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    run(s, static_cast<uint32_t>(begin / 4), mean, std, y.data + begin * element_bytes, end - begin);
  });
}

}  // namespace

std::span<const Kernel> random_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "dropout", .run = dropout, .stored_dtypes = true},
      {.op = "random_normal", .run = random_normal, .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
