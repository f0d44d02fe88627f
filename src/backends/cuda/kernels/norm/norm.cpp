// RMS and layer normalisation, alone and with the residual stream's addition.
#include "backends/cuda/kernels/norm/norm.h"

#include "backends/cuda/kernels/norm/norm_parts_args.h"
#include "backends/cuda/kernels/norm/row_strides.h"
#include "backends/cuda/kernels/norm/sums.h"
#include "backends/cuda/kernels/norm/sums_args.h"
#include "backends/cuda/kernels/operands.h"
#include "ops/rounded_copy.h"

namespace plimsoll::cuda {

Dim row_threads(int64_t cols) {
  return {static_cast<uint32_t>(std::clamp<int64_t>(round_up(ceil_div(cols, 8), 32), 32, kMostRowThreads))};
}

NormRows norm_rows(const KernelCall& call, const NormForm& form) {
  size_t in = 0, out = 0;
  NormRows a;
  const TensorRef& x = call.inputs[in++];
  a.x = operand(x);
  a.cols = x.shape().dim(-1);
  a.x_rows = a.residual_rows = row_strides(x);
  if (form.adds) {
    a.residual_rows = row_strides(call.inputs[in]);
    a.residual = operand(call.inputs[in++]);
  }
  a.weight = operand(call.inputs[in++]);
  if (form.is_layer) a.bias = operand(call.inputs[in++]);
  if (form.adds) a.sum = operand(call.outputs[out++]);
  if (form.stores) a.y = operand(call.outputs[out++]);
  if (form.is_layer) a.mean = call.outputs[out++].as<float>();
  a.rstd = call.outputs[out++].as<float>();
  a.eps = static_cast<float>(call.op->attrs.f64("eps"));
  return a;
}

namespace {

// Results in order: sum, y, mean, rstd.
template <bool kLayer, bool kFused>
Status forward(const KernelCall& call, Stream& stream) {
  const ir::Shape& x = call.inputs[0].shape();
  return stream.launch(kNormRows, blocks(x.num_rows(), 1), row_threads(x.dim(-1)), 0,
                       norm_rows(call, {.is_layer = kLayer, .adds = kFused}));
}

bool learns(const ir::Attrs& attrs, size_t results) { return ops::results_without_copy(attrs, results) > 1; }
bool learns(const ir::OpTypes& types) { return learns(types.attrs, types.outputs.size()); }

/// Whether a block's threads hold a row, so that dx and the sums over rows come out of one pass
/// (norm_parts.cu).
bool is_held(const ir::Shape& rows) { return rows.dim(-1) <= kMostHeldColumns; }
int64_t part_elements(const ir::Shape& rows) {
  return Granules(rows).count() * kPartsOfGranule * rows.dim(-1);
}

template <bool kLayer>
int64_t backward_bytes(const ir::OpTypes& types) {
  if (!learns(types)) return 0;
  const ir::Shape& rows = types.inputs[0].shape;
  if (!is_held(rows)) return column_sum_bytes(types);
  Scratch scratch;
  for (int k = 0; k < (kLayer ? 2 : 1); ++k) scratch.take<float>(part_elements(rows));
  return scratch.bytes();
}

Status accepts_backward(const ir::OpTypes& types, int capability) {
  if (!learns(types) || is_held(types.inputs[0].shape)) return Ok{};
  return accepts_column_sum(types, capability);
}

struct Accumulators {
  TensorRef dw, db;
};

Status backward_in_parts(const KernelCall& call, const NormGrad& rows, const Accumulators& acc,
                         Stream& stream) {
  const ir::Shape& shape = call.inputs[0].shape();
  const Granules granules(shape);
  const bool layer = rows.mean != nullptr;
  Scratch scratch(call);
  NormGradParts a{.rows = rows, .granules = device_granules(granules)};
  a.weight_sums = scratch.take<float>(part_elements(shape));
  if (layer) a.bias_sums = scratch.take<float>(part_elements(shape));
  PLIMSOLL_TRY(stream.launch(kNormGradParts, blocks(granules.count() * kPartsOfGranule, 1),
                             row_threads(rows.cols), 0, a));
  const AddParts add{.weight_sums = a.weight_sums,
                     .bias_sums = a.bias_sums,
                     .granules = a.granules,
                     .count = granules.count(),
                     .cols = rows.cols,
                     .acc_dw = operand(acc.dw),
                     .dw = operand(call.outputs[1]),
                     .acc_db = operand(acc.db),
                     .db = layer ? operand(call.outputs[2]) : Operand{}};
  const Dim grid{static_cast<uint32_t>(ceil_div(rows.cols, kColumnsOfBlock)), layer ? 2U : 1U};
  return stream.launch(kAddParts, grid, {kColumnsOfBlock, kRowsOfBlock}, 0, add);
}

// Operands in order: dy, x, weight, mean where `layer`, rstd, d_residual where `fused`, acc_dw?, acc_db?. The
// parameters' gradients go first: dx may lie where an operand does.
template <bool kLayer, bool kFused>
Status backward(const KernelCall& call, Stream& stream) {
  size_t in = 0;
  const TensorRef &dy = call.inputs[in++], &x = call.inputs[in++];
  NormGrad a;
  a.dy = operand(dy);
  a.x = operand(x);
  a.weight = operand(call.inputs[in++]);
  if (kLayer) a.mean = call.inputs[in++].as<const float>();
  a.rstd = call.inputs[in++].as<const float>();
  a.cols = x.shape().dim(-1);
  a.dy_rows = row_strides(dy);
  a.x_rows = a.residual_rows = row_strides(x);
  if (kFused) {
    a.residual_rows = row_strides(call.inputs[in]);
    a.d_residual = operand(call.inputs[in++]);
  }
  a.dx = operand(call.outputs[0]);
  if (ops::has_rounded_copy(call.op->attrs)) a.rounded = operand(call.outputs.back());
  if (learns(call.op->attrs, call.outputs.size())) {
    const Accumulators acc{input_or_none(call, in), input_or_none(call, in + 1)};
    if (is_held(x.shape())) return backward_in_parts(call, a, acc, stream);
    auto* partial = Scratch(call).take<float>(column_sum_elements(dy.shape()));
    PLIMSOLL_TRY(sum_columns({dy, x, a.mean, a.rstd}, partial, acc.dw, call.outputs[1], stream));
    if (kLayer) PLIMSOLL_TRY(sum_columns({dy}, partial, acc.db, call.outputs[2], stream));
  }
  return stream.launch(kNormGradRows, blocks(x.shape().num_rows(), 1), row_threads(a.cols), 0, a);
}

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "add_layer_norm", .run = forward<true, true>, .strided_inputs = 0b11},
      {.op = "add_rms_norm", .run = forward<false, true>, .strided_inputs = 0b11},
      {.op = "layer_norm", .run = forward<true, false>, .strided_inputs = 0b1},
      {.op = "layer_norm_grad",
       .run = backward<true, false>,
       .workspace_bytes = backward_bytes<true>,
       .strided_inputs = 0b11,
       .accepts = accepts_backward},
      {.op = "layer_norm_grad_add",
       .run = backward<true, true>,
       .workspace_bytes = backward_bytes<true>,
       .strided_inputs = 0b100011,
       .accepts = accepts_backward},
      {.op = "rms_norm", .run = forward<false, false>, .strided_inputs = 0b1},
      {.op = "rms_norm_grad",
       .run = backward<false, false>,
       .workspace_bytes = backward_bytes<false>,
       .strided_inputs = 0b11,
       .accepts = accepts_backward},
      {.op = "rms_norm_grad_add",
       .run = backward<false, true>,
       .workspace_bytes = backward_bytes<false>,
       .strided_inputs = 0b10011,
       .accepts = accepts_backward},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
