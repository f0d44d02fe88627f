// The cache of generation, and attention over it.
#include <algorithm>
#include <span>

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

/// A kernel, and how many heads of queries that share keys a block of it takes.
struct CachedForm {
  const DeviceKernel<CachedAttention>& kernel;
  int64_t heads;
};
constexpr CachedForm kUpTo128[] = {
    {kAttentionCached128x1, 1}, {kAttentionCached128x4, 4}, {kAttentionCached128x8, 8}};
constexpr CachedForm kUpTo256[] = {{kAttentionCached256x1, 1}, {kAttentionCached256x4, 4}};
const CachedForm& cached_form(int64_t head_dim, int64_t group) {
  const auto forms = head_dim <= 128 ? std::span<const CachedForm>(kUpTo128) : kUpTo256;
  for (const CachedForm& form : forms)
    if (group <= form.heads) return form;
  return forms.back();
}

/// How a launch is cut up: its blocks along its grid's second axis, and stretches of the cache that are parts
/// of their own where blocks are too few for a card; 1: there are none.
struct CachedCut {
  int64_t blocks, parts;
  CachedCut(const ir::Shape& q, const ir::Shape& k) {
    constexpr int64_t kFew = 132;  // one a multiprocessor of large cards
    const int64_t group = q.dim(2) / k.dim(2);
    blocks = k.dim(2) * ceil_div(group, cached_form(q.dim(3), group).heads);
    parts = q.dim(0) * q.dim(1) * blocks < kFew ? ceil_div(k.dim(1), int64_t{kCachedStretch}) : 1;
  }
};

int64_t parts_elements(const ir::Shape& q, const CachedCut& cut) {
  return cut.parts == 1 ? 0 : q.num_rows() * cut.parts * (2 + q.dim(3));
}
int64_t cached_bytes(const ir::OpTypes& types) {
  const ir::Shape& q = types.inputs[0].shape;
  Scratch scratch;
  scratch.take<float>(parts_elements(q, CachedCut(q, types.inputs[1].shape)));
  return scratch.bytes();
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
  const CachedCut cut(q, k);
  a.stretches = static_cast<int32_t>(cut.parts);
  if (cut.parts > 1) a.parts = Scratch(call).take<float>(parts_elements(q, cut));
  const Dim grid{static_cast<uint32_t>(q.dim(0) * q.dim(1)), static_cast<uint32_t>(cut.blocks),
                 static_cast<uint32_t>(cut.parts)};
  PLIMSOLL_TRY(
      stream.launch(cached_form(a.head_dim, a.heads / a.kv_heads).kernel, grid, {kCachedThreads}, 0, a));
  if (a.parts == nullptr) return Ok{};
  return stream.launch(kAttentionCachedJoin, blocks(q.num_rows(), 1), {128}, 0, a);
}

}  // namespace

std::span<const Kernel> kv_cache_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention_cached",
       .run = attention_cached,
       .workspace_bytes = cached_bytes,
       .accepts = accepts_cached},
      {.op = "cache_update", .run = cache_update},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
