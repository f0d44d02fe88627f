// Attention with precision tf32: close to its definition, which does not round. On a CPU it is that of f32 to
// the bit; on a card of compute capability 8.0 or later products are of operands in TF32.
#include <cmath>
#include <ostream>

#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/attention/packed_problem.h"

namespace plimsoll::cpu::fixtures {
namespace {

// 2^-11 is the rounding of an operand. A single element may lie as far off as in 16 bits.
constexpr double kOfTf32 = 10 * 0x1p-11;

PackedProblem in_tf32(const PackedCase& c, bool rounds = true) {
  PackedProblem p(c, DType::kF32, 1 / std::sqrt(static_cast<double>(c.head_dim)));
  if (rounds) p.attrs.set("precision", std::string("tf32"));
  return p;
}

class AttentionTf32 : public ::testing::TestWithParam<PackedCase> {};

TEST_P(AttentionTf32, AgreesWithTheReference) {
  const PackedProblem p = in_tf32(GetParam()), exact = in_tf32(GetParam(), false);
  const auto y = run_cpu(p.forward());
  expect_op(p.forward(), kOfTf32);
  expect_op(p.backward(y), kOfTf32);
  expect_same_bits(y, run_cpu(exact.forward()), "on a CPU");
  expect_same_bits(run_cpu(p.backward(y)), run_cpu(exact.backward(y)), "the gradient on a CPU");
}

/// The widths that a card fills heads up to and what lies below, two tiles and a part; every mask.
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTf32,
                         ::testing::Values(PackedCase{2, 1, 1, 1, 64}, PackedCase{1, 150, 2, 1, 64},
                                           PackedCase{1, 130, 3, 1, 20}, PackedCase{1, 140, 2, 2, 100},
                                           PackedCase{1, 70, 2, 1, 256}, PackedCase{1, 70, 1, 1, 131, false},
                                           PackedCase{1, 200, 2, 1, 36, true, 70},
                                           PackedCase{2, 140, 4, 2, 20, true, 0, 37},
                                           PackedCase{1, 150, 2, 1, 33, false, 0, 37},
                                           PackedCase{2, 140, 4, 2, 24, true, 0, 0, 0.3},
                                           PackedCase{1, 130, 2, 1, 128, true, 50, 60, 0.2}));

TEST(AttentionTf32Ops, TakeOperandsOfTheirOwn) {
  const Attrs attrs{
      {"scale", 0.3}, {"causal", true}, {"window", int64_t{0}}, {"precision", std::string("tf32")}};
  const Tensor q = normal({2, 17, 4, 20}, 1), k = normal({2, 17, 2, 20}, 2), v = normal({2, 17, 2, 20}, 3);
  expect_op({"attention", {q, k, v}, attrs}, kOfTf32);
  const auto y = run_cpu({"attention", {q, k, v}, attrs});
  expect_op({"attention_grad", {q, k, v, y[0], y[1], normal({2, 17, 4, 20}, 4)}, attrs}, kOfTf32);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
