// Linear maps against their references.
#include <array>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Linear, AgainstReference) {
  for (const Shape& x : {Shape{1, 5}, Shape{2, 9, 33}, Shape{2, 300, 20}}) {
    const int64_t in = x.dim(-1), out = 37;
    Shape y = x;
    y.set_dim(-1, out);
    for (const bool transposed : {false, true}) {
      const Attrs attrs{{"transposed", transposed}};
      const Tensor weight = normal(transposed ? Shape{in, out} : Shape{out, in}, 2);
      expect_op({"linear", {normal(x, 1), weight}, attrs}, 3e-6);
      expect_op({"linear", {normal(x, 1), weight, normal({out}, 3)}, attrs}, 3e-6);
      expect_op({"linear_dw", {normal(x, 1), normal(y, 4)}, attrs}, 3e-6);
      expect_op({"linear_dw", {normal(x, 1), normal(y, 4), weight}, attrs}, 3e-6);
    }
  }
}

constexpr double kSum = 2e-5, kBf16Sum = kBf16Step + kSum, kF16Sum = kF16Step + kSum;

Attrs precision(const char* name, const char* out) {
  return {{"precision", std::string(name)}, {"out", std::string(out)}};
}

TEST(Precision, LinearRoundsItsOperands) {
  const Tensor x = normal(Shape{2, 33, 70}, 1), weight = normal(Shape{50, 70}, 2),
               bias = normal(Shape{50}, 3);
  for (const char* name : {"tf32", "bf16", "f16"}) {
    expect_op({"linear", {x, weight, bias}, precision(name, "f32")}, kSum);
    expect_op({"linear", {x, weight, bias}, precision(name, "bf16")}, kBf16Sum);
  }
  expect_op({"linear", {bf16(x), weight}, precision("bf16", "bf16")}, kBf16Sum);
  expect_op({"linear", {bf16(x), bf16(weight), bf16(bias)}}, kBf16Sum);
  expect_op({"linear", {as(DType::kF16, x), as(DType::kF16, weight)}}, kF16Sum);
  expect_op({"linear", {bf16(x), weight}}, kBf16Sum);  // mixed, as stored: f32 products
}

TEST(Precision, WeightGradients) {
  const Tensor x = bf16(normal(Shape{2, 300, 24}, 1)), dy = normal(Shape{2, 300, 40}, 2);
  expect_op({"linear_dw", {x, dy}, precision("bf16", "f32")}, kSum);
  expect_op({"linear_dw", {x, dy, normal(Shape{40, 24}, 3)}, precision("bf16", "f32")}, kSum);
  expect_op({"linear_dw", {x, bf16(dy)}, precision("bf16", "bf16")}, kBf16Sum);
}

Attrs stored_as(Attrs attrs, const char* weight, const char* bias) {
  if (weight != nullptr) attrs.set("out", std::string(weight));
  if (bias != nullptr) attrs.set("bias_out", std::string(bias));
  return attrs;
}

TEST(Linear, GradientsOfWeightAndBias) {
  for (const Shape& x : {Shape{1, 5}, Shape{2, 9, 33}, Shape{2, 300, 24}}) {
    Shape y = x;
    y.set_dim(-1, 40);
    const int64_t in = x.dim(-1);
    for (const bool transposed : {false, true}) {
      const Attrs attrs{{"transposed", transposed}};
      const Tensor acc = normal(transposed ? Shape{in, 40} : Shape{40, in}, 3);
      expect_op({"linear_dw_db", {normal(x, 1), normal(y, 2)}, attrs}, kSum);
      expect_op({"linear_dw_db", {normal(x, 1), normal(y, 2), acc, normal(Shape{40}, 4)}, attrs}, kSum);
      expect_op({"linear_dw_db", {normal(x, 1), normal(y, 2), absent(), normal(Shape{40}, 4)}, attrs}, kSum);
    }
  }
}

// The bias's gradient is that of dy as it is stored, whatever the products round.
TEST(Precision, GradientsOfWeightAndBias) {
  const Tensor x = bf16(normal(Shape{2, 300, 24}, 1)), dy = normal(Shape{2, 300, 40}, 2);
  const Tensor acc = normal(Shape{40, 24}, 3), row = normal(Shape{40}, 4);
  for (const char* out : {"f32", "bf16"})
    for (const char* bias_out : {"f32", "bf16"}) {
      const Attrs attrs = stored_as({{"precision", std::string("bf16")}}, out, bias_out);
      expect_op({"linear_dw_db", {x, bf16(dy)}, attrs}, kBf16Sum);
      expect_op({"linear_dw_db", {x, dy}, attrs}, kBf16Sum);
    }
  expect_op({"linear_dw_db", {x, bf16(dy), acc, row}, {{"precision", std::string("bf16")}}}, kSum);
  expect_op({"linear_dw_db", {x, dy, acc, row}, {{"precision", std::string("tf32")}}}, kSum);
}

Attrs onto(int64_t column, bool transposed, const char* name = nullptr) {
  Attrs attrs{{"column", column}, {"transposed", transposed}};
  if (name != nullptr) attrs.set("precision", std::string(name));
  return attrs;
}

TEST(Linear, AddsToColumnsInPlaceAndBeside) {
  // Many terms, more rows than a part has, columns that no vector ends with.
  for (const auto& [rows, in, width] : {std::array<int64_t, 3>{3, 8, 50}, {300, 16, 1300}, {9, 600, 70}}) {
    const Tensor x = normal(Shape{rows, in}, 1), base = normal(Shape{rows, width}, 3);
    for (const bool transposed : {false, true}) {
      const Tensor weight = normal(transposed ? Shape{in, 37} : Shape{37, in}, 2);
      expect_op({"linear_add", {x, weight, base}, onto(0, transposed)}, kSum);
      expect_op({"linear_add", {x, weight, base}, onto(width - 37, transposed)}, kSum);
      expect_op({"linear_add", {bf16(x), weight, base}, onto(5, transposed, "bf16")}, kSum);
      expect_op({"linear_add", {bf16(x), weight, bf16(base)}, onto(5, transposed, "bf16")}, 2 * kBf16Sum);
      expect_op({"linear_add", {x, weight, as(DType::kF16, base)}, onto(5, transposed, "f16")}, 2 * kF16Sum);
      expect_op({"linear_add", {x, weight, bf16(base)}, onto(5, transposed)}, 2 * kBf16Sum);
    }
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
