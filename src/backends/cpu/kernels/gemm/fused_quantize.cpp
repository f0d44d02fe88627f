// Quantises what another op computes, band by band: the op's kernel writes some rows of its result to
// scratch, where they are quantised while they lie in the caches.
#include "ops/fused_quantize.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm/quantize_operand.h"
#include "backends/cpu/kernels/operands.h"
#include "runtime/fused_band.h"

namespace plimsoll::cpu {
namespace {

int64_t scratch_bytes(const ir::TensorType& y) {
  return round_up(rows_of_band(y) * y.shape.dim(-1) * ir::bits(y.dtype) / 8, runtime::kAlignment);
}

int64_t fused_quantize_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::TensorType second = types.has(1) ? types.inputs[1] : ir::TensorType{};
  const ir::TensorType y =
      ops::quantized_type(ops::fused_quantize(types.op), types.attrs, types.inputs[0], second);
  return scratch_bytes(y) + num_threads * QuantizedOperand(y.shape, types.attrs, false).thread_bytes();
}

void quantize_computed(const KernelCall& call, ThreadPool& pool) {
  const ir::Attrs& attrs = call.op->attrs;
  const ops::FusedQuantize& fused = ops::fused_quantize(call.op->def->name);
  const Kernel& kernel = *find_kernel(fused.computes);
  const ir::TensorType y =
      ops::quantized_type(fused, attrs, call.inputs[0].type, input_or_none(call, 1).type);
  const QuantizedOperand operand(y.shape, attrs, attrs.flag("transposed")), turned(y.shape, attrs, true);
  const std::span<const TensorRef> copies = call.outputs.last(ops::num_copies(attrs));
  QuantizedBand to{.codes = copies[0].data, .scales = copies[1].data};
  const bool has_scale = numerics::info(operand.form.scheme).has_tensor_scale;
  if (has_scale)
    to.tensor = numerics::given_scale(0, call.inputs[fused.num_inputs].as<const float>()[attrs.i64("slot")]);
  const std::span<std::byte> tiles = call.workspace.subspan(static_cast<size_t>(scratch_bytes(y)));
  LargestMagnitude largest;
  if (has_scale) to.largest = &largest;
  const int64_t rows = y.shape.num_rows(), step = rows_of_band(y);
  TensorRef scratch{call.workspace.data(), {y.dtype, {step, y.shape.dim(-1)}}};
  for (int64_t first = 0, end = 0; first < rows; first = end) {
    end = turned.turned.band_end(first, step);
    scratch.type.shape.set_dim(0, end - first);
    scratch.strides = ir::dense_strides(scratch.shape());
    kernel.run(runtime::FusedBand(call, fused, scratch, first, rows).call(), pool);
    const OperandBand computed{stored_rows(scratch), first};
    quantize_band(operand, computed, to, tiles, pool);
    if (attrs.flag("both"))
      quantize_band(turned, computed, {.codes = copies[2].data, .scales = copies[3].data}, tiles, pool);
  }
  if (!has_scale) return;
  *copies[1].as<float>() = to.tensor.decode;
  *copies[2].as<float>() = largest.value();
}

}  // namespace

std::span<const Kernel> fused_quantize_kernels() {
  static const std::vector<Kernel> kKernels = [] {
    std::vector<Kernel> kernels;
    for (const ops::FusedQuantize& fused : ops::fused_quantizes())
      kernels.push_back({.op = fused.op,
                         .run = quantize_computed,
                         .workspace_bytes = fused_quantize_bytes,
                         .stored_dtypes = true});
    return kernels;
  }();
  return kKernels;
}

}  // namespace plimsoll::cpu
