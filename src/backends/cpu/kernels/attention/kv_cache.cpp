// The ops of generation's cache put into terms of attention.h and kv_cache.h, and the writing of new rows.
#include "backends/cpu/kernels/attention/kv_cache.h"

#include <cstring>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

void cache_update(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &cache = call.outputs[0], &before = call.inputs[0];
  const auto x = matrix_of<const float>(call.inputs[1], 2);
  const auto* start = call.inputs[2].as<const int32_t>();
  const int64_t tokens = call.inputs[1].shape().dim(1), keys = cache.shape().dim(1), width = x.cols;
  if (cache.data != before.data)
    std::memcpy(cache.data, before.data, static_cast<size_t>(cache.type.bytes().count));
  for_row_blocks(pool, x.rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t position = start[r / tokens] + r % tokens;
      if (position >= keys) continue;
      std::memcpy(cache.as<float>() + (r / tokens * keys + position) * width, x.row(r),
                  static_cast<size_t>(width) * sizeof(float));
    }
  });
}

AttentionShape shape_of(const ir::Shape& q, const ir::Shape& k) {
  return {q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3)};
}

void attention_cached(const KernelCall& call, ThreadPool& pool) {
  AttentionArgs a;
  a.shape = shape_of(call.inputs[0].shape(), call.inputs[1].shape());
  const auto q = matrix_of<const float>(call.inputs[0], 2);
  a.q = q.data, a.q_token_stride = q.stride;
  a.k = call.inputs[1].as<const float>(), a.v = call.inputs[2].as<const float>();
  a.k_token_stride = a.v_token_stride = a.shape.num_kv_heads * a.shape.head_dim;
  a.cached_keys = call.inputs[1].shape().dim(1);
  a.start = call.inputs[3].as<const int32_t>();
  a.scale = static_cast<float>(call.op->attrs.f64("scale"));
  a.window = call.op->attrs.i64("window");
  a.out = call.outputs[0].as<float>();
  a.out_token_stride = a.shape.num_heads * a.shape.head_dim;
  if (a.shape.tokens == 1)
    attention_decode(a, pool, call.workspace);
  else
    attention_forward(a, pool, call.workspace);
}

int64_t attention_cached_bytes(const ir::OpTypes& types, int num_threads) {
  const AttentionShape shape = shape_of(types.inputs[0].shape, types.inputs[1].shape);
  return shape.tokens == 1 ? attention_decode_workspace_bytes(shape, types.inputs[1].shape.dim(1))
                           : attention_forward_workspace_bytes(shape, num_threads);
}

}  // namespace

std::span<const Kernel> kv_cache_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention_cached",
       .run = attention_cached,
       .workspace_bytes = attention_cached_bytes,
       .strided_inputs = 0b1},
      {.op = "cache_update", .run = cache_update, .strided_inputs = 0b10},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
