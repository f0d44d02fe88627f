// Products over leading axes against the reference.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs transposed(bool a, bool b) { return {{"transpose_a", a}, {"transpose_b", b}}; }

TEST(BatchedMatmul, AgainstReference) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const Tensor a = normal(ta ? Shape{3, 17, 30} : Shape{3, 30, 17}, 1);
      const Tensor b = normal(tb ? Shape{3, 9, 17} : Shape{3, 17, 9}, 2);
      expect_op({"batched_matmul", {a, b}, transposed(ta, tb)}, 3e-6);
    }
  expect_op({"batched_matmul", {normal({2, 1, 5, 300}, 1), normal({3, 300, 4}, 2)}}, 3e-6);
  expect_op({"batched_matmul", {normal({64, 33}, 1), normal({33, 20}, 2)}}, 3e-6);
  expect_op({"batched_matmul", {normal({2, 260, 260}, 1), normal({2, 260, 260}, 2)}, transposed(false, true)},
            3e-6);
}

TEST(BatchedMatmul, StoredDtypes) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    const Tensor a = as(dtype, normal({4, 20, 64}, 1)), b = as(dtype, normal({4, 64, 12}, 2));
    expect_op({"batched_matmul", {a, b}, {}}, step);
    expect_op({"batched_matmul", {a, b}, {{"out", "f32"}, {"precision", std::string(ir::name(dtype))}}},
              1e-4);
    expect_op({"batched_matmul",
               {normal({4, 20, 64}, 1), normal({4, 64, 12}, 2)},
               {{"precision", std::string(ir::name(dtype))}, {"out", std::string(ir::name(dtype))}}},
              2 * step);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
