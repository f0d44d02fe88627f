// The generator against its authors' known answers; the ops against its definition.
#include <gtest/gtest.h>

#include <set>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

// Random123's kat_vectors, philox4x32 with 10 rounds.
static_assert(ops::philox({0, 0, 0, 0}, {0, 0}) ==
              ops::PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(ops::philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              ops::PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(ops::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              ops::PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, UniformsLieInsideTheUnitInterval) {
  EXPECT_EQ(ops::uniform(0), 0x1p-33);
  EXPECT_LT(ops::uniform(0xffffffff), 1.0);
}

TEST(Philox, TheThresholdIsTheComparison) {
  for (const double p : {0.0, 1e-12, 0.1, 0.25, 0.5, 0.9, 1.0 - 1e-9})
    for (const int64_t near : {-2, -1, 0, 1, 2}) {
      const auto word = static_cast<int64_t>(p * 0x1p32) + near;
      if (word < 0 || word > 0xffffffff) continue;
      const auto w = static_cast<uint32_t>(word);
      EXPECT_EQ(w >= ops::dropout_threshold(p), ops::uniform(w) >= p) << p << " " << w;
    }
}

const RefTensor kStep = ints({4}, {123, -7, 5, 10});

TEST(Philox, AttentionsBlocksKeepTheirWordsAndDoNotRepeatBehind32Bits) {
  const ops::RandomStream stream{1, 2, 3, 4, 5};
  const uint64_t many = uint64_t{1} << 32;
  for (const uint64_t block : {uint64_t{0}, uint64_t{7}, many - 1})
    EXPECT_EQ(ops::attention_words(stream, block), ops::random_words(stream, block)) << block;
  std::set<ops::PhiloxCounter> words;
  for (uint64_t high = 0; high < 1000; ++high)
    for (const uint64_t low : {uint64_t{0}, uint64_t{7}, many - 1})
      for (uint32_t sequence = 0; sequence < 3; ++sequence) {
        ops::RandomStream s = stream;
        s.sequence += sequence;
        EXPECT_TRUE(words.insert(ops::attention_words(s, high * many + low)).second) << high << " " << low;
      }
  EXPECT_EQ(ops::attention_block(5, 4 * 70'000, 100'000), uint64_t{7'000'000'005});
}

TEST(Random, DropoutKeepsTheStatedShareAndScales) {
  RefTensor x = reference::constant({DType::kF32, {4, 1000}}, 1.0);
  const RefTensor y = evaluate("dropout", {x, kStep}, {{"p", 0.25}, {"key", int64_t{9}}})[0];
  double kept = 0;
  for (const double v : y.data) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75);
    kept += v != 0 ? 1 : 0;
  }
  EXPECT_NEAR(kept / 4000, 0.75, 0.03);
}

TEST(Random, DropoutDrawsTheSameForABatchSplitOtherwise) {
  const RefTensor x = normal({4, 7, 3});
  const Attrs attrs{{"p", 0.5}, {"key", int64_t{9}}};
  const RefTensor whole = evaluate("dropout", {x, kStep}, attrs)[0];
  for (size_t half = 0; half < 2; ++half) {
    RefTensor part = reference::constant({DType::kF32, {2, 7, 3}}, 0);
    std::copy_n(x.data.begin() + static_cast<std::ptrdiff_t>(half * 42), 42, part.data.begin());
    RefTensor step = kStep;
    step.data[3] += 2.0 * static_cast<double>(half);
    const RefTensor y = evaluate("dropout", {part, step}, attrs)[0];
    EXPECT_TRUE(std::equal(y.data.begin(), y.data.end(),
                           whole.data.begin() + static_cast<std::ptrdiff_t>(half * 42)));
  }
}

TEST(Random, DropoutDependsOnSeedStepAndKey) {
  const RefTensor x = normal({2, 64});
  const Attrs attrs{{"p", 0.5}, {"key", int64_t{9}}};
  const RefTensor y = evaluate("dropout", {x, kStep}, attrs)[0];
  for (size_t word = 0; word < 4; ++word) {
    RefTensor step = kStep;
    step.data[word] += 1;
    EXPECT_NE(evaluate("dropout", {x, step}, attrs)[0].data, y.data) << word;
  }
  EXPECT_NE(evaluate("dropout", {x, kStep}, {{"p", 0.5}, {"key", int64_t{10}}})[0].data, y.data);
}

TEST(Random, DropoutsDerivativeMatchesFiniteDifferences) {
  const DerivativeCase row{
      "dropout", "dropout", {normal({3, 4, 2}), kStep}, {{"p", 0.4}, {"key", int64_t{3}}}};
  EXPECT_LT(derivative_error(row), kDerivativeTolerance);
}

TEST(Random, NormalsHaveTheStatedMomentsAndIgnoreTheStep) {
  const Attrs attrs{{"shape", Ints{50, 81}}, {"mean", 2.0}, {"std", 0.5}, {"key", int64_t{1}}};
  const RefTensor y = evaluate("random_normal", {kStep}, attrs)[0];
  double mean = 0;
  double square = 0;
  for (const double v : y.data) mean += v / 4050;
  for (const double v : y.data) square += (v - mean) * (v - mean) / 4050;
  EXPECT_NEAR(mean, 2.0, 0.03);
  EXPECT_NEAR(std::sqrt(square), 0.5, 0.02);
  EXPECT_EQ(evaluate("random_normal", {ints({4}, {123, -7, 99, 3})}, attrs)[0].data, y.data);
}

TEST(Random, KeysAreFnv1a) {
  EXPECT_EQ(ops::random_key("layers.0", "attention"), 0x3e81f810bb1ddaa0);  // of "layers.0/attention"
  EXPECT_NE(ops::random_key("layers.0", "a"), ops::random_key("layers.1", "a"));
}

TEST(Random, SaysWhatDoesNotFit) {
  const Attrs attrs{{"p", 1.0}, {"key", int64_t{3}}};
  const std::vector<ErrorCase> rows = {
      {"dropout", {f32({2}), i32({4})}, attrs, "dropout: p must be in [0, 1)"},
      {"dropout", {f32({2}), i32({3})}, attrs, "dropout: random must be [4], is [3]"},
      {"dropout", {f32({2}), f32({4})}, attrs, "dropout: random must be i32, is f32[4]"},
      {"random_normal",
       {i32({4})},
       {{"shape", Ints{0}}, {"mean", 0.0}, {"std", 1.0}, {"key", int64_t{0}}},
       "random_normal: shape must be of 1 to 6 positive extents"},
      {"random_normal",
       {i32({4})},
       {{"shape", Ints{2}}, {"mean", 0.0}, {"std", 1.0}, {"key", int64_t{0}}, {"out", std::string("i32")}},
       "random_normal: out must be f32, bf16 or f16"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
