// Weights by direction and magnitude, in whichever form the weight is stored.
#include "backends/cuda/kernels/elementwise/dora_args.h"
#include "backends/cuda/kernels/gemm/quantized.h"

namespace plimsoll::cuda {
namespace {

int64_t dora_norm_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(scales_elements(types.inputs[0]));
  return scratch.bytes();
}

Status dora_norm(const KernelCall& call, Stream& stream) {
  const TensorRef &weight = call.inputs[0], &a = call.inputs[1], &b = call.inputs[2];
  const ir::Attrs& attrs = call.op->attrs;
  DoraNorm d;
  if (ir::is_block(weight.type.dtype)) {
    auto* scales = Scratch(call).take<float>(scales_elements(weight.type));
    PLIMSOLL_ASSIGN(d.codes, coded_weight(weight, scales, stream));
  } else {
    d.weight = operand(weight);
  }
  d.in = a.shape().dim(1);
  d.rank = b.shape().dim(1);
  d.a = a.as<const float>() + attrs.i64("rank_row") * d.in;
  d.b = b.as<const float>();
  d.out = call.outputs[0].as<float>();
  d.width = weight.shape().dim(1);
  d.row = attrs.i64("row");
  d.outs = call.outputs[0].num_elements();
  d.scale = static_cast<float>(attrs.f64("scale"));
  if (attrs.flag("transposed")) return stream.launch(kDoraNormColumns, blocks(d.outs, 32), {32, 8}, 0, d);
  return stream.launch(kDoraNormRows, blocks(d.outs, kDoraRows), {kDoraThreads}, 0, d);
}

Status dora_scale(const KernelCall& call, Stream& stream) {
  DoraScale a;
  a.x = operand(call.inputs[0]);
  a.magnitude = call.inputs[1].as<const float>();
  a.norm = call.inputs[2].as<const float>();
  a.out = operand(call.outputs[0]);
  a.n = call.outputs[0].num_elements();
  a.cols = call.inputs[2].num_elements();
  return stream.launch(kDoraScale, blocks(a.n, kEach * kDoraThreads), {kDoraThreads}, 0, a);
}

Status dora_scale_grad(const KernelCall& call, Stream& stream) {
  DoraScaleGrad a;
  a.dy = operand(call.inputs[0]);
  a.x = operand(call.inputs[1]);
  a.norm = call.inputs[2].as<const float>();
  a.out = operand(call.outputs[0]);
  a.n = call.outputs[0].num_elements();
  a.cols = call.inputs[2].num_elements();
  return stream.launch(kDoraScaleGrad, blocks(a.n, kEach * kDoraThreads), {kDoraThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> dora_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "dora_norm", .run = dora_norm, .workspace_bytes = dora_norm_bytes, .block_inputs = 0b1},
      {.op = "dora_scale", .run = dora_scale},
      {.op = "dora_scale_grad", .run = dora_scale_grad},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
