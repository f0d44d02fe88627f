// What stands around attention's products: dropout of its weights, norms and rotation of queries and keys;
// against the references, and fused against unfused.
#include "kernel_harness.h"

namespace plimsoll::cpu::testing {
namespace {

Attrs with_heads(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return {{"heads", heads}, {"kv_heads", kv_heads}, {"head_dim", head_dim}};
}
Attrs with_mask(Attrs attrs, bool causal, int64_t window) {
  attrs.set("scale", 0.3);
  attrs.set("causal", causal);
  attrs.set("window", window);
  return attrs;
}
Attrs dropping(Attrs attrs, double p) {
  attrs.set("p", p);
  attrs.set("key", int64_t{-9});
  return attrs;
}
Tensor reshaped(Tensor t, const Shape& shape) { return t.type.shape = shape, t; }
Tensor join(const std::vector<Tensor>& parts) { return run_cpu({"concat", parts})[0]; }

struct DropoutCase {
  int64_t tokens, head_dim;
  double p;
  bool causal;
  int64_t window;
};

/// Beyond a tile of keys, a block of queries and a granule; no multiple of a block of words.
TEST(AttentionDropout, AgainstReference) {
  for (const auto& [tokens, head_dim, p, causal, window] :
       {DropoutCase{7, 20, 0.5, true, 0}, DropoutCase{151, 9, 0.1, true, 0},
        DropoutCase{131, 16, 0.3, false, 0}, DropoutCase{275, 8, 0.25, true, 70},
        DropoutCase{66, 5, 0.0, true, 0}}) {
    const Attrs attrs = dropping(with_mask(with_heads(4, 2, head_dim), causal, window), p);
    const Tensor qkv = normal({2, tokens, 8 * head_dim}, 1), random = ints({4}, {5, -6, 7, 8});
    const Tensor dout = normal({2, tokens, 4 * head_dim}, 4);
    expect_op({"attention_packed", {qkv, absent(), random}, attrs}, 3e-6);
    const auto y = run_cpu({"attention_packed", {qkv, absent(), random}, attrs});
    expect_op({"attention_packed_grad", {qkv, y[0], y[1], dout, absent(), random}, attrs}, 1e-5);
  }
}

TEST(AttentionDropout, OfNothingIsNone) {
  const Attrs attrs = with_mask(with_heads(2, 1, 8), true, 0);
  const Tensor qkv = normal({2, 100, 32}, 1);
  expect_same_bits(
      run_cpu({"attention_packed", {qkv, absent(), ints({4}, {1, 2, 3, 4})}, dropping(attrs, 0.0)}),
      run_cpu({"attention_packed", {qkv}, attrs}), "p = 0");
}

struct HeadsCase {
  int64_t batch, tokens, heads, kv_heads, head_dim;
};
constexpr HeadsCase kHeads[] = {{1, 1, 1, 1, 2}, {2, 37, 3, 1, 20}, {2, 300, 4, 2, 26}, {1, 150, 2, 2, 64}};

TEST(QkNorm, AgainstReference) {
  for (const auto& [batch, tokens, heads, kv_heads, head_dim] : kHeads)
    for (const int64_t table_batch : {int64_t{1}, batch}) {
      Attrs attrs = with_heads(heads, kv_heads, head_dim);
      attrs.set("eps", 1e-5);
      const Shape packed{batch, tokens, (heads + 2 * kv_heads) * head_dim};
      const Tensor x = normal(packed, 1), dy = normal(packed, 2),
                   table = normal({table_batch, tokens, head_dim}, 3);
      const Tensor q = normal({head_dim}, 4), k = normal({head_dim}, 5);
      expect_op({"qk_norm_rope", {x, q, k, table}, attrs}, 2e-6);
      const auto y = run_cpu({"qk_norm_rope", {x, q, k, table}, attrs});
      expect_op({"qk_norm_rope_grad", {dy, x, q, k, table, y[1], y[2]}, attrs}, 1e-5);
      expect_op({"qk_norm_rope_grad",
                 {dy, x, q, k, table, y[1], y[2], normal({head_dim}, 6), normal({head_dim}, 7)},
                 attrs},
                1e-5);
    }
}

TEST(QkNorm, GivesTheBitsOfItsParts) {
  const Attrs turn{{"inverse", false}}, back{{"inverse", true}}, eps{{"eps", 1e-5}};
  for (const auto& [batch, tokens, heads, kv_heads, head_dim] : kHeads) {
    Attrs attrs = with_heads(heads, kv_heads, head_dim);
    attrs.set("eps", 1e-5);
    const auto shape = [&](int64_t n) { return Shape{batch, tokens, n, head_dim}; };
    const auto flat = [&](const Tensor& t) {
      return reshaped(t, Shape{batch, tokens, t.type.shape.dim(2) * head_dim});
    };
    const Tensor q = normal(shape(heads), 1), k = normal(shape(kv_heads), 2), v = normal(shape(kv_heads), 3);
    const Tensor dq = normal(shape(heads), 4), dk = normal(shape(kv_heads), 5),
                 table = normal({1, tokens, head_dim}, 6);
    const Tensor wq = normal({head_dim}, 7), wk = normal({head_dim}, 8);
    const Tensor qkv = join({flat(q), flat(k), flat(v)}), dy = join({flat(dq), flat(dk), flat(v)});
    for_each_isa([&](const std::string& isa) {
      const auto nq = run_cpu({"rms_norm", {q, wq}, eps}), nk = run_cpu({"rms_norm", {k, wk}, eps});
      const Tensor tq = run_cpu({"rope", {nq[0], table}, turn})[0],
                   tk = run_cpu({"rope", {nk[0], table}, turn})[0];
      const auto fused = run_cpu({"qk_norm_rope", {qkv, wq, wk, table}, attrs});
      expect_same_bits(fused, {join({flat(tq), flat(tk), flat(v)}), nq[1], nk[1]}, isa);
      const Tensor bq = run_cpu({"rope", {dq, table}, back})[0], bk = run_cpu({"rope", {dk, table}, back})[0];
      const auto gq = run_cpu({"rms_norm_grad", {bq, q, wq, nq[1]}}),
                 gk = run_cpu({"rms_norm_grad", {bk, k, wk, nk[1]}});
      const auto grads = run_cpu({"qk_norm_rope_grad", {dy, qkv, wq, wk, table, fused[1], fused[2]}, attrs});
      expect_same_bits(grads, {join({flat(gq[0]), flat(gk[0]), flat(v)}), gq[1], gk[1]}, isa);
    });
  }
}

}  // namespace
}  // namespace plimsoll::cpu::testing
