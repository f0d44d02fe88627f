// Attributes and operands of attention in a packed projection.
#pragma once

#include <vector>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {

inline Attrs with_heads(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return {{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", head_dim}};
}
inline Attrs with_mask(Attrs attrs, bool causal, int64_t window) {
  attrs.set("scale", 0.3);
  attrs.set("causal", causal);
  attrs.set("window", window);
  return attrs;
}
inline Attrs dropping(Attrs attrs, double p) {
  attrs.set("p", p);
  attrs.set("key", int64_t{-9});
  return attrs;
}
inline Tensor reshaped(Tensor t, const Shape& shape) { return t.type.shape = shape, t; }
inline Tensor join(const std::vector<Tensor>& parts) { return run_cpu({"concat", parts})[0]; }

}  // namespace plimsoll::cpu::fixtures
