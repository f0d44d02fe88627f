// Losses over labels against the references.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/loss/loss_operands.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(LabelLoss, AgainstReference) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{7, 1, 5}, Shape{40, 1, 1000}, Shape{9, 3}})
    for (const std::string op : {"bce_with_logits", "squared_error"}) {
      const Tensor x = normal(s, 1, 3.0F), y = labels(s, 2);
      expect_op({op, {x, y, scalar(0.25F)}}, 1e-6);
      expect_op({op, {x, y, scalar(0.25F), scalar(3.0F)}}, 1e-6);
      expect_op({op + "_grad", {x, y, scalar(0.25F)}}, 1e-6);
    }
}

TEST(LabelLoss, FarLogitsAndNan) {
  const Tensor y = floats({1, 1, 2}, {1.0F, 0.0F}), one = scalar(1.0F);
  for (const float far : {-2000.0F, 2000.0F}) {
    const auto loss = run_cpu({"bce_with_logits", {floats({1, 1, 2}, {far, far}), y, one}});
    EXPECT_EQ(loss[0].f32(0), 1000.0F);
  }
  for (const char* op : {"bce_with_logits", "squared_error"}) {
    const auto loss = run_cpu({op, {floats({1, 1, 2}, {std::nanf(""), 1.0F}), y, one}});
    EXPECT_TRUE(std::isnan(loss[0].f32(0))) << "a loss that is not a number must show";
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
