// Layer scale and stochastic depth, as maps of channels with a scale of each sample and no centre.
#include <algorithm>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/norm/channels.h"
#include "backends/cpu/kernels/random_operand.h"

namespace plimsoll::cpu {
namespace {

/// Operand 1 is the branch, 2 and 3 scale? and kept?.
struct BranchFactors {
  BranchFactors(const KernelCall& call, float* scratch)
      : samples(call.inputs[1].shape().dim(0)),
        channels(call.inputs[1].shape().dim(-1)),
        zeros(scratch),
        kept(zeros + samples * channels),
        product(kept + samples * channels),
        row(product + samples * channels) {
    const TensorRef scale = input_or_none(call, 2), keeps = input_or_none(call, 3);
    std::fill_n(zeros, samples * channels, 0.0F);
    if (scale)
      as_f32(scale, row);
    else
      std::fill_n(row, channels, 1.0F);
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t c = 0; c < channels; ++c) {
        kept[n * channels + c] = keeps ? keeps.as<const float>()[n] : 1.0F;
        product[n * channels + c] = row[c] * kept[n * channels + c];
      }
  }
  static int64_t elements(const ir::Shape& branch) { return (3 * branch.dim(0) + 1) * branch.dim(-1); }

  int64_t samples, channels;
  float *zeros, *kept, *product;  ///< [samples, channels]
  float* row;                     ///< [channels], scratch behind construction
};

int64_t scaled_add_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return BranchFactors::elements(types.inputs[1].shape) * kFloatBytes;
}
int64_t scaled_add_grad_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::Shape& branch = types.inputs[1].shape;
  return (BranchFactors::elements(branch) + 2 * share_elements(branch)) * kFloatBytes;
}

void scaled_add(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& branch = call.inputs[1];
  const BranchFactors f(call, reinterpret_cast<float*>(call.workspace.data()));
  map_channels({.x = branch,
                .residual = call.inputs[0],
                .y = call.outputs[0],
                .sets = {branch.shape().num_rows() / f.samples, f.zeros, f.product},
                .shift = f.zeros},
               pool);
}

void scaled_add_grad(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& branch = call.inputs[1];
  const Granules granules(branch.shape());
  auto* scratch = reinterpret_cast<float*>(call.workspace.data());
  const BranchFactors f(call, scratch);
  const bool learns = call.outputs.size() > 1;
  float* shares = scratch + BranchFactors::elements(branch.shape());
  sum_channels({.dy = call.inputs[0],
                .x = branch,
                .dx = call.outputs[0],
                .sets = {granules.segment(), f.zeros, f.product},
                .rstd = f.kept,
                .dw = learns ? shares : nullptr,
                .db = shares + share_elements(branch.shape())},
               pool);
  if (learns) add_granules(shares, granules.count(), input_or_none(call, 4), call.outputs[1], f.row, pool);
}

void kept_samples(const KernelCall& call, ThreadPool& /*pool*/) {
  const double p = call.op->attrs.f64("p");
  const auto kept = static_cast<float>(1.0 / (1.0 - p));
  ops::RandomStream stream = stream_of(call.inputs[0], call.op->attrs);
  float* y = call.outputs[0].as<float>();
  for (int64_t i = 0; i < call.outputs[0].num_elements(); ++i, ++stream.sequence)
    y[i] = ops::random_words(stream, 0)[0] >= ops::dropout_threshold(p) ? kept : 0.0F;
}

constexpr Kernel kLayerScaleKernels[] = {
    {.op = "kept_samples", .run = kept_samples},
    {.op = "scaled_add", .run = scaled_add, .workspace_bytes = scaled_add_bytes, .stored_dtypes = true},
    {.op = "scaled_add_grad",
     .run = scaled_add_grad,
     .workspace_bytes = scaled_add_grad_bytes,
     .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> layer_scale_kernels() { return kLayerScaleKernels; }

}  // namespace plimsoll::cpu
