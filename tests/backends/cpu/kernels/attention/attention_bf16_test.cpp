// Attention of bf16 operands on every instruction set: against the reference in double, within roundings to
// bf16; the same bits for any number of threads, strided or dense; what masks hide, and what rows see
// nothing.
#include "backends/cpu/kernels/attention/attention_bf16.h"

#include <limits>
#include <ostream>

#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/attention/packed_problem.h"

namespace plimsoll::cpu::fixtures {
namespace {

// A single element may lie as far off as the rounding of a weight near 1 takes it; all of them together less
// than the rounding of the result.
constexpr double kElement = 10 * kBf16Step, kNorm = 0.8 * kBf16Step;

using Case = PackedCase;

struct Problem : PackedProblem {
  explicit Problem(const Case& c) : PackedProblem(c, DType::kBf16, c.scale) {}
};

/// Three tiles of a card and a part of one show what more of them do.
Case cut_for_card(Case c) {
  c.tokens = std::min(c.tokens, sizes_for<int64_t>(200, c.tokens));
  return c;
}

class AttentionBf16 : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionBf16, AgreesWithTheReference) {
  const Problem p(cut_for_card(GetParam()));
  const OpRun forward = p.forward(), backward = p.backward(run_cpu(forward));
  expect_op(forward, kElement);
  expect_op(backward, kElement);
  for (const OpRun& run : {forward, backward}) {
    const ir::RefTensor expected = run_reference(run)[0];
    for_each_isa([&](const std::string& isa) {
      EXPECT_LT(distance(run_cpu(run)[0], expected), kNorm) << run.op << " (" << isa << ")";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionBf16,
    ::testing::Values(Case{2, 1, 1, 1, 64}, Case{1, 16, 2, 1, 13}, Case{2, 70, 3, 1, 20},
                      Case{1, 150, 2, 2, 48}, Case{1, 300, 3, 1, 64}, Case{1, 530, 2, 1, 96},
                      Case{1, 290, 1, 1, 128}, Case{1, 100, 2, 2, 1}, Case{1, 290, 2, 1, 32, false},
                      Case{1, 300, 2, 1, 16, true, 1}, Case{1, 400, 2, 1, 20, true, 70},
                      Case{2, 300, 4, 2, 20, true, 0, 37}, Case{1, 300, 2, 1, 33, false, 0, 37},
                      Case{1, 400, 1, 1, 64, true, 50, 90}, Case{2, 150, 4, 2, 24, true, 0, 0, 0.3},
                      Case{1, 270, 2, 1, 16, false, 0, 0, 0.2}, Case{1, 200, 2, 1, 16, true, 50, 60, 0.2},
                      Case{1, 150, 2, 1, 16, true, 0, 0, -1, -0.3},
                      Case{1, 90, 1, 1, 16, true, 0, 0, -1, 0.0}, Case{1, 900, 2, 1, 16, false, 65},
                      Case{1, 200, 1, 1, 16, false, 1}, Case{1, 700, 2, 1, 20, false, 50, 90},
                      Case{1, 270, 2, 1, 16, false, 40, 90, 0.2}));

/// Rows [begin, end) of axis 0.
Tensor part(const Tensor& t, int64_t begin, int64_t end) {
  const ir::Shape& shape = t.type.shape;
  const int64_t row = shape.num_elements() / shape.dim(0);
  Tensor some = t;
  some.type.shape =
      shape.rank() == 2 ? Shape{end - begin, shape.dim(1)} : Shape{end - begin, shape.dim(1), shape.dim(2)};
  some.bits.assign(t.bits.begin() + begin * row, t.bits.begin() + end * row);
  return some;
}

TEST(AttentionBf16Numerics, GivesASequenceTheSameBitsAlone) {
  Problem all(Case{3, 290, 4, 2, 20, true, 0, 90});
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu(all.forward());
    const Tensor dqkv = run_cpu(all.backward(y))[0];
    for (int64_t b = 0; b < 3; ++b) {
      Problem one = all;
      for (Tensor* t : {&one.qkv, &one.dout, &one.doc_start}) *t = part(*t, b, b + 1);
      const auto y_alone = run_cpu(one.forward());
      expect_same_bits(y_alone, {part(y[0], b, b + 1), part(y[1], b, b + 1)}, isa);
      expect_same_bits(run_cpu(one.backward(y_alone))[0], part(dqkv, b, b + 1), isa + ", gradient");
    }
  });
}

TEST(AttentionBf16Numerics, OperandsOfTheirOwnGiveTheBitsOfPackedOnes) {
  const Case c{2, 150, 4, 2, 24};
  const Problem p(c);
  const auto columns = [&](int64_t first, int64_t heads) {
    Tensor t{{DType::kBf16, Shape{c.batch, c.tokens, heads, c.head_dim}}, {}};
    const int64_t row = p.qkv.type.shape.dim(2);
    for (int64_t r = 0; r < c.batch * c.tokens; ++r)
      for (int64_t i = 0; i < heads * c.head_dim; ++i)
        t.bits.push_back(p.qkv.bits[static_cast<size_t>(r * row + first * c.head_dim + i)]);
    return t;
  };
  const Tensor q = columns(0, 4), k = columns(4, 2), v = columns(6, 2);
  const Attrs attrs{{"scale", c.scale}, {"causal", true}, {"window", int64_t{0}}};
  Tensor dout = p.dout;
  dout.type.shape = q.type.shape;
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu({"attention", {q, k, v}, attrs}), packed = run_cpu(p.forward());
    EXPECT_EQ(y[0].bits, packed[0].bits) << isa;
    EXPECT_EQ(y[1].bits, packed[1].bits) << isa;
    const auto grads = run_cpu({"attention_grad", {q, k, v, y[0], y[1], dout}, attrs});
    std::vector<uint32_t> joined;
    for (size_t r = 0; r < static_cast<size_t>(c.batch * c.tokens); ++r)
      for (const Tensor& g : grads) {
        const size_t row = static_cast<size_t>(g.type.shape.dim(2) * c.head_dim);
        joined.insert(joined.end(), g.bits.begin() + static_cast<int64_t>(r * row),
                      g.bits.begin() + static_cast<int64_t>((r + 1) * row));
      }
    EXPECT_EQ(joined, run_cpu(p.backward(packed))[0].bits) << isa;
  });
}

/// No mask of a run hides all from a row, but one whose document begins behind it sees nothing.
TEST(AttentionBf16Numerics, RowsThatSeeNothingGiveZeros) {
  Problem p(Case{1, 100, 2, 1, 20, true, 0, 1000});
  p.doc_start = ints({1, 100}, std::vector<int32_t>(100, 40));
  const auto size = static_cast<size_t>(2 * 20);
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu(p.forward());
    const Tensor dqkv = run_cpu(p.backward(y))[0];
    for (size_t t = 0; t < 40; ++t) {
      for (size_t i = 0; i < size; ++i) ASSERT_EQ(y[0].bits[t * size + i] & 0x7FFFU, 0U) << isa << " " << t;
      for (size_t i = 0; i < 2 * size; ++i)
        ASSERT_EQ(dqkv.bits[t * 2 * size + i] & 0x7FFFU, 0U) << isa << " " << t;
      ASSERT_EQ(y[1].f32(t), -std::numeric_limits<float>::infinity()) << isa << " " << t;
    }
    for (size_t i = 40 * size; i < y[0].bits.size(); ++i) ASSERT_TRUE(std::isfinite(y[0].value(i))) << isa;
  });
}

TEST(AttentionBf16Numerics, StandsLargeScores) {
  Problem p(Case{1, 140, 1, 1, 16});
  for (size_t i = 0; i < p.qkv.bits.size(); ++i)
    if (i % 48 < 32) p.qkv.bits[i] += 5U << 7;  // q and k, 32 times
  const OpRun forward = p.forward();
  const ir::RefTensor expected = run_reference(forward)[0];
  for_each_isa([&](const std::string& isa) {
    EXPECT_LT(distance(run_cpu(forward)[0], expected), kNorm) << isa;
    const auto gradients = run_cpu(p.backward(run_cpu(forward)));
    for (const uint32_t bits : gradients[0].bits) ASSERT_NE(bits & 0x7F80U, 0x7F80U) << isa;
  });
}

/// f16, and mixtures, are widened: no instruction set computes them another way than AVX-512 does.
TEST(AttentionBf16Numerics, OtherTypesAreWidened) {
  Problem p(Case{1, 70, 2, 1, 20});
  p.qkv = as(DType::kF16, normal({1, 70, 80}, 1));
  expect_op(p.forward(), 0x1p-10);
  const auto y = run_cpu(p.forward());
  expect_op({"attention_packed_grad", {p.qkv, y[0], y[1], as(DType::kF16, normal({1, 70, 40}, 2))}, p.attrs},
            0x1p-8);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
