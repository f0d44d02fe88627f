// AdamW with moments in FP8, block by block: a block's moments become f32 on the stack, take the step, and
// are encoded again with the scale of their largest magnitude. The arithmetic is the definition's own
// (ops/moment_codes.h).
#include <algorithm>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/tensor_update.h"
#include "backends/cpu/kernels/tensor_chunks.h"
#include "base/at.h"
#include "ops/moment_codes.h"

namespace plimsoll::cpu {
namespace {

using ops::MomentCode;
using ops::MomentScale;

/// The states of one moment, by their place.
struct Moment {
  MomentCode code;
  size_t codes, absmax;
  size_t power = 0;  ///< 0: it has none
};
/// A moment's values, of one block.
struct Values {
  std::span<float> of;
  int64_t first, block;
};

void load(const TensorUpdateCall& call, const Moment& moment, const Values& values) {
  const int64_t width = ops::moment_code_bytes(moment.code);
  const auto n = static_cast<int64_t>(values.of.size());
  MomentScale scale{.absmax = call.states[moment.absmax].as<const float>()[values.block]};
  if (moment.power > 0) scale.power = call.states[moment.power].as<const float>()[values.block];
  ops::decode_moments(moment.code, scale,
                      {call.states[moment.codes].data + values.first * width, at(n * width)}, values.of);
}

void store(const TensorUpdateCall& call, const Moment& moment, const Values& values) {
  const int64_t width = ops::moment_code_bytes(moment.code);
  const auto n = static_cast<int64_t>(values.of.size());
  const MomentScale scale = ops::encode_moments(
      moment.code, values.of, {call.new_states[moment.codes].data + values.first * width, at(n * width)});
  call.new_states[moment.absmax].as<float>()[values.block] = scale.absmax;
  if (moment.power > 0) call.new_states[moment.power].as<float>()[values.block] = scale.power;
}

template <int64_t kBlock>
void update(const KernelCall& kernel_call, ThreadPool& pool, const Moment& first, const Moment& second) {
  const TensorUpdateCall call(kernel_call);
  if (call.is_skipped) return call.keep(pool);
  static_assert(kChunk % kBlock == 0);
  for_blocks(pool, call.param.num_elements(), kChunk, [&](int64_t begin, int64_t end) {
    float step[kBlock], m[kBlock], v[kBlock];
    for (int64_t element = begin; element < end; element += kBlock) {
      const int64_t n = std::min(kBlock, end - element), block = element / kBlock;
      const Values means{{m, at(n)}, element, block}, squares{{v, at(n)}, element, block};
      load_gradient(call, element, n, step);
      load(call, first, means);
      load(call, second, squares);
      ops::adamw_block(call.group, {step, at(n)}, means.of, squares.of);
      step_param(call, element, n, call.group[ops::kAdamwDecay], step);
      store(call, first, means);
      store(call, second, squares);
    }
  });
}

void adamw_fp8_lm(const KernelCall& call, ThreadPool& pool) {
  update<ops::kCodeBlock>(call, pool, {MomentCode::kE4m3, 0, 2}, {MomentCode::kFp16, 1, 3});
}
void adamw_coat(const KernelCall& call, ThreadPool& pool) {
  update<ops::kCoatBlock>(call, pool, {MomentCode::kExpanded, 0, 2, 4}, {MomentCode::kExpanded, 1, 3, 5});
}

}  // namespace

std::span<const Kernel> adamw_fp8_kernels() {
  static constexpr Kernel kernels[] = {{.op = "adamw_fp8_lm", .run = adamw_fp8_lm, .stored_dtypes = true},
                                       {.op = "adamw_coat", .run = adamw_coat, .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
