// Pixels to floating numbers against the reference: every level of every channel.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(NormalizePixels, AgainstReference) {
  Tensor pixels{{DType::kU8, {2, 16, 40, 3}}, {}};
  for (uint32_t i = 0; i < 2 * 16 * 40 * 3; ++i) pixels.bits.push_back(i / 3 % 256);
  const Attrs attrs{{"rescale", 1.0 / 255},
                    {"mean", std::string("0.485,0.456,0.406")},
                    {"std", std::string("0.229,0.224,0.225")}};
  const OpRun run{"normalize_pixels", {pixels}, attrs};
  expect_op(run, 1e-7);
  Attrs brief = attrs;
  brief.set("out", std::string("bf16"));
  expect_op({"normalize_pixels", {pixels}, brief}, kBf16Step);
  const Tensor rounded = run_cpu({"cast", {run_cpu(run)[0]}, {{"out", std::string("bf16")}}})[0];
  expect_same_bits(run_cpu({"normalize_pixels", {pixels}, brief})[0], rounded, "bf16");
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
