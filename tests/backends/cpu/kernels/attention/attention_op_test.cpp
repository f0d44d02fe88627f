// Attention's ops: against the references, and fused against unfused.
#include "backends/cpu/kernels/attention/packed_heads.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Attention, AgainstReference) {
  const Attrs plain{{"scale", 0.3}, {"causal", true}, {"window", int64_t{0}}};
  const Tensor q = normal({2, 17, 4, 20}, 1), k = normal({2, 17, 2, 20}, 2), v = normal({2, 17, 2, 20}, 3);
  Tensor starts = ints({2, 17}, std::vector<int32_t>(34, 0));
  for (size_t i = 8; i < 17; ++i) starts.bits[i] = 8;
  for (const Tensor& doc : {absent(), starts}) {
    expect_op({"attention", {q, k, v, doc}, plain}, 3e-6);
    const auto y = run_cpu({"attention", {q, k, v, doc}, plain});
    expect_op({"attention_grad", {q, k, v, y[0], y[1], normal({2, 17, 4, 20}, 4), doc}, plain}, 1e-5);
  }
}

/// More than a tile of tokens: documents and windows that begin within one.
TEST(Attention, LongAgainstReference) {
  const int64_t tokens = 150;
  const Tensor q = normal({1, tokens, 2, 20}, 1), k = normal({1, tokens, 1, 20}, 2),
               v = normal({1, tokens, 1, 20}, 3), dout = normal({1, tokens, 2, 20}, 4);
  Tensor starts = ints({1, tokens}, std::vector<int32_t>(tokens, 0));
  std::fill(starts.bits.begin() + 70, starts.bits.end(), 70);
  for (const Tensor& doc : {absent(), starts})
    for (const auto& [causal, window] : {std::pair(true, int64_t{0}), {true, 40}, {false, 40}, {false, 70}}) {
      const Attrs attrs{{"scale", 0.3}, {"causal", causal}, {"window", window}};
      expect_op({"attention", {q, k, v, doc}, attrs}, 3e-6);
      const auto y = run_cpu({"attention", {q, k, v, doc}, attrs});
      expect_op({"attention_grad", {q, k, v, y[0], y[1], dout, doc}, attrs}, 1e-5);
    }
}

TEST(Attention, PackedGivesTheBitsOfItsParts) {
  Attrs plain{{"scale", 0.3}, {"causal", true}, {"window", int64_t{5}}}, packed = plain;
  packed.set("heads", int64_t{4});
  packed.set("kv_heads", int64_t{2});
  packed.set("head_dim", int64_t{20});
  const Shape wide{2, 17, 80}, narrow{2, 17, 40}, wide4{2, 17, 4, 20}, narrow4{2, 17, 2, 20};
  const Tensor q = normal(wide4, 1), k = normal(narrow4, 2), v = normal(narrow4, 3), dout = normal(wide4, 4);
  const Tensor qkv = join({reshaped(q, wide), reshaped(k, narrow), reshaped(v, narrow)});
  expect_op({"attention_packed", {qkv}, packed}, 3e-6);
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu({"attention", {q, k, v}, plain});
    const auto yp = run_cpu({"attention_packed", {qkv}, packed});
    expect_same_bits(yp, {reshaped(y[0], wide), y[1]}, isa);
    const auto d = run_cpu({"attention_grad", {q, k, v, y[0], y[1], dout}, plain});
    const auto dp = run_cpu({"attention_packed_grad", {qkv, yp[0], yp[1], reshaped(dout, wide)}, packed});
    expect_same_bits(dp[0], join({reshaped(d[0], wide), reshaped(d[1], narrow), reshaped(d[2], narrow)}),
                     isa);
  });
}

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
        DropoutCase{66, 5, 0.0, true, 0}, DropoutCase{275, 8, 0.25, false, 70}}) {
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

}  // namespace
}  // namespace plimsoll::cpu::fixtures
