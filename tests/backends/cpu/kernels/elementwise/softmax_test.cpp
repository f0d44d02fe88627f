// Softmax and its slope against the reference.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Softmax, AgainstReference) {
  for (const bool log : {false, true})
    for (const Shape& s : {Shape{1}, Shape{3, 7}, Shape{2, 5, 400}, Shape{2, 5000}}) {
      const Attrs attrs{{"log", log}};
      expect_op({"softmax", {normal(s, 1, 4.0F)}, attrs}, 3e-6);
      // Of the logarithm the sum of cotangents, which cancel, is multiplied with exp(y).
      expect_op({"softmax_grad", {normal(s, 1), normal(s, 2)}, attrs}, log ? 1e-4 : 3e-6);
    }
}

TEST(Softmax, StoredDtypes) {
  const Shape s{6, 77};
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    for (const bool log : {false, true}) {
      Attrs attrs{{"log", log}};
      expect_op({"softmax", {as(dtype, normal(s, 1))}, attrs}, 3e-6);
      attrs.set("out", std::string(ir::name(dtype)));
      expect_op({"softmax", {as(dtype, normal(s, 1))}, attrs}, step);
      expect_op({"softmax_grad", {normal(s, 1), as(dtype, normal(s, 2))}, attrs}, step);
    }
  }
}

TEST(Softmax, LargeAndMaskedLogits) {
  const Tensor x = floats({2, 4}, {1000, 999, -1000, -INFINITY, -INFINITY, 3, 3, -INFINITY});
  expect_op({"softmax", {x}}, 1e-6);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
