// Attention in double, shared by its separate and its packed form: extents, and the four references.
#pragma once

#include "ops/operands.h"

namespace plimsoll::ops {

/// The extents of an attention, whichever way its operands are laid out.
struct Extents {
  int64_t batch = 1, tokens = 1, heads = 1, kv_heads = 1, head_dim = 1;
  [[nodiscard]] int64_t packed() const { return (heads + 2 * kv_heads) * head_dim; }
};

inline Extents extents_of(const Shape& q, const Shape& k) {
  return {q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3)};
}
inline Extents extents_of(const Shape& qkv, const ir::Attrs& attrs) {
  return {qkv.dim(0), qkv.dim(1), attrs.i64("heads"), attrs.i64("kv_heads"), attrs.i64("head_dim")};
}

void reference_attention(RefContext& ctx);
void reference_attention_grad(RefContext& ctx);
void reference_attention_packed(RefContext& ctx);
void reference_attention_packed_grad(RefContext& ctx);

}  // namespace plimsoll::ops
