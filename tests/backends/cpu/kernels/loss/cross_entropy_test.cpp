// Cross entropy against its reference.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/loss/loss_operands.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(CrossEntropy, AgainstReference) {
  for (const int32_t classes : {1, 5, 33, 1000}) {
    const Tensor logits = normal({2, 300, classes}, 1, 3.0f), t = targets({2, 300}, classes),
                 scale = scalar(0.25f);
    expect_op({"cross_entropy", {logits, t, scale}}, 2e-6);
    expect_op({"cross_entropy", {logits, t, scale, scalar(12.5f)}}, 2e-6);
    const Tensor lse = run_cpu({"cross_entropy", {logits, t, scale}})[1];
    if (classes > 1) expect_op({"cross_entropy_grad", {logits, t, lse, scale}}, 3e-6);
  }
}

// Wherever it stands: whoever leaves a part of a row out of its maximum has an infinite sum.
TEST(CrossEntropy, OneLogitFarAboveTheOthers) {
  for (const size_t at : {0, 700, 1999}) {
    Tensor logits = normal({1, 2, 2000}, 1);
    logits.bits[at] = logits.bits[2000 + at] = std::bit_cast<uint32_t>(300.0F);
    expect_op({"cross_entropy", {logits, targets({1, 2}, 2000), scalar(0.5F)}}, 2e-6);
  }
}

TEST(CrossEntropy, FarLogitsAndNan) {
  const Tensor logits = floats({2, 3}, {1000.0f, -1000.0f, 0.0f, 0.0f, std::nanf(""), 1.0f});
  const auto out = run_cpu({"cross_entropy", {logits, ints({2}, {0, ops::kIgnoreTarget}), scalar(1.0f)}});
  EXPECT_EQ(out[0].f32(0), 0.0f);
  EXPECT_EQ(out[1].f32(0), 1000.0f);
  const auto bad = run_cpu({"cross_entropy", {logits, ints({2}, {0, 2}), scalar(1.0f)}});
  EXPECT_TRUE(std::isnan(bad[0].f32(0))) << "a loss that is not a number must show";
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
