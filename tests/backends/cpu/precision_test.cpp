// Products in a low precision: operands rounded, sums in f32, results stored as asked; on every instruction
// set, with and without ones for bf16.
#include "kernel_harness.h"

namespace plimsoll::cpu::testing {
namespace {

constexpr double kSum = 2e-5, kBf16Step = 0x1p-8 + kSum, kF16Step = 0x1p-11 + kSum;

Tensor bf16(const Tensor& t) { return as(DType::kBf16, t); }
Attrs precision(const char* name, const char* out) {
  return {{"precision", std::string(name)}, {"out", std::string(out)}};
}

TEST(Precision, LinearRoundsItsOperands) {
  const Tensor x = normal(Shape{2, 33, 70}, 1), weight = normal(Shape{50, 70}, 2),
               bias = normal(Shape{50}, 3);
  for (const char* name : {"tf32", "bf16", "f16"}) {
    expect_op({"linear", {x, weight, bias}, precision(name, "f32")}, kSum);
    expect_op({"linear", {x, weight, bias}, precision(name, "bf16")}, kBf16Step);
  }
  expect_op({"linear", {bf16(x), weight}, precision("bf16", "bf16")}, kBf16Step);
  expect_op({"linear", {bf16(x), bf16(weight), bf16(bias)}}, kBf16Step);
  expect_op({"linear", {as(DType::kF16, x), as(DType::kF16, weight)}}, kF16Step);
  expect_op({"linear", {bf16(x), weight}}, kBf16Step);  // mixed, as stored: f32 products
}

TEST(Precision, WeightGradients) {
  const Tensor x = bf16(normal(Shape{2, 300, 24}, 1)), dy = normal(Shape{2, 300, 40}, 2);
  expect_op({"linear_dw", {x, dy}, precision("bf16", "f32")}, kSum);
  expect_op({"linear_dw", {x, dy, normal(Shape{40, 24}, 3)}, precision("bf16", "f32")}, kSum);
  expect_op({"linear_dw", {x, bf16(dy)}, precision("bf16", "bf16")}, kBf16Step);
}

/// The slopes are rounded as well, so a result lies a rounding of them away from the reference's.
TEST(Precision, HeadAndLoss) {
  const Tensor x = normal(Shape{2, 300, 24}, 1), weight = normal(Shape{70, 24}, 2);
  const Tensor targets = indices(Shape{2, 300}, 70, 3), scale = scalar(1.0F / 600);
  const auto attrs = [](const char* name) {
    Attrs a{{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}};
    if (*name != '\0') a.set("precision", std::string(name));
    return a;
  };
  for (const char* name : {"tf32", "bf16", "f16"})
    expect_op({"head_loss", {x, weight, targets, scale}, attrs(name)}, 4e-3);
  expect_op({"head_loss", {bf16(x), weight, targets, scale}, attrs("bf16")}, 8e-3);
  expect_op({"head_loss", {bf16(x), bf16(weight), targets, scale}, attrs("")}, 8e-3);
  Attrs wide = attrs("bf16");
  wide.set("dx", std::string("f32"));
  expect_op({"head_loss", {bf16(x), weight, targets, scale}, wide}, 4e-3);
  for (const int64_t chunk : {256, 1024}) {  // from chunk to chunk in f32, and a single one as it is stored
    Attrs low = attrs("bf16"), sums_as = attrs("bf16");
    for (Attrs* a : {&low, &sums_as}) a->set("chunk_tokens", chunk);
    low.set("dw", std::string("bf16"));
    expect_op({"head_loss", {bf16(x), bf16(weight), targets, scale}, low}, 8e-3);
    sums_as.set("dw", std::string("f32"));
    const OpRun sums{"head_loss", {bf16(x), bf16(weight), targets, scale}, sums_as};
    expect_same_bits(run_cpu({"head_loss", sums.inputs, low})[2], as(DType::kBf16, run_cpu(sums)[2]), "dw");
  }
  expect_op({"head_loss",
             {x, weight, targets, scale, scalar(2.0F), normal(Shape{70, 24}, 5, 0.01F)},
             attrs("bf16")},
            4e-3);
}

}  // namespace
}  // namespace plimsoll::cpu::testing
