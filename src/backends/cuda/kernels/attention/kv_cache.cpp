// The cache of generation, and attention over it.
#include "backends/cuda/kernels/attention/kv_cache_args.h"
#include "backends/cuda/kernels/operands.h"

namespace plimsoll::cuda {
namespace {

Status cache_update(const KernelCall& call, Stream& stream) {
  const TensorRef &cache = call.outputs[0], &x = call.inputs[1];
  if (call.inputs[0].data != cache.data)
    PLIMSOLL_TRY(stream.copy(cache.data, call.inputs[0].data, cache.type.bytes().count));
  const int64_t tokens = x.shape().dim(1), cols = x.shape().dim(2) * x.shape().dim(3);
  return stream.launch(kCacheUpdate, blocks(x.shape().dim(0) * tokens, 1), {kThreads}, 0,
                       {.cache = operand(cache),
                        .x = operand(x),
                        .start = call.inputs[2].as<const int32_t>(),
                        .tokens = tokens,
                        .size = cache.shape().dim(1),
                        .cols = cols});
}

Status accepts_cached(const ir::OpTypes& types, int /*capability*/) {
  return accepts_head(types.inputs[0].shape.dim(3), kMostCachedHead, "generation");
}

Status attention_cached(const KernelCall& call, Stream& stream) {
  const ir::Shape &q = call.inputs[0].shape(), &k = call.inputs[1].shape();
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
  return stream.launch(kAttentionCached, blocks(q.num_rows(), 1), {256}, 0, a);
}

}  // namespace

std::span<const Kernel> kv_cache_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention_cached", .run = attention_cached, .accepts = accepts_cached},
      {.op = "cache_update", .run = cache_update},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
