// The two ops of loss scaling: a few scalars.
#include "ops/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernel.h"

namespace plimsoll::cpu {
namespace {

void unscale(const KernelCall& call, ThreadPool& /*pool*/) {
  const float scaled = *call.inputs[0].as<const float>();
  const auto inverse =
      static_cast<float>(1.0 / static_cast<double>(call.inputs[1].as<const float>()[ops::kScale]));
  const float norm = scaled * inverse;
  const float clip = static_cast<float>(ops::max_norm_of(call.op->attrs)) / (norm + 1e-6F);
  *call.outputs[0].as<float>() = norm;
  *call.outputs[1].as<float>() =
      std::isfinite(scaled) ? std::min(1.0F, clip) * inverse : std::numeric_limits<float>::quiet_NaN();
}

void next_scale(const KernelCall& call, ThreadPool& /*pool*/) {
  std::array<float, ops::kScalerFields> scaler{};
  std::copy_n(call.inputs[0].as<const float>(), scaler.size(), scaler.begin());
  const bool finite = std::isfinite(*call.inputs[1].as<const float>());
  scaler = ops::next_scaler(scaler, ops::scaling_of(call.op->attrs), finite);
  std::copy(scaler.begin(), scaler.end(), call.outputs[0].as<float>());
}

constexpr Kernel kLossScaleKernels[] = {{.op = "unscale", .run = unscale},
                                        {.op = "next_scale", .run = next_scale}};

}  // namespace

std::span<const Kernel> loss_scale_kernels() { return kLossScaleKernels; }

}  // namespace plimsoll::cpu
