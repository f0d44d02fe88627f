// Norms and rotation of queries and keys: against the references, and fused against unfused.
#include "backends/cpu/kernels/attention/packed_heads.h"

namespace plimsoll::cpu::fixtures {
namespace {

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
}  // namespace plimsoll::cpu::fixtures
