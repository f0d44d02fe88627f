#include "backends/cuda/kernels/gemm/computed_codes.h"

#include "backends/cuda/kernels/gemm/norm_codes_args.h"
#include "backends/cuda/kernels/gemm/swiglu_codes_args.h"
#include "backends/cuda/kernels/norm/norm.h"

namespace plimsoll::cuda {
namespace {

bool is_swiglu(const ComputedCopies& c) { return c.fused.computes.starts_with("swiglu"); }
bool is_norm(const ComputedCopies& c) { return c.fused.computes.find("norm") != std::string_view::npos; }

const DeviceKernel<SwigluCodes>& swiglu_kernel(const ComputedCopies& c) {
  const bool is_gradient = c.fused.computes == "swiglu_grad";
  if (c.both) return is_gradient ? kSwigluGradCodesBoth : kSwigluCodesBoth;
  if (c.form.transposed) return is_gradient ? kSwigluGradCodesTurned : kSwigluCodesTurned;
  return is_gradient ? kSwigluGradCodes : kSwigluCodes;
}

/// All rows, which lie nowhere.
BandRows unstored(const ComputedCopies& c) {
  TensorRef y{nullptr, c.y};
  y.strides = ir::dense_strides(c.y.shape);
  return {y, 0, c.form.turned};
}

Status queue_swiglu(const KernelCall& call, const ComputedCopies& c, const QuantizeBoth& to, u32* largest,
                    Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const BandRows rows = unstored(c);
  const QuantizeForm turned(attrs, c.y.shape, /*is_transposed=*/true);
  const size_t x = c.fused.computes == "swiglu_grad" ? 1 : 0;
  SwigluCodes a;
  if (x == 1) a.dy = operand(call.inputs[0]);
  a.x = operand(call.inputs[x]);
  a.cols = call.inputs[x].shape().dim(-1) / 2;
  a.dtype = operand(rows.x).dtype;
  if (!c.form.transposed) a.plain = codes_of_band(attrs, c.form, rows, to.plain);
  if (c.form.transposed || c.both)
    a.turned = codes_of_band(attrs, turned, rows, c.both ? to.turned : to.plain);
  a.largest = largest;
  const Dim grid = c.both ? tiles_of_both(c.form, turned) : c.form.code_blocks();
  return stream.launch(swiglu_kernel(c), grid, {32 * kRunWarps}, 0, a);
}

Status queue_norm(const KernelCall& call, const ComputedCopies& c, const QuantizeBoth& to, u32* largest,
                  Stream& stream) {
  const BandRows rows = unstored(c);
  NormCodes a;
  a.norm = norm_rows(call, {.is_layer = c.fused.computes.ends_with("layer_norm"),
                            .adds = c.fused.computes.starts_with("add_"),
                            .stores = false});
  a.dtype = operand(rows.x).dtype;
  a.plain = codes_of_band(call.op->attrs, c.form, rows, to.plain);
  a.largest = largest;
  return stream.launch(kNormCodes, blocks(c.form.rows, 1), row_threads(c.form.cols), 0, a);
}

}  // namespace

bool ComputedCopies::have_a_kernel() const {
  const int64_t block_rows = form.scheme().block_rows;
  if (block_rows > 1 || (block_rows == 0 && form.transposed)) return false;
  return is_swiglu(*this) || (is_norm(*this) && !both && !form.transposed);
}

int64_t ComputedCopies::num_magnitudes() const {
  if (!form.scheme().has_tensor_scale) return 0;
  return is_norm(*this) ? form.rows : form.amax_blocks();
}

Status queue_computed_codes(const KernelCall& call, const ComputedCopies& copies, const QuantizeBoth& to,
                            u32* largest, Stream& stream) {
  return is_norm(copies) ? queue_norm(call, copies, to, largest, stream)
                         : queue_swiglu(call, copies, to, largest, stream);
}

}  // namespace plimsoll::cuda
