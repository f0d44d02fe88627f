// The states of delayed scaling.
#include "ops/fp8_scaling.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernels/loss/fp8_scaling_args.h"
#include "backends/cuda/kernels/operands.h"
#include "base/at.h"
#include "numerics/formats.h"

namespace plimsoll::cuda {
namespace {

Status record_amax(const KernelCall& call, Stream& stream) {
  const std::vector<int64_t>& slots = call.op->attrs.ints("slots");
  for (size_t first = 0; first < slots.size(); first += kSlotsAtOnce) {
    RecordAmax a;
    a.history = call.outputs[0].as<float>();
    a.n = static_cast<int>(std::min<size_t>(kSlotsAtOnce, slots.size() - first));
    for (size_t i = 0; i < static_cast<size_t>(a.n); ++i) {
      a.slot[i] = static_cast<int>(slots[first + i]);
      a.amax[i] = call.inputs[1 + first + i].as<const float>();
    }
    PLIMSOLL_TRY(stream.launch(kRecordAmax, blocks(a.n, kThreads), {kThreads}, 0, a));
  }
  return Ok{};
}

Status next_fp8_scales(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const ir::Shape& history = call.outputs[0].shape();
  const auto below_margin = [&](numerics::Format format) {
    return std::ldexp(static_cast<float>(numerics::info(format).max), -static_cast<int>(attrs.i64("margin")));
  };
  NextScales a;
  a.history = call.outputs[0].as<float>();
  a.scales = call.outputs[1].as<float>();
  a.length = history.dim(0);
  a.slots = history.dim(1);
  while (a.first_gradient < a.slots && !ops::is_gradient_slot(a.first_gradient, a.slots)) ++a.first_gradient;
  a.largest = below_margin(numerics::Format::kE4m3);
  a.largest_gradient = attrs.flag("hybrid") ? below_margin(numerics::Format::kE5m2) : a.largest;
  a.most_recent = attrs.flag("most_recent") ? 1 : 0;
  return stream.launch(kNextScales, blocks(a.slots, kThreads), {kThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> fp8_scaling_kernels() {
  static constexpr Kernel kernels[] = {{.op = "record_amax", .run = record_amax},
                                       {.op = "next_fp8_scales", .run = next_fp8_scales}};
  return kernels;
}

}  // namespace plimsoll::cuda
