// The two ops of delayed scaling: a few numbers for each operand.
#include "ops/fp8_scaling.h"

#include <algorithm>

#include "backends/cpu/kernel.h"
#include "base/at.h"

namespace plimsoll::cpu {
namespace {

std::span<float> floats(const TensorRef& ref) { return {ref.as<float>(), at(ref.num_elements())}; }

void record_amax(const KernelCall& call, ThreadPool& /*pool*/) {
  const std::vector<int64_t>& slots = call.op->attrs.ints("slots");
  for (size_t i = 0; i < slots.size(); ++i)
    ops::raise_amax(floats(call.outputs[0]), {&slots[i], 1}, floats(call.inputs[1 + i]));
}

void next_fp8_scales(const KernelCall& call, ThreadPool& /*pool*/) {
  ops::advance_scales(call.op->attrs, floats(call.outputs[0]), floats(call.outputs[1]));
}

constexpr Kernel kFp8ScalingKernels[] = {{.op = "record_amax", .run = record_amax},
                                         {.op = "next_fp8_scales", .run = next_fp8_scales}};

}  // namespace

std::span<const Kernel> fp8_scaling_kernels() { return kFp8ScalingKernels; }

}  // namespace plimsoll::cpu
