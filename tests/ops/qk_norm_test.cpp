// Norms and rotation of queries and keys in packed rows: derivative, the ops that it replaces, operands that
// do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

constexpr int64_t kHeads = 3, kKvHeads = 1, kHeadDim = 4, kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
const Attrs kAttrs{{"heads", kHeads}, {"kv_heads", kKvHeads}, {"head_dim", kHeadDim}, {"eps", 1e-3}};

RefTensor table(int64_t batch, int64_t tokens) { return normal({batch, tokens, kHeadDim}, 9); }

TEST(QkNorm, DerivativeMatchesFiniteDifferences) {
  for (const int64_t batch : {1, 2}) {
    const DerivativeCase row{
        .name = "qk_norm_rope",
        .op = "qk_norm_rope",
        .inputs = {normal({2, 3, kWidth}), normal({kHeadDim}, 1), normal({kHeadDim}, 2), table(batch, 3)},
        .attrs = kAttrs,
        .constants = {3}};
    EXPECT_LT(derivative_error(row), kDerivativeTolerance) << batch;
  }
}

/// rms_norm and rope on the parts, then the rows joined again.
std::vector<ValueId> separate(Builder& b, const std::vector<ValueId>& in) {
  const Shape shape = b.type(in[0]).shape;
  const auto parts = ops::split(b, in[0], {kHeads * kHeadDim, kKvHeads * kHeadDim, kKvHeads * kHeadDim});
  const auto turned = [&](ValueId part, int64_t heads, ValueId weight) {
    const ValueId x = ops::reshape(b, part, {shape.dim(0), shape.dim(1), heads, kHeadDim});
    const ops::RmsNorm norm = ops::rms_norm(b, x, weight, 1e-3);
    return std::pair(
        ops::reshape(b, ops::rope(b, norm.y, in[3]), {shape.dim(0), shape.dim(1), heads * kHeadDim}),
        norm.rstd);
  };
  const auto q = turned(parts[0], kHeads, in[1]), k = turned(parts[1], kKvHeads, in[2]);
  return {ops::concat(b, {q.first, k.first, parts[2]}), q.second, k.second};
}

TEST(QkNorm, IsNormAndRopeOnTheParts) {
  const Tensors in = {normal({2, 5, kWidth}), normal({kHeadDim}, 1), normal({kHeadDim}, 2), table(1, 5)};
  const Tensors fused = evaluate("qk_norm_rope", in, kAttrs);
  EXPECT_EQ(distance(fused, evaluate(in, separate)), 0);
}

TEST(QkNorm, SaysWhatDoesNotFit) {
  const auto t = f32({2, 3, kHeadDim}), w = f32({kHeadDim});
  const ErrorCase rows[] = {
      {"qk_norm_rope",
       {f32({2, 3, 16}), w, w, t},
       kAttrs,
       "qk_norm_rope: qkv does not hold 3 + 2 * 1 heads of 4: qkv [2,3,16]"},
      {"qk_norm_rope",
       {f32({2, 3, kWidth}), f32({3}), w, t},
       kAttrs,
       "qk_norm_rope: q_weight must be [4], is [3]"},
      {"qk_norm_rope",
       {f32({2, 3, kWidth}), w, f32({3}), t},
       kAttrs,
       "qk_norm_rope: k_weight must be [4], is [3]"},
      {"qk_norm_rope",
       {f32({2, 3, kWidth}), w, w, f32({3, 3, 4})},
       kAttrs,
       "qk_norm_rope: table must be [B or 1, T, 4], an even head size: qkv [2,3,20], table [3,3,4]"},
      {"qk_norm_rope_grad",
       {f32({2, 3, 16}), f32({2, 3, kWidth}), w, w, t, f32({2, 3, 3}), f32({2, 3, 1})},
       kAttrs,
       "qk_norm_rope_grad: dy must be [2,3,20], is [2,3,16]"},
      {"qk_norm_rope_grad",
       {f32({2, 3, kWidth}), f32({2, 3, kWidth}), w, w, t, f32({2, 3, 3}), f32({2, 3, 2})},
       kAttrs,
       "qk_norm_rope_grad: k_rstd must be [2,3,1], is [2,3,2]"},
  };
  for (const ErrorCase& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
