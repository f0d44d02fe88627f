// Attention: derivatives over masks and head layouts, the packed form, what each mask hides.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs masks(bool causal, int64_t window) { return {{"scale", 0.7}, {"causal", causal}, {"window", window}}; }
Attrs packed(int64_t heads, int64_t kv_heads, int64_t head_dim, bool causal, int64_t window) {
  Attrs attrs = masks(causal, window);
  attrs.set("heads", heads);
  attrs.set("kv_heads", kv_heads);
  attrs.set("head_dim", head_dim);
  return attrs;
}
/// `attrs` with dropout, and what it draws from.
Attrs dropping(Attrs attrs, double p = 0.4) {
  attrs.set("p", p);
  attrs.set("key", int64_t{77});
  return attrs;
}
const RefTensor kRandom = ints({4}, {123, -7, 5, 10});
/// Two documents in the first of two sequences of five tokens, three in the second.
const RefTensor kDocuments = ints({2, 5}, {0, 0, 0, 3, 3, 0, 1, 1, 1, 4});

TEST(Attention, DerivativesMatchFiniteDifferences) {
  const RefTensor q = normal({2, 5, 4, 3}), k = normal({2, 5, 2, 3}, 1), v = normal({2, 5, 2, 3}, 2);
  const RefTensor one = normal({2, 5, 2, 3}, 3);
  const std::vector<DerivativeCase> rows = {
      {"causal", "attention", {one, k, v}, masks(true, 0)},
      {"all", "attention", {one, k, v}, masks(false, 0)},
      {"window", "attention", {one, k, v}, masks(true, 2)},
      {"window on both sides", "attention", {one, k, v}, masks(false, 2)},
      {"documents in a window on both sides", "attention", {q, k, v, kDocuments}, masks(false, 2)},
      {"grouped heads", "attention", {q, k, v}, masks(true, 0)},
      {"documents", "attention", {one, k, v, kDocuments}, masks(true, 0)},
      {"documents, all", "attention", {one, k, v, kDocuments}, masks(false, 0)},
      {"documents in a window", "attention", {q, k, v, kDocuments}, masks(true, 2)},
      {"packed", "attention_packed", {normal({2, 5, 12})}, packed(2, 1, 3, true, 0)},
      {"packed, documents, window",
       "attention_packed",
       {normal({2, 5, 12}), kDocuments},
       packed(4, 1, 2, true, 3)},
      {"dropout", "attention", {q, k, v, absent(), kRandom}, dropping(masks(true, 0))},
      {"dropout in documents", "attention", {one, k, v, kDocuments, kRandom}, dropping(masks(false, 0))},
      {"packed, dropout in a window",
       "attention_packed",
       {normal({2, 5, 12}), absent(), kRandom},
       dropping(packed(4, 1, 2, true, 3))},
      {"packed, all", "attention_packed", {normal({1, 3, 6})}, packed(1, 1, 2, false, 0)},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Attention, GivesKnownValues) {
  const RefTensor q = values({1, 2, 1, 1}, {1, 1}), k = values({1, 2, 1, 1}, {0, 1}),
                  v = values({1, 2, 1, 1}, {10, 20});
  const Tensors r =
      evaluate("attention", {q, k, v}, {{"scale", 1.0}, {"causal", true}, {"window", int64_t{0}}});
  const double weight = std::exp(1.0) / (1 + std::exp(1.0));
  EXPECT_LT(distance(r[0], values({1, 2, 1, 1}, {10, 10 + 10 * weight})), 1e-15);
  EXPECT_LT(distance(r[1], values({1, 1, 2}, {0, std::log(1 + std::exp(1.0))})), 1e-15);
}

TEST(Attention, ADocumentIsASequenceOfItsOwn) {
  for (const bool causal : {true, false}) {
    const RefTensor q = normal({1, 4, 2, 3}), k = normal({1, 4, 1, 3}, 1), v = normal({1, 4, 1, 3}, 2);
    const RefTensor both = evaluate("attention", {q, k, v, ints({1, 4}, {0, 0, 2, 2})}, masks(causal, 0))[0];
    const auto second = [](RefTensor t) {
      t.data.erase(t.data.begin(), t.data.begin() + static_cast<std::ptrdiff_t>(t.data.size() / 2));
      t.type.shape.set_dim(1, 2);
      return t;
    };
    EXPECT_LT(
        distance(second(both), evaluate("attention", {second(q), second(k), second(v)}, masks(causal, 0))[0]),
        1e-15);
  }
}

TEST(Attention, AWindowOfAllIsNone) {
  const RefTensor qkv = normal({1, 5, 12});
  EXPECT_EQ(evaluate("attention_packed", {qkv}, packed(2, 1, 3, true, 5))[0].data,
            evaluate("attention_packed", {qkv}, packed(2, 1, 3, true, 0))[0].data);
  EXPECT_NE(evaluate("attention_packed", {qkv}, packed(2, 1, 3, true, 4))[0].data,
            evaluate("attention_packed", {qkv}, packed(2, 1, 3, true, 0))[0].data);
}

TEST(Attention, ThePackedFormIsWhatItReplaces) {
  const Tensors x = {normal({2, 5, 24}), kDocuments, normal({2, 5, 12}, 1)};
  const Tensors fused = evaluate(x, [](Builder& b, const auto& v) {
    const auto r = b.ops("attention_packed", {v[0], v[1]}, packed(4, 2, 3, true, 3));
    return std::vector{
        r[0], r[1], b.op("attention_packed_grad", {v[0], r[0], r[1], v[2], v[1]}, packed(4, 2, 3, true, 3))};
  });
  const Tensors apart = evaluate(x, [](Builder& b, const auto& v) {
    const auto parts = ops::split(b, v[0], {12, 6, 6});
    const ValueId q = ops::reshape(b, parts[0], {2, 5, 4, 3});
    const ValueId k = ops::reshape(b, parts[1], {2, 5, 2, 3});
    const ValueId values = ops::reshape(b, parts[2], {2, 5, 2, 3});
    const auto r = ops::attention(b, q, k, values, v[1], {.scale = 0.7, .causal = true, .window = 3});
    const auto g =
        b.ops("attention_grad", {q, k, values, r.out, r.lse, ops::reshape(b, v[2], {2, 5, 4, 3}), v[1]},
              masks(true, 3));
    return std::vector{ops::reshape(b, r.out, {2, 5, 12}), r.lse,
                       ops::concat(b, {ops::reshape(b, g[0], {2, 5, 12}), ops::reshape(b, g[1], {2, 5, 6}),
                                       ops::reshape(b, g[2], {2, 5, 6})})};
  });
  EXPECT_LT(distance(fused, apart), 1e-15);
}

/// Weights that are all equal: with v = 1 the result is the share that is kept, made up for.
RefTensor kept_shares(int64_t batch, int64_t tokens, const RefTensor& random, double p, int64_t key = 77) {
  Attrs attrs = dropping(masks(false, 0), p);
  attrs.set("key", key);
  const RefTensor zero = reference::constant({DType::kF32, {batch, tokens, 3, 1}}, 0);
  const RefTensor ones = reference::constant({DType::kF32, {batch, tokens, 3, 1}}, 1);
  return evaluate("attention", {zero, zero, ones, absent(), random}, attrs)[0];
}

TEST(Attention, DropoutKeepsTheStatedShareAndScales) {
  constexpr double kP = 0.3, kTokens = 60;
  const RefTensor shares = kept_shares(2, 60, kRandom, kP);
  double mean = 0, variance = 0;
  const auto count = static_cast<double>(shares.data.size());
  for (const double v : shares.data) mean += v / count;
  for (const double v : shares.data) variance += (v - mean) * (v - mean) / count;
  // Each is a mean of kTokens independent Bernoulli variables over 1 - p.
  const double expected = kP / (1 - kP) / kTokens;
  EXPECT_NEAR(mean, 1.0, 4 * std::sqrt(expected / count));
  EXPECT_NEAR(variance, expected, 0.2 * expected);
}

TEST(Attention, DropoutDrawsBySequenceStepHeadAndKey) {
  const RefTensor whole = kept_shares(2, 13, kRandom, 0.5);
  RefTensor later = kRandom;
  later.data[3] += 1;  // the second sequence, in a micro-batch of its own
  EXPECT_TRUE(
      std::equal(whole.data.begin() + 39, whole.data.end(), kept_shares(1, 13, later, 0.5).data.begin()));
  RefTensor step = kRandom;
  step.data[2] += 1;
  EXPECT_NE(whole.data, kept_shares(2, 13, step, 0.5).data);
  EXPECT_NE(whole.data, kept_shares(2, 13, kRandom, 0.5, 78000).data);
  EXPECT_FALSE(std::equal(whole.data.begin(), whole.data.begin() + 39, whole.data.begin() + 39));
  const auto head = [&](size_t h) {
    std::vector<double> shares;
    for (size_t i = h; i < 39; i += 3) shares.push_back(whole.data[i]);
    return shares;
  };
  EXPECT_NE(head(0), head(1));
}

TEST(Attention, DropoutIsThereWhereBothAreGiven) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  const ValueId x = ops::fill(b, {1, 2, 1, 2}, 1),
                random = b.state({"r", i32({4}), ir::StateClass::kScalars});
  const auto inputs = [&](double p, ValueId r) {
    const ops::AttentionOptions options{.dropout = p};
    return graph.op(graph.value(ops::attention(b, x, x, x, {}, options, r).out).producer).inputs.size();
  };
  EXPECT_EQ(inputs(0.1, random), 5U);
  EXPECT_EQ(inputs(0.1, {}), 3U);
  EXPECT_EQ(inputs(0, random), 3U);
}

TEST(Attention, CountsVisiblePairs) {
  const auto flops = [](bool causal, int64_t window) {
    ir::Graph graph;
    Builder b(graph, ops::find_op);
    const ValueId out =
        b.op("attention_packed", {ops::fill(b, {1, 8, 12}, 1)}, packed(2, 1, 3, causal, window));
    return ir::op_cost(graph, graph.op(graph.value(out).producer)).flops;
  };
  EXPECT_EQ(flops(false, 0), 4 * 2 * 64 * 3);
  EXPECT_EQ(flops(true, 0), 4 * 2 * 36 * 3);
  EXPECT_EQ(flops(true, 2), 4 * 2 * 15 * 3);
  EXPECT_EQ(flops(false, 2), 4 * 2 * 22 * 3);
  EXPECT_EQ(flops(false, 100), 4 * 2 * 64 * 3);
}

TEST(Attention, SaysWhatDoesNotFit) {
  const TensorType q = f32({2, 5, 4, 3}), k = f32({2, 5, 2, 3});
  const std::vector<ErrorCase> rows = {
      {"attention",
       {f32({2, 5, 3, 3}), k, k},
       masks(true, 0),
       "attention: 3 heads are no multiple of 2 kv heads"},
      {"attention",
       {q, f32({2, 4, 2, 3}), k},
       masks(true, 0),
       "attention: k must be [B,T,kv_heads,head_dim] as q: q [2,5,4,3], k [2,4,2,3]"},
      {"attention", {q, k, q}, masks(true, 0), "attention: v must be [2,5,2,3], is [2,5,4,3]"},
      {"attention", {q, k, k, i32({5})}, masks(true, 0), "attention: doc_start must be [2,5], is [5]"},
      {"attention", {q, k, k}, masks(true, -1), "attention: window must be positive, or 0 for none"},
      {"attention", {q, k, k, {}, i32({4})}, masks(true, 0), "attention: p and key go with random"},
      {"attention", {q, k, k}, dropping(masks(true, 0)), "attention: p and key go with random"},
      {"attention", {q, k, k, {}, i32({4})}, dropping(masks(true, 0), 1.0), "attention: p must be in [0, 1)"},
      {"attention",
       {q, k, k, {}, i32({3})},
       dropping(masks(true, 0)),
       "attention: random must be [4], is [3]"},
      {"attention_grad",
       {q, k, k, q, f32({2, 4, 5}), k},
       masks(true, 0),
       "attention_grad: dout must be [2,5,4,3], is [2,5,2,3]"},
      {"attention_packed",
       {f32({2, 5, 13})},
       packed(2, 1, 3, true, 0),
       "attention_packed: qkv does not hold 2 + 2 * 1 heads of 3: qkv [2,5,13]"},
      {"attention_packed",
       {f32({2, 5, 12})},
       packed(int64_t{1} << 62, 1, 3, true, 0),
       "attention_packed: heads out of range"},
      {"attention_packed_grad",
       {f32({2, 5, 12}), f32({2, 5, 6}), f32({2, 5, 2}), f32({2, 5, 6})},
       packed(2, 1, 3, true, 0),
       "attention_packed_grad: lse must be [2,2,5], is [2,5,2]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
