#include "models/blocks/attention.h"

#include "models/blocks/norm.h"
#include "ops/ops.h"

namespace plimsoll::models {

ir::ValueId positions(ir::Builder& b, const Forward& forward) {
  if (forward.doc_start.valid()) return ops::document_positions(b, forward.doc_start);
  if (!forward.start.valid()) return {};
  const ir::Shape shape = b.type(forward.tokens).shape;
  return ops::positions(b, shape.dim(0), shape.dim(1), forward.start);
}

ir::ValueId attend(ir::Builder& b, const Forward& forward, ir::ValueId q, ir::ValueId k, ir::ValueId v,
                   const ops::AttentionOptions& options, int64_t layer) {
  if (forward.cache_tokens == 0) {
    ops::AttentionOptions keyed = options;
    keyed.key = ops::random_key("layers." + std::to_string(layer), "attention");
    return ops::attention(b, q, k, v, forward.doc_start, keyed, forward.noise()).out;
  }
  const auto through_cache = [&](const char* kind, ir::ValueId x) {
    ir::TensorType type = b.type(x);
    type.shape.set_dim(1, forward.cache_tokens);
    type.dtype = forward.cache_dtype;
    const std::string name = "cache." + std::string(kind) + "." + std::to_string(layer);
    const ir::ValueId updated =
        ops::cache_update(b, b.state({name, type, ir::StateClass::kCache}), x, forward.start);
    b.assign(name, updated);
    return updated;
  };
  const ir::ValueId keys = through_cache("k", k), values = through_cache("v", v);
  return ops::attention_cached(b, q, keys, values, forward.start, options);
}

ir::ValueId attention(ir::Builder& b, const Model& model, const Forward& forward, const AttentionSpec& spec,
                      ir::ValueId x) {
  const ir::Shape shape = b.type(x).shape;
  const int64_t batch = shape.dim(0), tokens = shape.dim(1), d = spec.head_dim;
  const int64_t q_width = spec.heads * d, kv_width = spec.kv_heads * d;
  const auto parts =
      ops::split(b, linear(b, model, spec.qkv, x, forward.noise()), {q_width, kv_width, kv_width});
  ir::ValueId q = ops::reshape(b, parts[0], {batch, tokens, spec.heads, d});
  ir::ValueId k = ops::reshape(b, parts[1], {batch, tokens, spec.kv_heads, d});
  const ir::ValueId v = ops::reshape(b, parts[2], {batch, tokens, spec.kv_heads, d});
  if (!spec.q_norm.empty()) q = rms_norm(b, model, q, spec.q_norm, spec.norm_eps);
  if (!spec.k_norm.empty()) k = rms_norm(b, model, k, spec.k_norm, spec.norm_eps);
  if (spec.rope.valid()) {
    q = ops::rope(b, q, spec.rope);
    k = ops::rope(b, k, spec.rope);
  }
  const ir::ValueId out = attend(b, forward, q, k, v, spec.options, spec.layer);
  return linear(b, model, spec.out, ops::reshape(b, out, {batch, tokens, q_width}), forward.noise());
}

}  // namespace plimsoll::models
