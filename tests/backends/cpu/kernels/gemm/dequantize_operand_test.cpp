// Numbers of codes, to the bit those of the reference, in bf16 and f32, and near what was quantised.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(DequantizeOperand, IsTheReferenceToTheBit) {
  for (const Shape& shape : {Shape{3, 5}, Shape{2, 33, 70}, Shape{40, 1300}, Shape{600, 17}})
    for (const char* name : {"fp8-block-1x128", "mxfp8"}) {
      const Attrs attrs{{"scheme", std::string(name)}};
      const Tensor x = normal(shape, 1);
      const auto codes = run_cpu({"quantize_operand", {x}, attrs});
      Attrs wide = attrs;
      wide.set("out", std::string("f32"));
      expect_op({"dequantize_operand", codes, attrs}, 0);
      expect_op({"dequantize_operand", codes, wide}, 0);
      const auto again = run_cpu({"dequantize_operand", codes, wide});
      for (size_t i = 0; i < x.bits.size(); ++i)
        ASSERT_NEAR(again[0].f32(i), x.f32(i), std::abs(x.f32(i)) * 0x1p-4F + 0.01F) << name;
    }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
