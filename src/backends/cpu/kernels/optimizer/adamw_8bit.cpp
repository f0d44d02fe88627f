// AdamW with moments of 8 bits, block by block: codes are read through their map, the block's new moments
// wait on the stack until their largest magnitude is known, then each becomes the nearest code. A code is
// found by the upper half of its magnitude and one comparison (numerics/dynamic_map.h); vectors of sixteen
// values compute it (map_vectors-inl.h). Memory moves 16 bytes an element in fp32, AdamW's 28.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/adamw_8bit.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/map_vectors-inl.h"
#include "backends/cpu/kernels/optimizer/tensor_update.h"
#include "backends/cpu/kernels/tensor_chunks.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "numerics/dynamic_map.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ADAMW_8BIT_CPP_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_OPTIMIZER_ADAMW_8BIT_CPP_
namespace plimsoll::cpu {
/// A block's moments of one kind, and where its codes and their scale lie.
struct CodeBlock {
  const uint8_t* codes;
  uint8_t* new_codes;
  float absmax;
  float* new_absmax;
};
/// A whole block's gradient and parameter where both are f32 and the parameter has no copy.
struct PlainBlock {
  const float *gradient, *param;
  float* new_param;
  float clip;
};
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using numerics::DynamicMap;
using vectors::F32;
using vectors::kWidth;
using vectors::set;
using vectors::V;

// Whole vectors: a block's end lies within its padding.
constexpr int64_t kPadded = ops::kCodeBlock;
static_assert(kPadded % kWidth == 0);

template <bool kSigned>
HWY_INLINE void encode(const DynamicMap& map, const CodeBlock& block, const float* x, V largest, int64_t n) {
  const float absmax = hn::GetLane(hn::MaxOfLanes(F32(), largest));
  *block.new_absmax = absmax;
  const V scale = set(absmax > 0.0F ? 1.0F / absmax : 0.0F);
  HWY_ALIGN uint8_t padded[kPadded];
  uint8_t* to = n == kPadded ? block.new_codes : padded;
  for (int64_t i = 0; i < n; i += kWidth)
    map_vectors::store_codes(map_vectors::codes<kSigned>(map, hn::Mul(hn::Load(F32(), x + i), scale)),
                             to + i);
  if (to == padded) std::copy_n(padded, n, block.new_codes);
}

// The codes of a block whose end is none of a vector's, behind them those of zeros.
HWY_INLINE const uint8_t* padded_codes(const uint8_t* codes, int64_t n, uint8_t* padded) {
  if (n == kPadded) return codes;
  std::fill(std::copy_n(codes, n, padded), padded + kPadded, uint8_t{0});
  return padded;
}

// `gradient(i)` is a vector of elements from i on, zeros behind the n; `take_step(i, step)` takes theirs.
template <class Gradient, class Step>
HWY_INLINE void block_of(const float* group, const CodeBlock& first, const CodeBlock& second, int64_t n,
                         const Gradient& gradient, const Step& take_step) {
  const auto field = [&](ops::AdamwField f) HWY_ATTR { return set(group[f]); };
  const V beta1 = field(ops::kAdamwBeta1), one_minus_beta1 = field(ops::kAdamwOneMinusBeta1);
  const V beta2 = field(ops::kAdamwBeta2), one_minus_beta2 = field(ops::kAdamwOneMinusBeta2);
  const V eps = field(ops::kAdamwEpsilon), step_size = field(ops::kAdamwStepSize),
          correction = field(ops::kAdamwSqrtCorrection2);
  const DynamicMap &signed_map = numerics::signed_dynamic_map(),
                   &unsigned_map = numerics::unsigned_dynamic_map();
  HWY_ALIGN float means[kPadded], squares[kPadded];
  HWY_ALIGN uint8_t padded_first[kPadded], padded_second[kPadded];
  const uint8_t *m_codes = padded_codes(first.codes, n, padded_first),
                *v_codes = padded_codes(second.codes, n, padded_second);
  const V m_scale = set(first.absmax), v_scale = set(second.absmax);
  V largest_mean = vectors::zero(), largest_square = vectors::zero();
  for (int64_t i = 0; i < n; i += kWidth) {
    const V g = gradient(i);
    V m = hn::Add(hn::Mul(hn::Mul(map_vectors::values<true>(signed_map, m_codes + i), m_scale), beta1),
                  hn::Mul(g, one_minus_beta1));
    V v = hn::Add(hn::Mul(hn::Mul(map_vectors::values<false>(unsigned_map, v_codes + i), v_scale), beta2),
                  hn::Mul(hn::Mul(g, one_minus_beta2), g));
    if (i + kWidth > n) {
      const auto real = hn::FirstN(F32(), static_cast<size_t>(n - i));
      m = hn::IfThenElseZero(real, m), v = hn::IfThenElseZero(real, v);
    }
    const V denominator = hn::Add(hn::Div(hn::Sqrt(v), correction), eps);
    take_step(i, hn::Mul(step_size, hn::Div(m, denominator)));
    hn::Store(m, F32(), means + i);
    hn::Store(v, F32(), squares + i);
    largest_mean = hn::Max(largest_mean, hn::Abs(m));
    largest_square = hn::Max(largest_square, v);
  }
  encode<true>(signed_map, first, means, largest_mean, n);
  encode<false>(unsigned_map, second, squares, largest_square, n);
}

// `gradient` of kPadded values, zeros behind the n; the steps take its place.
void stored_block(const float* group, const CodeBlock& first, const CodeBlock& second, float* gradient,
                  int64_t n) {
  block_of(
      group, first, second, n, [&](int64_t i) HWY_ATTR { return hn::Load(F32(), gradient + i); },
      [&](int64_t i, V step) HWY_ATTR { hn::Store(step, F32(), gradient + i); });
}

// As load_gradient, stored_block and step_param, in one pass.
void plain_block(const float* group, const CodeBlock& first, const CodeBlock& second,
                 const PlainBlock& block) {
  const V clip = set(block.clip), decay = set(group[ops::kAdamwDecay]);
  block_of(
      group, first, second, kPadded,
      [&](int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(F32(), block.gradient + i), clip); },
      [&](int64_t i, V step) HWY_ATTR {
        const V p = hn::LoadU(F32(), block.param + i);
        hn::StoreU(hn::Sub(hn::Mul(p, decay), step), F32(), block.new_param + i);
      });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(plain_block);
HWY_EXPORT(stored_block);

CodeBlock code_block(const TensorUpdateCall& call, size_t codes, size_t absmax, int64_t block) {
  return {call.states[codes].as<const uint8_t>() + block * ops::kCodeBlock,
          call.new_states[codes].as<uint8_t>() + block * ops::kCodeBlock,
          call.states[absmax].as<const float>()[block], call.new_states[absmax].as<float>() + block};
}

void adamw_8bit(const KernelCall& kernel_call, ThreadPool& pool) {
  const TensorUpdateCall call(kernel_call);
  if (call.is_skipped) return call.keep(pool);
  static_assert(kChunk % ops::kCodeBlock == 0);
  const bool is_plain = call.param.type.dtype == ir::DType::kF32 && call.grad.type.dtype == ir::DType::kF32 &&
                        call.rounded == ir::DType::kF32 && call.copy == nullptr;
  for_blocks(pool, call.param.num_elements(), kChunk, [&](int64_t begin, int64_t end) {
    alignas(64) float values[ops::kCodeBlock];
    for (int64_t at = begin; at < end; at += ops::kCodeBlock) {
      const int64_t n = std::min(ops::kCodeBlock, end - at), block = at / ops::kCodeBlock;
      const CodeBlock first = code_block(call, 0, 2, block), second = code_block(call, 1, 3, block);
      if (is_plain && n == ops::kCodeBlock) {
        const PlainBlock plain{call.grad.as<const float>() + at, call.param.as<const float>() + at,
                               call.new_param.as<float>() + at, call.clip};
        HWY_DYNAMIC_DISPATCH(plain_block)(call.group, first, second, plain);
        continue;
      }
      if (n < ops::kCodeBlock) std::fill(values + n, values + ops::kCodeBlock, 0.0F);
      load_gradient(call, at, n, values);
      HWY_DYNAMIC_DISPATCH(stored_block)(call.group, first, second, values, n);
      step_param(call, at, n, call.group[ops::kAdamwDecay], values);
    }
  });
}

constexpr Kernel kKernels[] = {{.op = "adamw_8bit", .run = adamw_8bit, .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> adamw_8bit_kernels() { return kKernels; }

}  // namespace plimsoll::cpu
#endif
