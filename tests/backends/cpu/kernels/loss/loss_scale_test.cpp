// The loss scale against its reference.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Optimizer, LossScaleAgainstReference) {
  const Tensor scaler = floats({3}, {8.0f, 1.0f, 0.0f});
  const ir::Attrs scaling{{"growth_factor", 3.0}, {"backoff_factor", 0.3}, {"growth_interval", int64_t{2}}};
  for (const float norm : {32.0f, 1e-3f, HUGE_VALF}) {
    const Tensor scaled = scalar(norm);
    if (std::isfinite(norm)) {
      expect_op({"unscale", {scaled, scaler}, {{"max_norm", 1.0}}}, 1e-6);
      expect_op({"unscale", {scaled, scaler}}, 1e-6);
    } else {
      EXPECT_TRUE(std::isnan(run_cpu({"unscale", {scaled, scaler}, {{"max_norm", 1.0}}})[1].f32(0)));
    }
    expect_op({"next_scale", {scaler, scaled}, scaling}, 0);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
