// Codes and scales of an operand: a scale of the tensor wants the largest magnitude first, and so another
// walk.
#include "backends/cuda/kernels/gemm/quantize_operand.h"

#include "backends/cuda/kernels/gemm/scaled_codes.h"
#include "backends/cuda/kernels/norm/row_strides.h"

namespace plimsoll::cuda {
namespace {

using numerics::Scheme;

constexpr uint32_t kRunThreads = 32 * kRunWarps;
static_assert(numerics::kHadamardRun == 16, "two lanes of eight elements");

OperandSource source_of(const ir::Attrs& attrs, const QuantizeForm& form, const TensorRef& x) {
  return {.x = operand(x),
          .strides = row_strides(x),
          .rows = form.rows,
          .cols = form.cols,
          .tokens = form.turned.tokens,
          .columns = form.turned.columns,
          .transposed = form.transposed ? 1 : 0,
          .rounded = x.type.dtype == ir::DType::kF32 && attrs.find("precision") != nullptr ? 1 : 0,
          .hadamard = form.form.hadamard ? 1 : 0};
}

}  // namespace

Result<int64_t> queue_amax(const ir::Attrs& attrs, const QuantizeForm& form, const TensorRef& x, u32* largest,
                           Stream& stream) {
  OperandAmax amax{.source = source_of(attrs, form, x), .largest = largest};
  const bool turned = form.amax_is_turned();
  if (form.transposed && !turned) {
    std::swap(amax.source.rows, amax.source.cols);
    amax.source.transposed = 0;
  }
  const auto count = static_cast<uint32_t>(form.amax_blocks());
  PLIMSOLL_TRY(stream.launch(turned ? kOperandAmaxTurned : kOperandAmax, {count}, {kRunThreads}, 0, amax));
  return int64_t{count};
}

Status queue_scale(const QuantizeForm& form, const QuantizeScratch& scratch, int64_t count,
                   const float* given, const TensorScaleResults& results, Stream& stream) {
  const bool is_of_tensor = form.scheme().block_rows == 0;
  OperandScale scale;
  scale.largest = scratch.largest;
  scale.n = count;
  scale.largest_code =
      is_of_tensor ? static_cast<float>(numerics::info(form.scheme().codes).max) : 448.0F * 6.0F;
  scale.given = given;
  scale.amax = results.amax;
  if (is_of_tensor) scale.decode = results.decode;
  scale.tensor = scratch.tensor;
  return stream.launch(kOperandScale, {1}, {kRunThreads}, 0, scale);
}

QuantizeOperand codes_of_band(const ir::Attrs& attrs, const QuantizeForm& form, const BandRows& band,
                              QuantizeOperand to) {
  to.source = source_of(attrs, form, band.x);
  to.scheme = code_scheme(form.form.scheme);
  to.pitch = form.transposed ? band.all.column(band.all.rows) : form.cols;
  const numerics::SchemeInfo& scheme = form.scheme();
  const int64_t row = form.transposed ? 0 : band.first;
  const int64_t col = form.transposed ? band.all.column(band.first) : 0;
  to.codes += row * numerics::code_row_bytes(form.form.scheme, to.pitch) + col;
  if (scheme.block_rows > 0 && band.first > 0) {
    const int64_t index =
        row / scheme.block_rows * numerics::scale_cols(form.form.scheme, to.pitch) + col / scheme.block_cols;
    to.scales = static_cast<std::byte*>(to.scales) + index * numerics::scale_bytes(form.form.scheme);
  }
  return to;
}

Dim tiles_of_both(const QuantizeForm& plain, const QuantizeForm& turned) {
  return blocks(ceil_div(plain.cols, int64_t{kTileColumns}) * ceil_div(turned.cols, int64_t{kTileColumns}),
                1);
}

Status queue_codes(const ir::Attrs& attrs, const QuantizeForm& form, const BandRows& band, QuantizeOperand to,
                   Stream& stream) {
  const numerics::SchemeInfo& scheme = form.scheme();
  const auto& kernel = scheme.block_rows == 128  ? kQuantizeTiles128
                       : scheme.block_rows == 16 ? kQuantizeTiles16
                       : form.transposed         ? kQuantizeTurned
                                                 : kQuantizeRuns;
  return stream.launch(kernel, form.code_blocks(), {kRunThreads}, 0, codes_of_band(attrs, form, band, to));
}

Status queue_both(const ir::Attrs& attrs, const ir::Shape& x, const BandRows& band, QuantizeBoth to,
                  Stream& stream) {
  const QuantizeForm plain(attrs, x, /*is_transposed=*/false), turned(attrs, x, /*is_transposed=*/true);
  to.plain = codes_of_band(attrs, plain, band, to.plain);
  to.turned = codes_of_band(attrs, turned, band, to.turned);
  return stream.launch(kQuantizeBoth, tiles_of_both(plain, turned), {kRunThreads}, 0, to);
}

namespace {

int64_t quantize_operand_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  QuantizeScratch(scratch, QuantizeForm(types.attrs, types.inputs[0].shape, types.attrs.flag("transposed")));
  return scratch.bytes();
}

Status quantize_operand(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef& x = call.inputs[0];
  const QuantizeForm form(attrs, x.shape(), attrs.flag("transposed"));
  Scratch memory(call);
  const QuantizeScratch scratch(memory, form);
  QuantizeOperand a;
  a.codes = call.outputs[0].as<unsigned char>();
  a.scales = call.outputs[1].data;
  if (form.scheme().has_tensor_scale) {
    const TensorRef given = input_or_none(call, 1);
    PLIMSOLL_ASSIGN(const int64_t count, queue_amax(attrs, form, x, scratch.largest, stream));
    PLIMSOLL_TRY(queue_scale(form, scratch, count,
                             given ? given.as<const float>() + attrs.i64("slot") : nullptr,
                             {call.outputs[2].as<float>(), call.outputs[1].as<float>()}, stream));
    a.tensor = scratch.tensor;
  }
  if (form.form.stochastic) {
    a.random = call.inputs[2].as<const uint32_t>();
    a.key = static_cast<uint32_t>(attrs.i64("key"));
    a.tokens = Granules(x.shape()).segment();
  }
  const BandRows all{x, 0, form.turned};
  if (!attrs.flag("both")) return queue_codes(attrs, form, all, a, stream);
  QuantizeOperand turned;
  turned.codes = call.outputs[2].as<unsigned char>();
  turned.scales = call.outputs[3].data;
  return queue_both(attrs, x.shape(), all, {a, turned}, stream);
}

}  // namespace

std::span<const Kernel> quantize_operand_kernels() {
  static constexpr Kernel kernels[] = {{.op = "quantize_operand",
                                        .run = quantize_operand,
                                        .workspace_bytes = quantize_operand_bytes,
                                        .strided_inputs = 0b1}};
  return kernels;
}

}  // namespace plimsoll::cuda
