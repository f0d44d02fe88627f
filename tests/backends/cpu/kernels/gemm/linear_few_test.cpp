// Few rows of a linear map.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(LinearFew, AgainstReference) {
  for (const bool transposed : {false, true})
    for (const auto& [in, out] : {std::pair<int64_t, int64_t>{1, 1}, {3, 130}, {33, 5}, {64, 64}, {257, 200}})
      for (const int64_t rows : {1, 2, 3, 5, 6, 13}) {
        const Tensor x = normal({rows, 1, in}, 1);
        const Tensor w = normal(transposed ? Shape{in, out} : Shape{out, in}, 2);
        expect_op({"linear_few", {x, w}, {{"transposed", transposed}}}, 1e-6);
        expect_op({"linear_few", {x, w, normal({out}, 3)}, {{"transposed", transposed}}}, 1e-6);
      }
}

// Weights of 16 bits are what they stand for: the product of f32 is what comes out.
TEST(LinearFew, TakesWeightsOf16Bits) {
  for (const bool transposed : {false, true})
    for (const DType dtype : {DType::kBf16, DType::kF16})
      for (const auto& [in, out] :
           {std::pair<int64_t, int64_t>{1, 1}, {3, 130}, {33, 5}, {64, 64}, {257, 200}})
        for (const int64_t rows : {1, 2, 7}) {
          const Tensor x = normal({rows, 1, in}, 1), bias = normal({out}, 3);
          const Tensor w = as(dtype, normal(transposed ? Shape{in, out} : Shape{out, in}, 2));
          expect_op({"linear_few", {x, w, bias}, {{"transposed", transposed}}}, 1e-6);
        }
}

TEST(LinearFew, RoundsToItsPrecision) {
  const Tensor x = normal({3, 1, 70}, 1), bias = as(DType::kBf16, normal({50}, 3)),
               w = as(DType::kBf16, normal({50, 70}, 2));
  const auto attrs = [](const char* out) {
    return Attrs{{"precision", std::string("bf16")}, {"out", std::string(out)}};
  };
  expect_op({"linear_few", {x, w, bias}, attrs("f32")}, 2e-6);
  expect_op({"linear_few", {x, w, bias}, attrs("bf16")}, 0x1p-8);
  expect_op({"linear_few", {as(DType::kBf16, x), w}, attrs("bf16")}, 0x1p-8);
}

TEST(LinearFew, ARowsBitsDoNotDependOnTheOthers) {
  for (const bool transposed : {false, true})
    for (const DType dtype : {DType::kF32, DType::kBf16}) {
      const Tensor x = normal({13, 1, 100}, 1), bias = normal({333}, 3);
      const Tensor w = as(dtype, normal(transposed ? Shape{100, 333} : Shape{333, 100}, 2));
      for_each_isa([&](const std::string& isa) {
        const Tensor all = run_cpu({"linear_few", {x, w, bias}, {{"transposed", transposed}}})[0];
        for (const int64_t r : {0, 1, 5, 6, 12})
          expect_same_bits(
              run_cpu({"linear_few", {sequences(x, r, r + 1), w, bias}, {{"transposed", transposed}}})[0],
              sequences(all, r, r + 1), isa + " row " + std::to_string(r));
      });
    }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
