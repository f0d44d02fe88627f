// Cross-entropy against smoothed and mixed targets: against the reference.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/loss/loss_operands.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(SoftCrossEntropy, AgainstReference) {
  const Shape rows{2, sizes_for<int64_t>(20, 300)};
  for (const int32_t classes : {5, 33, 1000})
    for (const double smoothing : {0.0, 0.1}) {
      const Tensor logits = normal({2, rows.dim(1), classes}, 1, 3.0F), t = targets(rows, classes),
                   second = indices(rows, classes, 7), scale = scalar(0.25F);
      std::vector<float> shares;
      for (const uint32_t bits : indices(rows, 5, 9).bits) shares.push_back(static_cast<float>(bits) / 4);
      const Tensor share = floats(rows, shares);
      const Attrs attrs{{"smoothing", smoothing}};
      expect_op({"soft_cross_entropy", {logits, t, scale}, attrs}, 3e-6);
      expect_op({"soft_cross_entropy", {logits, t, scale, scalar(12.5F), second, share}, attrs}, 3e-6);
      const Tensor lse = run_cpu({"soft_cross_entropy", {logits, t, scale}, attrs})[1];
      expect_op({"soft_cross_entropy_grad", {logits, t, lse, scale}, attrs}, 4e-6);
      expect_op({"soft_cross_entropy_grad", {logits, t, lse, scale, second, share}, attrs}, 4e-6);
    }
}

TEST(SoftCrossEntropy, BothTargetsMayBeOneClass) {
  const Tensor logits = normal({1, 2, 7}, 1), same = ints({1, 2}, {3, 0}), scale = scalar(0.5F);
  const Attrs attrs{{"smoothing", 0.2}};
  const std::vector<Tensor> mixed{logits, same, scale, absent(), same, floats({1, 2}, {0.25F, 1.0F})};
  expect_op({"soft_cross_entropy", mixed, attrs}, 2e-6);
  const auto plain = run_cpu({"soft_cross_entropy", {logits, same, scale}, attrs});
  const std::vector<Tensor> grad{logits, same, plain[1], scale, same, floats({1, 2}, {0.25F, 1.0F})};
  expect_op({"soft_cross_entropy_grad", grad, attrs}, 2e-6);
}

TEST(SoftCrossEntropy, ShortLogits) {
  const Tensor logits = bf16(normal({2, 10, 33}, 1)), t = targets({2, 10}, 33), scale = scalar(0.25F);
  const Attrs attrs{{"smoothing", 0.1}};
  expect_op({"soft_cross_entropy", {logits, t, scale}, attrs}, 3e-6);
  const Tensor lse = run_cpu({"soft_cross_entropy", {logits, t, scale}, attrs})[1];
  expect_op({"soft_cross_entropy_grad", {logits, t, lse, scale}, attrs}, kBf16Step);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
