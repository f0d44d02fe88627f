// Rows of sequences by index, positions, losses against float labels, the cache of generation, norms of
// heads.
#include "backends/cuda/kernels/sequences.h"

#include "backends/cuda/kernels/loss.h"

namespace plimsoll::cuda {
namespace {

Status positions(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const bool documents = call.op->def->name == "document_positions";
  return stream.launch("positions", blocks(out.num_elements(), kThreads), {kThreads}, 0,
                       data_or_null<const int32_t>(input_or_none(call, 0)), out.as<int32_t>(),
                       out.num_elements(), out.shape().dim(1), documents ? int32_t{-1} : int32_t{0});
}

Status gather_rows(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &out = call.outputs[0];
  return stream.launch("gather_rows", blocks(out.shape().dim(0), 1), {kThreads}, 0, operand(x), x.strides[1],
                       x.strides[0], call.inputs[1].as<const int32_t>(), operand(out), int64_t{1},
                       out.shape().dim(-1), int32_t{0});
}

Status gather_rows_grad(const KernelCall& call, Stream& stream) {
  const TensorRef &dy = call.inputs[0], &out = call.outputs[0];
  return stream.launch("gather_rows", blocks(out.shape().num_rows(), 1), {kThreads}, 0, operand(dy),
                       dy.strides[1], dy.strides[0], call.inputs[1].as<const int32_t>(), operand(out),
                       out.shape().dim(1), out.shape().dim(-1), int32_t{1});
}

int64_t label_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  scratch.take<float>(types.inputs[0].shape.num_rows());
  return scratch.bytes();
}

template <bool kSquared>
Status label_loss(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  const int64_t rows = x.shape().num_rows();
  auto* losses = Scratch(call).take<float>(rows);
  PLIMSOLL_TRY(stream.launch("label_loss_rows", blocks(rows, 8), {kThreads}, 0, operand(x),
                             call.inputs[1].as<const float>(), losses, rows, x.shape().dim(-1),
                             static_cast<int32_t>(kSquared)));
  return sum_losses(losses, x.shape(), input_or_none(call, 3), call.outputs[0], stream);
}

template <bool kSquared>
Status label_loss_grad(const KernelCall& call, Stream& stream) {
  const TensorRef& x = call.inputs[0];
  return stream.launch("label_loss_grad", blocks(x.num_elements(), kThreads), {kThreads}, 0, operand(x),
                       call.inputs[1].as<const float>(), call.inputs[2].as<const float>(),
                       operand(call.outputs[0]), x.num_elements(), x.shape().dim(-1),
                       static_cast<int32_t>(kSquared));
}

Status cache_update(const KernelCall& call, Stream& stream) {
  const TensorRef &cache = call.outputs[0], &x = call.inputs[1];
  if (call.inputs[0].data != cache.data)
    PLIMSOLL_TRY(stream.copy(cache.data, call.inputs[0].data, cache.type.bytes().count));
  const int64_t tokens = x.shape().dim(1), cols = x.shape().dim(2) * x.shape().dim(3);
  return stream.launch("cache_update", blocks(x.shape().dim(0) * tokens, 1), {kThreads}, 0, operand(cache),
                       operand(x), call.inputs[2].as<const int32_t>(), tokens, cache.shape().dim(1), cols);
}

/// As sequences.cu has them.
struct CachedAttention {
  Operand q, k, v, out;
  const int32_t* start = nullptr;
  int64_t tokens = 0, size = 0, window = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
};
struct HeadNorm {
  Operand dy, x, q_weight, k_weight, out;
  const float* table = nullptr;
  float *q_rstd = nullptr, *k_rstd = nullptr;
  int64_t tokens = 0, stride = 0, dy_stride = 0, table_rows = 0;
  int32_t heads = 0, kv_heads = 0, head_dim = 0;
  float eps = 0;
};

Status attention_cached(const KernelCall& call, Stream& stream) {
  const ir::Shape &q = call.inputs[0].shape(), &k = call.inputs[1].shape();
  if (q.dim(3) > 256) return cannot(call, "heads of more than 256 elements");
  CachedAttention a;
  a.q = operand(call.inputs[0]);
  a.k = operand(call.inputs[1]);
  a.v = operand(call.inputs[2]);
  a.out = operand(call.outputs[0]);
  a.start = call.inputs[3].as<const int32_t>();
  a.tokens = q.dim(1);
  a.size = k.dim(1);
  a.window = call.op->attrs.i64("window");
  a.heads = static_cast<int32_t>(q.dim(2));
  a.kv_heads = static_cast<int32_t>(k.dim(2));
  a.head_dim = static_cast<int32_t>(q.dim(3));
  a.scale = static_cast<float>(call.op->attrs.f64("scale"));
  return stream.launch("attention_cached", blocks(q.num_rows(), 1), {256}, 0, a);
}

/// qkv and what follows it are operands from `first` on.
HeadNorm head_norm(const KernelCall& call, size_t first) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef &x = call.inputs[first], &table = call.inputs[first + 3];
  HeadNorm a;
  a.x = operand(x);
  a.q_weight = operand(call.inputs[first + 1]);
  a.k_weight = operand(call.inputs[first + 2]);
  a.out = operand(call.outputs[0]);
  a.table = table.as<const float>();
  a.tokens = x.shape().num_rows();
  a.stride = row_stride(x);
  a.table_rows = table.shape().num_rows();
  a.heads = static_cast<int32_t>(attrs.i64("heads"));
  a.kv_heads = static_cast<int32_t>(attrs.i64("kv_heads"));
  a.head_dim = static_cast<int32_t>(attrs.i64("head_dim"));
  a.eps = static_cast<float>(attrs.f64("eps"));
  return a;
}
Dim head_blocks(const HeadNorm& a) { return blocks(a.tokens * (a.heads + 2 * a.kv_heads), 8); }

Status qk_norm_rope(const KernelCall& call, Stream& stream) {
  HeadNorm a = head_norm(call, 0);
  if (a.head_dim > 512) return cannot(call, "heads of more than 512 elements");
  a.q_rstd = call.outputs[1].as<float>();
  a.k_rstd = call.outputs[2].as<float>();
  return stream.launch("qk_norm_rope_heads", head_blocks(a), {kThreads}, 0, a);
}

/// Rows of heads of a sequence.
Granules head_granules(const ir::Shape& qkv, int64_t heads) {
  return Granules(ir::Shape{qkv.dim(0), qkv.dim(1) * heads, 1});
}
int64_t qk_norm_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  const int64_t heads = std::max(types.attrs.i64("heads"), types.attrs.i64("kv_heads"));
  scratch.take<float>(head_granules(types.inputs[1].shape, heads).count() * types.attrs.i64("head_dim"));
  return scratch.bytes();
}

/// The weights' gradients first: dqkv may lie where an operand does.
Status qk_norm_rope_grad(const KernelCall& call, Stream& stream) {
  HeadNorm a = head_norm(call, 1);
  if (a.head_dim > 512) return cannot(call, "heads of more than 512 elements");
  a.dy = operand(call.inputs[0]);
  a.dy_stride = row_stride(call.inputs[0]);
  a.q_rstd = call.inputs[5].as<float>();
  a.k_rstd = call.inputs[6].as<float>();
  Scratch scratch(call);
  const ir::Shape& qkv = call.inputs[1].shape();
  auto* partial =
      scratch.take<float>(head_granules(qkv, std::max(a.heads, a.kv_heads)).count() * int64_t{a.head_dim});
  for (size_t keys = 0; keys < 2; ++keys) {
    const Granules granules = head_granules(qkv, keys == 1 ? a.kv_heads : a.heads);
    const auto threads = static_cast<uint32_t>(std::min<int64_t>(round_up(a.head_dim, 32), 256));
    PLIMSOLL_TRY(stream.launch("qk_norm_rope_weight", blocks(granules.count(), 1), {threads}, 0, a,
                               static_cast<int32_t>(keys), DeviceGranules(granules), partial));
    PLIMSOLL_TRY(stream.launch("add_partials", blocks(a.head_dim, 64), {64}, 0,
                               static_cast<const float*>(partial), granules.count(), int64_t{a.head_dim},
                               operand(input_or_none(call, 7 + keys)), operand(call.outputs[1 + keys])));
  }
  return stream.launch("qk_norm_rope_heads_grad", head_blocks(a), {kThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> row_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "document_positions", .run = positions},
      {.op = "gather_rows", .run = gather_rows, .strided_inputs = 0b1},
      {.op = "gather_rows_grad", .run = gather_rows_grad},
      {.op = "positions", .run = positions},
  };
  return kernels;
}

std::span<const Kernel> label_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "bce_with_logits", .run = label_loss<false>, .workspace_bytes = label_bytes},
      {.op = "bce_with_logits_grad", .run = label_loss_grad<false>},
      {.op = "squared_error", .run = label_loss<true>, .workspace_bytes = label_bytes},
      {.op = "squared_error_grad", .run = label_loss_grad<true>},
  };
  return kernels;
}

std::span<const Kernel> kv_cache_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention_cached", .run = attention_cached},
      {.op = "cache_update", .run = cache_update},
  };
  return kernels;
}

std::span<const Kernel> qk_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "qk_norm_rope", .run = qk_norm_rope, .strided_inputs = 0b1},
      {.op = "qk_norm_rope_grad",
       .run = qk_norm_rope_grad,
       .workspace_bytes = qk_norm_bytes,
       .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
