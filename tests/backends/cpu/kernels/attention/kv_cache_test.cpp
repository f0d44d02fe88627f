// The cache's new rows, and attention over it.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(CacheUpdate, WritesEachRowAtItsStart) {
  const Tensor cache = normal({3, 9, 2, 5}, 1);
  expect_op({"cache_update", {cache, normal({3, 4, 2, 5}, 2), ints({3}, {0, 5, 2})}}, 0.0);
  expect_op({"cache_update", {cache, normal({3, 1, 2, 5}, 2), ints({3}, {8, 0, 4})}}, 0.0);
}

TEST(CacheUpdate, DropsRowsBehindTheEnd) {
  const Tensor cache = normal({2, 9, 1, 5}, 1);
  expect_op({"cache_update", {cache, normal({2, 6, 1, 5}, 2), ints({2}, {7, 9})}}, 0.0);
}

TEST(CacheUpdate, KeepsRowsInTheCachesDtype) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const Tensor cache = as(dtype, normal({3, 9, 2, 5}, 1)), x = normal({3, 4, 2, 5}, 2);
    expect_op({"cache_update", {cache, as(dtype, x), ints({3}, {0, 7, 2})}}, 0.0);
    expect_op({"cache_update", {cache, x, ints({3}, {0, 7, 9})}}, dtype == DType::kBf16 ? 0x1p-8 : 0x1p-11);
  }
}

OpRun cached(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start, int64_t window = 0) {
  return {"attention_cached", {q, k, v, start}, {{"scale", 0.3}, {"window", window}}};
}

TEST(AttentionCached, OneTokenAgainstReference) {
  for (const auto& [heads, kv_heads] : {std::pair<int64_t, int64_t>{1, 1}, {3, 1}, {9, 3}, {12, 2}, {7, 7}})
    for (const int64_t d : {1, 20, 64})
      for (const int64_t window : {0, 7, 150}) {
        const Tensor k = normal({3, 300, kv_heads, d}, 2), v = normal({3, 300, kv_heads, d}, 3);
        expect_op(cached(normal({3, 1, heads, d}, 1), k, v, ints({3}, {0, 131, 299}), window), 3e-6);
      }
}

TEST(AttentionCached, AChunkAgainstReference) {
  for (const auto& [heads, kv_heads] : {std::pair<int64_t, int64_t>{2, 2}, {6, 2}})
    for (const int64_t tokens :
         sizes_for<std::vector<int64_t>>({2, 23}, {2, 70, 130}))  // with parts and without
      for (const int64_t window : {0, 5, 100}) {
        const Tensor k = normal({3, 300, kv_heads, 20}, 2), v = normal({3, 300, kv_heads, 20}, 3);
        expect_op(cached(normal({3, tokens, heads, 20}, 1), k, v, ints({3}, {0, 37, 170}), window), 3e-6);
      }
}

// A cache of 16 bits is what it stands for, whoever reads it.
TEST(AttentionCached, WidensTheCache) {
  for (const DType dtype : {DType::kBf16, DType::kF16})
    for (const int64_t tokens : sizes_for<std::vector<int64_t>>({1, 23}, {1, 70})) {
      const Tensor k = as(dtype, normal({3, 300, 2, 20}, 2)), v = as(dtype, normal({3, 300, 2, 20}, 3));
      const Tensor q = normal({3, tokens, 6, 20}, 1), start = ints({3}, {0, 131, 250});
      expect_op(cached(q, k, v, start), 3e-6);
      expect_op(cached(as(dtype, q), k, v, start), dtype == DType::kBf16 ? 0x1p-8 : 0x1p-11);
    }
}

TEST(AttentionCached, PositionsBehindTheCacheAreFinite) {
  const Tensor k = normal({2, 40, 2, 20}, 2), v = normal({2, 40, 2, 20}, 3);
  for (const int64_t tokens : {1, 30})
    for_each_isa([&](const std::string& isa) {
      const Tensor out = run_cpu(cached(normal({2, tokens, 4, 20}, 1), k, v, ints({2}, {39, 60})))[0];
      for (size_t i = 0; i < out.bits.size(); ++i) ASSERT_TRUE(std::isfinite(out.f32(i))) << isa;
    });
}

// What makes prefill independent of how it is cut: a token's bits are those of training's attention.
TEST(AttentionCached, AChunkHasTheBitsOfAttention) {
  const Tensor q = normal({2, 200, 6, 24}, 1), k = normal({2, 200, 2, 24}, 2), v = normal({2, 200, 2, 24}, 3);
  const auto tokens_of = [](const Tensor& t, int64_t begin, int64_t end) {
    const int64_t tokens = t.type.shape.dim(1), width = t.type.shape.dim(2) * t.type.shape.dim(3);
    Tensor part{t.type, {}};
    part.type.shape.set_dim(1, end - begin);
    for (int64_t b = 0; b < t.type.shape.dim(0); ++b)
      part.bits.insert(part.bits.end(), t.bits.begin() + (b * tokens + begin) * width,
                       t.bits.begin() + (b * tokens + end) * width);
    return part;
  };
  for (const int64_t window : {0, 70})
    for_each_isa([&](const std::string& isa) {
      const Tensor whole =
          run_cpu({"attention", {q, k, v}, {{"scale", 0.3}, {"causal", true}, {"window", window}}})[0];
      for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 200}, {0, 64}, {64, 200}, {33, 160}}) {
        const auto at = static_cast<int32_t>(begin);
        expect_same_bits(run_cpu(cached(tokens_of(q, begin, end), k, v, ints({2}, {at, at}), window))[0],
                         tokens_of(whole, begin, end), isa + " from " + std::to_string(begin));
      }
    });
}

TEST(AttentionCached, ARowsBitsDependNeitherOnBatchNorOnTheCachesSize) {
  const Tensor q = normal({3, 1, 6, 24}, 1), k = normal({3, 400, 2, 24}, 2), v = normal({3, 400, 2, 24}, 3);
  const auto shortened = [](const Tensor& t, int64_t keys) {
    Tensor part = sequences(t, 1, 1 + 1);
    part.type.shape.set_dim(1, keys);
    part.bits.resize(size_of(part.type.shape));
    return part;
  };
  for_each_isa([&](const std::string& isa) {
    const Tensor all = run_cpu(cached(q, k, v, ints({3}, {399, 290, 2})))[0];
    const Tensor alone =
        run_cpu(cached(sequences(q, 1, 1 + 1), shortened(k, 291), shortened(v, 291), ints({1}, {290})))[0];
    expect_same_bits(alone, sequences(all, 1, 1 + 1), isa);
  });
  if (cuda::fixtures::card() == nullptr) return;
  const auto on_card = [](const OpRun& run) { return run_on_card(*cuda::fixtures::card(), run)[0]; };
  const Tensor all = on_card(cached(q, k, v, ints({3}, {399, 290, 2})));
  expect_same_bits(
      on_card(cached(sequences(q, 1, 1 + 1), shortened(k, 291), shortened(v, 291), ints({1}, {290}))),
      sequences(all, 1, 1 + 1), "card");
}

/// Heads in several chunks of a block's, over several stretches: in parts and, of many tokens, in a block.
TEST(AttentionCached, LongCachesAndLargeGroupsAgainstReference) {
  for (const auto& [heads, d] : {std::pair<int64_t, int64_t>{9, 64}, {6, 128}, {6, 200}})
    for (const int64_t window : {0, 300}) {
      const Tensor k = bf16(normal({1, 600, 1, d}, 2)), v = bf16(normal({1, 600, 1, d}, 3));
      expect_op(cached(normal({1, 1, heads, d}, 1), k, v, ints({1}, {599}), window), 1e-5);
    }
  const Tensor k = normal({1, 300, 1, 20}, 2), v = normal({1, 300, 1, 20}, 3);
  expect_op(cached(normal({1, 140, 3, 20}, 1), k, v, ints({1}, {160})), 1e-5);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
