// Quantises what another op computes: in the kernel that computes it, where there is one (computed_codes.h),
// else band by band. The op's own kernels then write some rows of its result to scratch, where they are
// quantised while they lie in the card's cache.
#include "ops/fused_quantize.h"

#include <algorithm>

#include "backends/cuda/kernels/gemm/computed_codes.h"
#include "runtime/fused_band.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kComputedBytes = int64_t{8} << 20;  // of the scratch: cards have caches of 6 MiB and more
constexpr int64_t kComputedRows = 256;  // whole blocks of every scheme, whole tiles of the kernels

/// The op's result, and the rows of it that scratch has.
struct Computed : ComputedCopies {
  int64_t rows, step;

  Computed(std::string_view op, const ir::Attrs& attrs, const ir::TensorType& first,
           const ir::TensorType& second)
      : Computed(ops::fused_quantize(op), attrs, first, second) {}
  [[nodiscard]] ir::Shape band(int64_t count) const { return {count, y.shape.dim(-1)}; }
  /// That of whole sequences, where blocks end with each.
  [[nodiscard]] ir::Shape band_of_sequences(int64_t count) const {
    const ops::TurnedRows& all = form.turned;
    if (all.tokens == all.columns || count % all.tokens != 0) return band(count);
    return {count / all.tokens, all.tokens, y.shape.dim(-1)};
  }
  [[nodiscard]] int64_t scratch_bytes() const {
    return have_a_kernel() ? 0 : step * y.shape.dim(-1) * ir::bits(y.dtype) / 8;
  }
  /// Of all bands.
  [[nodiscard]] int64_t most_magnitudes(const ir::Attrs& attrs) const {
    if (have_a_kernel()) return num_magnitudes();
    return ceil_div(rows, step) * QuantizeForm(attrs, band(step), form.transposed).amax_blocks();
  }

 private:
  Computed(const ops::FusedQuantize& op, const ir::Attrs& attrs, const ir::TensorType& first,
           const ir::TensorType& second)
      : ComputedCopies(op, attrs, ops::quantized_type(op, attrs, first, second)) {
    rows = y.shape.num_rows();
    const int64_t row_bytes = y.shape.dim(-1) * ir::bits(y.dtype) / 8;
    step = std::min(rows, round_up(std::max(int64_t{1}, kComputedBytes / row_bytes), kComputedRows));
  }
};

struct ComputedScratch {
  std::byte* y;
  QuantizeScratch quantize;
  ComputedScratch(Scratch& scratch, const Computed& c, const ir::Attrs& attrs)
      : y(scratch.take<std::byte>(c.scratch_bytes())),
        quantize(scratch, c.form.scheme().has_tensor_scale, c.most_magnitudes(attrs)) {}
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

/// A call, and where its copies go.
class FusedCall {
 public:
  FusedCall(const KernelCall& call, Stream& stream)
      : call_(call),
        stream_(stream),
        attrs_(call.op->attrs),
        computed_(call.op->def->name, attrs_, call.inputs[0].type, input_or_none(call, 1).type),
        memory_(call),
        scratch_(memory_, computed_, attrs_),
        copies_(call.outputs.last(ops::num_copies(attrs_))) {
    to_.plain.codes = copies_[0].as<unsigned char>();
    to_.plain.scales = copies_[1].data;
    if (has_scale()) {
      given_ = call.inputs[computed_.fused.num_inputs].as<const float>() + attrs_.i64("slot");
      to_.plain.tensor = scratch_.quantize.tensor;
    }
    if (!computed_.both) return;
    to_.turned.codes = copies_[2].as<unsigned char>();
    to_.turned.scales = copies_[3].data;
  }

  Status operator()() {
    if (has_scale()) PLIMSOLL_TRY(queue_scale(computed_.form, scratch_.quantize, 0, given_, {}, stream_));
    PLIMSOLL_TRY(computed_.have_a_kernel() ? at_once() : in_bands());
    if (!has_scale()) return Ok{};
    return queue_scale(computed_.form, scratch_.quantize, magnitudes_, given_,
                       {copies_[2].as<float>(), copies_[1].as<float>()}, stream_);
  }

 private:
  [[nodiscard]] bool has_scale() const { return computed_.form.scheme().has_tensor_scale; }

  Status at_once() {
    magnitudes_ = computed_.num_magnitudes();
    return queue_computed_codes(call_, computed_, to_, has_scale() ? scratch_.quantize.largest : nullptr,
                                stream_);
  }

  Status in_bands() {
    for (int64_t first = 0, end = 0; first < computed_.rows; first = end) {
      end = computed_.form.turned.band_end(first, computed_.step);
      PLIMSOLL_ASSIGN(const TensorRef y, compute(call_, computed_, scratch_.y, first, end - first, stream_));
      PLIMSOLL_TRY(quantize({y, first, computed_.form.turned}, computed_.band_of_sequences(end - first)));
    }
    return Ok{};
  }

  Status quantize(const BandRows& band, const ir::Shape& shape) {
    if (computed_.both) return queue_both(attrs_, shape, band, to_, stream_);
    const QuantizeForm form(attrs_, shape, computed_.form.transposed);
    PLIMSOLL_TRY(queue_codes(attrs_, form, band, to_.plain, stream_));
    if (!has_scale()) return Ok{};
    PLIMSOLL_ASSIGN(const int64_t count,
                    queue_amax(attrs_, form, band.x, scratch_.quantize.largest + magnitudes_, stream_));
    magnitudes_ += count;
    return Ok{};
  }

  const KernelCall& call_;
  Stream& stream_;
  const ir::Attrs& attrs_;
  const Computed computed_;
  Scratch memory_;
  const ComputedScratch scratch_;
  const std::span<const TensorRef> copies_;
  QuantizeBoth to_;
  const float* given_ = nullptr;
  int64_t magnitudes_ = 0;
};

Status quantize_computed(const KernelCall& call, Stream& stream) { return FusedCall(call, stream)(); }

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
