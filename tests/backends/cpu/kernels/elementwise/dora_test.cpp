// The kernels of weights by direction and magnitude against their references.
#include "backends/cpu/quantized_weight.h"

namespace plimsoll::cpu::fixtures {
namespace {

Tensor positive(const Shape& shape, unsigned seed) {
  Tensor t = normal(shape, seed);
  for (uint32_t& bits : t.bits) bits = std::bit_cast<uint32_t>(std::abs(std::bit_cast<float>(bits)) + 0.5F);
  return t;
}

TEST(Dora, AgainstReference) {
  for (const int64_t in : {1, 17, 300})
    for (const bool transposed : {false, true}) {
      const Attrs attrs{
          {"row", int64_t{3}}, {"rank_row", int64_t{2}}, {"scale", 0.5}, {"transposed", transposed}};
      const Shape weight = transposed ? Shape{in, 80} : Shape{80, in};
      const Tensor a = normal({7, in}, 2), b = normal({70, 5}, 3);
      expect_op({"dora_norm", {normal(weight, 1), a, b}, attrs}, 1e-5);
      expect_op({"dora_norm", {bf16(normal(weight, 1)), a, b}, attrs}, 1e-5);
    }
  for (const Shape s : {Shape{1}, Shape{3, 7}, Shape{2, 5, 401}}) {
    const Shape row{s.dim(-1)};
    expect_op({"dora_scale", {normal(s, 1), normal(row, 2), positive(row, 3)}}, 1e-5);
    expect_op({"dora_scale_grad", {normal(s, 1), normal(s, 2), positive(row, 3)}}, 1e-5);
  }
}

TEST(Dora, OfWeightsInFewBitsAsOfTheirNumbers) {
  using enum ir::DType;
  for (const ir::DType dtype : {kNf4, kNf4Double, kFp4, kI8Rows})
    for (const bool transposed : {false, true}) {
      const QuantizedWeight w =
          transposed ? quantized_weight(dtype, 90, 75) : quantized_weight(dtype, 75, 90);
      const Attrs attrs{
          {"row", int64_t{3}}, {"rank_row", int64_t{2}}, {"scale", 0.5}, {"transposed", transposed}};
      const Tensor a = normal({7, 90}, 2), b = normal({70, 5}, 3);
      expect_as_numbers({"dora_norm", {{}, a, b}, attrs}, 0, w, 1e-5,
                        std::string(ir::name(dtype)) + (transposed ? " transposed" : ""));
    }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
