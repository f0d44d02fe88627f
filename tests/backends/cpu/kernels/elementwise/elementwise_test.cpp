// Elementwise kernels against the references.
#include <limits>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

const Shape kShapes[] = {{1}, {3, 7}, {2, 5, 33}, {2, 3, 3, 20}, {3, 401, 64}};

TEST(Elementwise, PlainOps) {
  for (const Shape& s : kShapes) {
    expect_op({"add", {normal(s, 1), normal(s, 2)}}, 1e-6);
    expect_op({"mul", {normal(s, 1), normal(s, 2)}}, 1e-6);
    expect_op({"scale", {normal(s, 1), scalar(-0.37f)}}, 1e-6);
    expect_op({"silu", {normal(s, 1, 4.0f)}}, 1e-6);
    expect_op({"silu_grad", {normal(s, 1), normal(s, 2, 4.0f)}}, 1e-6);
    for (const char* which : {"tanh", "none", "sigmoid"}) {
      expect_op({"gelu", {normal(s, 1, 3.0f)}, approximate(which)}, 1e-6);
      expect_op({"gelu_grad", {normal(s, 1), normal(s, 3, 3.0f)}, approximate(which)}, 1e-6);
    }
  }
  for (const int64_t cols : {33, 64})
    expect_op({"bias_add", {normal({2, 5, cols}, 1), normal({cols}, 2)}}, 1e-6);
}

TEST(Elementwise, FarValuesAndNanAreKept) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for_each_isa([&](const std::string&) {
    const Tensor silu = run_cpu({"silu", {floats({4}, {-200.0f, 200.0f, inf, nan})}})[0];
    EXPECT_NEAR(silu.f32(0), 0.0, 1e-30);
    EXPECT_EQ(silu.f32(1), 200.0f);
    EXPECT_EQ(silu.f32(2), inf);
    EXPECT_TRUE(std::isnan(silu.f32(3)));
    const Tensor gelu = run_cpu({"gelu", {floats({3}, {-50.0f, 50.0f, nan})}, approximate("tanh")})[0];
    EXPECT_EQ(gelu.f32(0), 0.0f);
    EXPECT_EQ(gelu.f32(1), 50.0f);
    EXPECT_TRUE(std::isnan(gelu.f32(2)));
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
