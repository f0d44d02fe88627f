// The ops of generation's cache put into terms of attention.h and kv_cache.h, and the writing of new rows.
#include "backends/cpu/kernels/attention/kv_cache.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/attention/attention_layout.h"
#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

/// Positions [begin, begin + count) of sequence `b` of x [B, T, heads, head_dim].
TensorRef positions_of(const TensorRef& x, int64_t b, int64_t begin, int64_t count) {
  TensorRef part = x;
  part.type.shape.set_dim(0, 1);
  part.type.shape.set_dim(1, count);
  part.data += (b * x.strides[0] + begin * x.strides[1]) * ir::bits(x.type.dtype) / 8;
  return part;
}

/// New rows that the cache keeps in another dtype.
void update_rounded(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &cache = call.outputs[0], &x = call.inputs[1];
  const auto* start = call.inputs[2].as<const int32_t>();
  for (int64_t b = 0; b < x.shape().dim(0); ++b) {
    const int64_t count = std::min(x.shape().dim(1), cache.shape().dim(1) - start[b]);
    if (count > 0) cast(positions_of(x, b, 0, count), positions_of(cache, b, start[b], count), pool);
  }
}

void cache_update(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &cache = call.outputs[0], &before = call.inputs[0];
  const RowsOfAny x(call.inputs[1], 2);
  const auto* start = call.inputs[2].as<const int32_t>();
  const int64_t tokens = call.inputs[1].shape().dim(1), keys = cache.shape().dim(1), width = x.cols();
  if (cache.data != before.data)
    std::memcpy(cache.data, before.data, static_cast<size_t>(cache.type.bytes().count));
  if (cache.type.dtype != call.inputs[1].type.dtype) return update_rounded(call, pool);
  for_row_blocks(pool, x.rows(), width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t position = start[r / tokens] + r % tokens;
      if (position >= keys) continue;
      std::memcpy(cache.data + (r / tokens * keys + position) * width * x.element_bytes(), x.row(r),
                  static_cast<size_t>(width * x.element_bytes()));
    }
  });
}

AttentionShape shape_of(const ir::Shape& q, const ir::Shape& k) {
  return {q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3)};
}

/// The bytes of one of the caches in f32; a multiple of the alignment.
int64_t widened_bytes(const ir::TensorType& cache) {
  return round_up(cache.shape.num_elements() * static_cast<int64_t>(sizeof(float)), runtime::kAlignment);
}

/// A chunk attends in f32: what it sees of a shorter cache is widened into the workspace, of which the rest
/// is left.
const float* widened(const TensorRef& cache, std::span<const int32_t> start, int64_t tokens, ThreadPool& pool,
                     std::span<std::byte>& workspace) {
  TensorRef wide{workspace.data(), cache.type, {}};
  wide.type.dtype = ir::DType::kF32;
  wide.strides = ir::dense_strides(wide.type.shape);
  for (int64_t b = 0; b < cache.shape().dim(0); ++b) {
    // Queries and keys go in whole blocks, and a masked key's weight of 0 wants a finite value.
    const int64_t end = round_up(start[static_cast<size_t>(b)] + round_up(tokens, kBlock), kBlock);
    const int64_t seen = std::min(cache.shape().dim(1), end);
    cast(positions_of(cache, b, 0, seen), positions_of(wide, b, 0, seen), pool);
  }
  workspace = workspace.subspan(static_cast<size_t>(widened_bytes(cache.type)));
  return wide.as<const float>();
}

void attention_cached(const KernelCall& call, ThreadPool& pool) {
  AttentionArgs a;
  a.shape = shape_of(call.inputs[0].shape(), call.inputs[1].shape());
  const auto q = matrix_of<const float>(call.inputs[0], 2);
  a.q = q.data, a.q_token_stride = q.stride;
  a.k_token_stride = a.v_token_stride = a.shape.num_kv_heads * a.shape.head_dim;
  a.cached_keys = call.inputs[1].shape().dim(1);
  a.start = call.inputs[3].as<const int32_t>();
  a.scale = static_cast<float>(call.op->attrs.f64("scale"));
  a.window = call.op->attrs.i64("window");
  a.out = call.outputs[0].as<float>();
  a.out_token_stride = a.shape.num_heads * a.shape.head_dim;
  const TensorRef &k = call.inputs[1], &v = call.inputs[2];
  if (a.shape.tokens == 1)
    return attention_decode(a, {.k = k.data, .v = v.data, .dtype = k.type.dtype}, pool, call.workspace);
  std::span<std::byte> workspace = call.workspace;
  const bool widens = k.type.dtype != ir::DType::kF32;
  const std::span<const int32_t> start(a.start, static_cast<size_t>(a.shape.batch));
  a.k = widens ? widened(k, start, a.shape.tokens, pool, workspace) : k.as<const float>();
  a.v = widens ? widened(v, start, a.shape.tokens, pool, workspace) : v.as<const float>();
  attention_forward(a, pool, workspace);
}

int64_t attention_cached_bytes(const ir::OpTypes& types, int num_threads) {
  const AttentionShape shape = shape_of(types.inputs[0].shape, types.inputs[1].shape);
  if (shape.tokens == 1) return attention_decode_workspace_bytes(shape, types.inputs[1].shape.dim(1));
  const bool widens = types.inputs[1].dtype != ir::DType::kF32;
  return attention_forward_workspace_bytes(shape, num_threads) +
         (widens ? widened_bytes(types.inputs[1]) + widened_bytes(types.inputs[2]) : 0);
}

}  // namespace

std::span<const Kernel> kv_cache_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention_cached",
       .run = attention_cached,
       .workspace_bytes = attention_cached_bytes,
       .strided_inputs = 0b1,
       .stored_inputs = 0b110},
      {.op = "cache_update", .run = cache_update, .strided_inputs = 0b10, .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
