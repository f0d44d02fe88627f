// Pooling against the references.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

using Ints = std::vector<int64_t>;

struct PoolWindow {
  Ints kernel, stride, padding;
  Attrs attrs(bool skips = false) const {
    Attrs all{{"kernel", kernel}, {"stride", stride}, {"padding", padding}};
    if (skips) all.set("skip_padding", true);
    return all;
  }
};
const PoolWindow kPoolWindows[] = {
    {{3, 3}, {2, 2}, {1, 1}}, {{2, 2}, {2, 2}, {0, 0}}, {{3, 2}, {1, 3}, {1, 0}}, {{1, 1}, {2, 1}, {0, 0}}};
const Shape kPoolImages[] = {{1, 3, 4, 1}, {2, 9, 6, 33}, {2, 12, 13, 64}};

/// Whole numbers: many elements are equal.
Tensor few_values(const Shape& shape, unsigned seed) {
  std::vector<float> values;
  for (const uint32_t bits : indices(shape, 3, seed).bits) values.push_back(static_cast<float>(bits));
  return floats(shape, values);
}

void expect_pooled(const Tensor& x, const PoolWindow& window, double tolerance) {
  const Ints size{x.type.shape.dim(1), x.type.shape.dim(2)};
  expect_op({"max_pool2d", {x}, window.attrs()}, tolerance);
  const auto pooled = run_cpu({"max_pool2d", {x}, window.attrs()});
  Attrs attrs = window.attrs();
  attrs.set("size", size);
  const Tensor dy = as(x.type.dtype, normal(pooled[0].type.shape, 3));
  const Tensor given = x.type.dtype == DType::kF32 ? normal(pooled[0].type.shape, 3) : dy;
  expect_op({"max_pool2d_grad", {given, pooled[1]}, attrs}, tolerance);
  for (const bool skips : {false, true}) {
    expect_op({"avg_pool2d", {x}, window.attrs(skips)}, tolerance);
    Attrs grad = window.attrs(skips);
    grad.set("size", size);
    expect_op({"avg_pool2d_grad", {given}, grad}, tolerance);
  }
}

TEST(Pooling, AgainstReference) {
  for (const Shape& shape : kPoolImages)
    for (const PoolWindow& window : kPoolWindows) expect_pooled(normal(shape, 1), window, 2e-6);
}

TEST(Pooling, ShortElements) {
  for (const DType dtype : {DType::kBf16, DType::kF16})
    expect_pooled(as(dtype, normal(kPoolImages[1], 1)), kPoolWindows[0],
                  dtype == DType::kBf16 ? kBf16Step : kF16Step);
  Attrs wide = kPoolWindows[1].attrs();
  wide.set("size", Ints{9, 6});
  wide.set("out", std::string("bf16"));
  expect_op({"avg_pool2d_grad", {normal({2, 4, 3, 33}, 2)}, wide}, kBf16Step);
}

TEST(Pooling, OfEqualElementsTheFirstOnEveryInstructionSet) {
  const OpRun run{"max_pool2d", {few_values({2, 9, 9, 21}, 5)}, kPoolWindows[0].attrs()};
  const auto expected = run_reference(run);
  for_each_backend(run, [&](const std::vector<Tensor>& got, const std::string& where) {
    for (size_t i = 0; i < expected[1].data.size(); ++i)
      ASSERT_EQ(got[1].value(i), expected[1].data[i]) << where << ", element " << i;
  });
}

TEST(Pooling, WhatIsNoNumberAndWhatIsInfinite) {
  const float nan = std::nanf("");
  const Tensor x = floats({1, 2, 4, 1}, {1, nan, -INFINITY, -INFINITY, nan, 2, -INFINITY, -INFINITY});
  for_each_backend({"max_pool2d", {x}, kPoolWindows[1].attrs()},
                   [&](const std::vector<Tensor>& got, const std::string& where) {
                     EXPECT_TRUE(std::isnan(got[0].f32(0))) << where;
                     EXPECT_EQ(got[0].f32(1), -INFINITY) << where;
                     EXPECT_EQ(got[1].value(1), 0) << where;
                   });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
