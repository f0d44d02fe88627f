// Gradients added to accumulators of bf16.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/accumulate.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/draws-inl.h"
#include "backends/cpu/kernels/random_operand.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::kWidth;
using vectors::V;

/// Elements [first, first + n) of the tensor, first a multiple of 4 vectors; without acc where that is null.
void accumulate_run(const ops::RandomStream& stream, std::byte* g, ir::DType dtype, const uint16_t* acc,
                    uint16_t* out, int64_t first, int64_t n) {
  draws::Draws words;
  const stored::Any from = stored::Any{g, dtype} + first;
  const auto* held = reinterpret_cast<const stored::Bf16*>(acc);
  auto* to = reinterpret_cast<stored::Bf16*>(out) + first;
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const int64_t vector = i / kWidth % 4;
    if (vector == 0) words.draw(stream, static_cast<uint32_t>((first + i) / 4));
    const V x = stored::load(from + i, part);
    const V sum = held == nullptr ? x : hn::Add(stored::load(held + first + i, part), x);
    stored::store(draws::round_by(sum, words.bits(0, vector)), to + i, part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(accumulate_run);

void accumulate(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &g = call.inputs[0], acc = input_or_none(call, 2), &out = call.outputs[0];
  const ops::RandomStream stream = stream_of(call.inputs[1], call.op->attrs);
  for_blocks(pool, out.num_elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(accumulate_run)
    (stream, g.data, g.type.dtype, acc.as<const uint16_t>(), out.as<uint16_t>(), begin, end - begin);
  });
}

}  // namespace

std::span<const Kernel> accumulate_kernels() {
  static constexpr Kernel kernels[] = {{.op = "accumulate", .run = accumulate, .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
