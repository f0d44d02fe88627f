// Norms of heads of queries and keys, then the rotation.
#include "backends/cuda/kernels/attention/qk_norm_args.h"
#include "backends/cuda/kernels/norm/sums.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

/// A warp takes a head.
Status accepts_head_norms(const ir::OpTypes& types, int /*capability*/) {
  return accepts_head(types.attrs.i64("head_dim"), kMostNormedHead, "norms of heads");
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
  a.q_rstd = call.outputs[1].as<float>();
  a.k_rstd = call.outputs[2].as<float>();
  return stream.launch(kQkNormRopeHeads, head_blocks(a), {kThreads}, 0, a);
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
    PLIMSOLL_TRY(stream.launch(kQkNormRopeWeight, blocks(granules.count(), 1), {threads}, 0,
                               {.norm = a,
                                .keys = static_cast<int>(keys),
                                .granules = device_granules(granules),
                                .partial = partial}));
    PLIMSOLL_TRY(add_partials(partial, granules.count(), a.head_dim, input_or_none(call, 7 + keys),
                              call.outputs[1 + keys], stream));
  }
  return stream.launch(kQkNormRopeHeadsGrad, head_blocks(a), {kThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> qk_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "qk_norm_rope", .run = qk_norm_rope, .strided_inputs = 0b1, .accepts = accepts_head_norms},
      {.op = "qk_norm_rope_grad",
       .run = qk_norm_rope_grad,
       .workspace_bytes = qk_norm_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_head_norms},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
