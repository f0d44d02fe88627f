// Head and loss in chunks of tokens. The logits of one chunk are all that is ever there; they turn into their
// own gradient in place, while a row lies in the second-level cache. Where the products round it to 16 bits,
// it is stored as such, from the beginning of its row on.
//
//   for each chunk:  logits = x W^T  ->  loss, (softmax - onehot) * scale in place  ->  dw += logits^T x,  dx
//   = logits W
//
// A chunk is a run of whole sequences or a part of one, where dw is summed in whole granules, so every
// reduction over tokens adds the same granules in the same order as the unfused ops.
#include <algorithm>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/gemm/linear.h"
#include "backends/cpu/kernels/loss/cross_entropy.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

// Which gradients there are, by the op's results.
struct GradientsOf {
  bool x = false, weight = false;
  GradientsOf() = default;
  GradientsOf(std::string_view op, const ir::Attrs& attrs, size_t num_results)
      : x(op == "head_loss" && attrs.flag("grad")), weight(num_results > (x ? 2U : 1U)) {}
  [[nodiscard]] bool any() const { return x || weight; }
};

// What dw is, where there is one: its sums need no f32 beside it where it is f32, or a single chunk's
// product.
struct Dw {
  ir::DType dtype;
  bool is_added_to;  // there is an acc
  [[nodiscard]] bool is_direct(int64_t chunk_rows, int64_t rows) const {
    return dtype == ir::DType::kF32 || (!is_added_to && chunk_rows >= rows);
  }
};

// Scratch in this order: one chunk's logits, the rows' losses, dw in f32 where its dtype is another and it is
// added to from chunk to chunk, what the GEMMs want.
struct Layout {
  int64_t logits, losses, dw, gemm;
  Layout(const ir::TensorType& x, const ir::TensorType& weight, ir::DType dx, const Dw& dw_as,
         int64_t classes, int64_t chunk_rows, const ir::Attrs& attrs, GradientsOf grads, int num_threads) {
    constexpr auto kF32Bytes = static_cast<int64_t>(sizeof(float));
    const int64_t width = x.shape.dim(-1), rows = x.shape.num_rows();
    const Precision precision = precision_of(attrs, x.dtype, weight.dtype);
    const bool direct = dw_as.is_direct(chunk_rows, rows);
    const GemmTypes sums{precision, ir::DType::kF32},
        gradient{precision, grads.weight && direct ? dw_as.dtype : ir::DType::kF32};
    logits = round_up(chunk_rows * classes * kF32Bytes, runtime::kAlignment);
    losses = round_up(rows * kF32Bytes, runtime::kAlignment);
    dw = grads.weight && !direct ? round_up(width * classes * kF32Bytes, runtime::kAlignment) : 0;
    gemm = gemm_workspace_bytes(chunk_rows, classes, width, num_threads, sums);
    if (grads.x)
      gemm = std::max(gemm, gemm_workspace_bytes(chunk_rows, width, classes, num_threads, {precision, dx}));
    if (grads.weight)
      gemm = std::max({gemm, gemm_workspace_bytes(classes, width, chunk_rows, num_threads, gradient),
                       gemm_workspace_bytes(width, classes, chunk_rows, num_threads, gradient)});
  }
  [[nodiscard]] int64_t total() const { return logits + losses + dw + gemm; }
};

/// Of dx, or of x where there is no dx.
ir::DType dx_dtype(const ir::TensorType& x, const ir::Attrs& attrs) {
  return attrs.find("dx") == nullptr ? x.dtype : ir::parse_dtype(attrs.str("dx")).value_or(x.dtype);
}

int64_t num_classes(const ir::Shape& weight, bool transposed) { return weight.dim(transposed ? 1 : 0); }

int64_t workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::TensorType &x = types.inputs[0], &weight = types.inputs[1];
  const GradientsOf grads(types.op, types.attrs, types.outputs.size());
  const ops::LossChunks chunks(x.shape, types.attrs.i64("chunk_tokens"), grads.weight);
  const int64_t classes = num_classes(weight.shape, types.attrs.flag("transposed"));
  const Dw dw{types.outputs.back().dtype, types.has(5)};
  return Layout(x, weight, dx_dtype(x, types.attrs), dw, classes, chunks.max_rows(), types.attrs, grads,
                num_threads)
      .total();
}

/// Of the gradient by the logits: what the products that read it round it to, where that is a dtype.
ir::DType d_dtype(Precision precision) {
  if (precision == Precision::kBf16) return ir::DType::kBf16;
  return precision == Precision::kF16 ? ir::DType::kF16 : ir::DType::kF32;
}

struct HeadLoss {
  StoredRows x;
  TensorRef weight;
  Precision precision;
  bool transposed;
  GradientsOf grads;
  LossRows loss;  // targets and losses of all rows, logits and d of one chunk
  int64_t classes;
  float* logits;
  std::byte* dw;
  ir::DType dw_dtype;  // f32, or that of a direct one
  bool dw_started;
  StoredRows dx;
  int64_t sequence;
  std::span<std::byte> gemm_workspace;
};

void chunk_loss(const HeadLoss& h, int64_t begin, int64_t rows, ThreadPool& pool) {
  gemm({.m = rows,
        .n = h.classes,
        .k = h.x.cols,
        .a = {h.x.row(begin), h.x.stride, 1, h.x.dtype},
        .b = weight_as_b(h.weight, h.transposed),
        .c = h.logits,
        .c_row_stride = h.classes,
        .precision = h.precision,
        .past_caches = beyond_caches(rows * h.classes, ir::DType::kF32)},
       pool, h.gemm_workspace);
  LossRows loss = h.loss;
  loss.targets += begin;
  loss.loss += begin;
  for_row_blocks(pool, rows, h.classes, [&](int64_t first, int64_t last) { loss_rows(loss, first, last); });
}

// dw before dx, which may lie where x does.
void chunk_grads(HeadLoss& h, int64_t begin, int64_t rows, ThreadPool& pool) {
  const StoredRows d{h.loss.d, h.loss.d_dtype, rows, h.classes, h.loss.d_stride};
  if (h.grads.weight)
    weight_gradient({.x = h.x.from(begin, rows),
                     .dy = d,
                     .dw = h.dw,
                     .dw_dtype = h.dw_dtype,
                     .transposed = h.transposed,
                     .segment = h.sequence,
                     .accumulate = h.dw_started,
                     .precision = h.precision},
                    pool, h.gemm_workspace);
  h.dw_started = true;
  if (!h.grads.x) return;
  gemm({.m = rows,
        .n = h.x.cols,
        .k = h.classes,
        .a = {d.data, d.stride, 1, d.dtype},
        .b = weight_as_b(h.weight, !h.transposed),
        .c = h.dx.row(begin),
        .c_row_stride = h.dx.stride,
        .precision = h.precision,
        .c_dtype = h.dx.dtype},
       pool, h.gemm_workspace);
}

/// Where dw is summed: the result itself, or f32 in scratch.
TensorRef summed_dw(const TensorRef& dw, bool is_direct, std::byte* scratch) {
  if (is_direct) return dw;
  return {scratch, {ir::DType::kF32, dw.shape()}, dw.strides};
}

void bind_dw(HeadLoss& h, const KernelCall& call, const TensorRef& dw, ThreadPool& pool) {
  h.dw = dw.data;
  h.dw_dtype = dw.type.dtype;
  const TensorRef acc = input_or_none(call, 5);
  h.dw_started = static_cast<bool>(acc);
  if (acc) cast(acc, dw, pool);
}

void head_loss(const KernelCall& call, ThreadPool& pool) {
  const ir::TensorType &type = call.inputs[0].type, &weight = call.inputs[1].type;
  const ir::Shape& shape = type.shape;
  const ir::Attrs& attrs = call.op->attrs;
  HeadLoss h{};
  h.grads = GradientsOf(call.op->def->name, attrs, call.outputs.size());
  const ops::LossChunks chunks(shape, attrs.i64("chunk_tokens"), h.grads.weight);
  h.x = stored_rows(call.inputs[0]);
  h.precision = precision_of(attrs, type.dtype, weight.dtype);
  h.weight = call.inputs[1];
  h.transposed = attrs.flag("transposed");
  h.classes = num_classes(h.weight.shape(), h.transposed);
  h.sequence = Granules(shape).segment();
  const Dw dw{call.outputs.back().type.dtype, static_cast<bool>(input_or_none(call, 5))};
  const Layout layout(type, weight, dx_dtype(type, attrs), dw, h.classes, chunks.max_rows(), attrs, h.grads,
                      pool.num_threads());
  PLIMSOLL_CHECK(static_cast<int64_t>(call.workspace.size()) >= layout.total());
  h.logits = reinterpret_cast<float*>(call.workspace.data());
  std::byte* const dw_scratch = call.workspace.data() + layout.logits + layout.losses;
  h.gemm_workspace = call.workspace.subspan(static_cast<size_t>(layout.total() - layout.gemm));
  auto* losses = reinterpret_cast<float*>(call.workspace.data() + layout.logits);
  const ir::DType d = d_dtype(h.precision);
  h.loss = {.logits = h.logits,
            .stride = h.classes,
            .classes = h.classes,
            .targets = call.inputs[2].as<const int32_t>(),
            .loss = losses,
            .d = h.grads.any() ? call.workspace.data() : nullptr,
            .d_dtype = d,
            .d_stride = h.classes * 32 / ir::bits(d),
            .scale = *call.inputs[3].as<const float>()};
  const TensorRef sums =
      h.grads.weight ? summed_dw(call.outputs.back(), dw.is_direct(chunks.max_rows(), h.x.rows), dw_scratch)
                     : TensorRef{};
  if (h.grads.x) h.dx = stored_rows(call.outputs[1]);
  if (h.grads.weight) bind_dw(h, call, sums, pool);
  for (int64_t begin = 0; begin < h.x.rows; begin = chunks.end(begin)) {
    const int64_t rows = chunks.end(begin) - begin;
    chunk_loss(h, begin, rows, pool);
    if (h.grads.any()) chunk_grads(h, begin, rows, pool);
  }
  if (h.grads.weight) cast(sums, call.outputs.back(), pool);
  const TensorRef acc = input_or_none(call, 4);
  *call.outputs[0].as<float>() = sum_losses(losses, Granules(shape), acc.as<const float>());
}

}  // namespace

std::span<const Kernel> head_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "head_loss",
       .run = head_loss,
       .workspace_bytes = workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
      {.op = "head_loss_dw",
       .run = head_loss,
       .workspace_bytes = workspace_bytes,
       .strided_inputs = 0b11,
       .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
