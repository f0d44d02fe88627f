// Quantises what another op computes, band by band: the op's kernels write some rows of its result to
// scratch, where they are quantised while they lie in the card's cache.
#include "ops/fused_quantize.h"

#include <algorithm>

#include "backends/cuda/kernels/gemm/quantize_operand.h"
#include "runtime/fused_band.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kComputedBytes = int64_t{8} << 20;  // of the scratch: cards have caches of 6 MiB and more
constexpr int64_t kComputedRows = 256;  // whole blocks of every scheme, whole tiles of the kernels

/// The op's result, and the rows of it that scratch has.
struct Computed {
  const ops::FusedQuantize& fused;
  ir::TensorType y;
  int64_t rows, step;

  Computed(std::string_view op, const ir::Attrs& attrs, const ir::TensorType& first,
           const ir::TensorType& second)
      : fused(ops::fused_quantize(op)), y(ops::quantized_type(fused, attrs, first, second)) {
    rows = y.shape.num_rows();
    const int64_t row_bytes = y.shape.dim(-1) * ir::bits(y.dtype) / 8;
    step = std::min(rows, round_up(std::max(int64_t{1}, kComputedBytes / row_bytes), kComputedRows));
  }
  [[nodiscard]] ir::Shape band(int64_t count) const { return {count, y.shape.dim(-1)}; }
  [[nodiscard]] int64_t bands() const { return ceil_div(rows, step); }
};

struct ComputedScratch {
  std::byte* y;
  QuantizeScratch quantize;
  ComputedScratch(Scratch& scratch, const Computed& c, const ir::Attrs& attrs)
      : y(scratch.take<std::byte>(c.step * c.y.shape.dim(-1) * ir::bits(c.y.dtype) / 8)),
        quantize(scratch, QuantizeForm(attrs, c.band(c.step), attrs.flag("transposed")), c.bands()) {}
};

int64_t fused_quantize_bytes(const ir::OpTypes& types) {
  const Computed computed(types.op, types.attrs, types.inputs[0],
                          types.has(1) ? types.inputs[1] : ir::TensorType{});
  Scratch scratch;
  ComputedScratch(scratch, computed, types.attrs);
  return scratch.bytes();
}

/// Runs the op on `rows` rows; what it computes lies in `y`.
Result<TensorRef> compute(const KernelCall& call, const Computed& c, std::byte* y, int64_t first,
                          int64_t rows, Stream& stream) {
  TensorRef computed{y, {c.y.dtype, c.band(rows)}};
  computed.strides = ir::dense_strides(computed.shape());
  const runtime::FusedBand band(call, c.fused, computed, first, c.rows);
  PLIMSOLL_TRY(find_kernel(c.fused.computes)->run(band.call(), stream));
  return computed;
}

Status quantize_computed(const KernelCall& call, Stream& stream) {
  const ir::Attrs& attrs = call.op->attrs;
  const Computed c(call.op->def->name, attrs, call.inputs[0].type, input_or_none(call, 1).type);
  Scratch memory(call);
  const ComputedScratch scratch(memory, c, attrs);
  const std::span<const TensorRef> copies = call.outputs.last(ops::num_copies(attrs));
  const QuantizeForm whole(attrs, c.y.shape, attrs.flag("transposed"));
  const bool has_scale = whole.scheme().has_tensor_scale;
  const float* given = nullptr;
  QuantizeOperand to, turned;
  to.codes = copies[0].as<unsigned char>(), to.scales = copies[1].data;
  if (has_scale) {
    given = call.inputs[c.fused.num_inputs].as<const float>() + attrs.i64("slot");
    PLIMSOLL_TRY(queue_scale(whole, scratch.quantize, 0, given, {}, stream));
    to.tensor = scratch.quantize.tensor;
  }
  int64_t magnitudes = 0;
  for (int64_t first = 0; first < c.rows; first += c.step) {
    const int64_t rows = std::min(c.step, c.rows - first);
    PLIMSOLL_ASSIGN(const TensorRef y, compute(call, c, scratch.y, first, rows, stream));
    const BandRows band{y, first, c.rows};
    const QuantizeForm form(attrs, c.band(rows), attrs.flag("transposed"));
    PLIMSOLL_TRY(queue_codes(attrs, form, band, to, stream));
    if (has_scale) {
      PLIMSOLL_ASSIGN(const int64_t count,
                      queue_amax(attrs, form, y, scratch.quantize.largest + magnitudes, stream));
      magnitudes += count;
    }
    if (!attrs.flag("both")) continue;
    turned.codes = copies[2].as<unsigned char>(), turned.scales = copies[3].data;
    PLIMSOLL_TRY(queue_codes(attrs, QuantizeForm(attrs, c.band(rows), true), band, turned, stream));
  }
  if (!has_scale) return Ok{};
  return queue_scale(whole, scratch.quantize, magnitudes, given,
                     {copies[2].as<float>(), copies[1].as<float>()}, stream);
}

}  // namespace

std::span<const Kernel> fused_quantize_kernels() {
  static const std::vector<Kernel> kKernels = [] {
    std::vector<Kernel> kernels;
    for (const ops::FusedQuantize& fused : ops::fused_quantizes())
      kernels.push_back({.op = fused.op, .run = quantize_computed, .workspace_bytes = fused_quantize_bytes});
    return kernels;
  }();
  return kKernels;
}

}  // namespace plimsoll::cuda
