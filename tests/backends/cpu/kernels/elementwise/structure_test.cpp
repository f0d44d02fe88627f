// Copies against their references.
#include <cmath>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Structure, Copies) {
  for (const Shape& s : {Shape{1}, Shape{2, 5, 33}, Shape{2, 3, 3, 20}}) {
    expect_op({"copy", {normal(s, 1)}}, 0.0);
    expect_op({"copy", {indices(s, 1000, 1)}}, 0.0);
  }
  expect_op({"concat", {normal({2, 5, 33}, 1), normal({2, 5, 1}, 2), normal({2, 5, 64}, 3)}}, 0.0);
  expect_op({"concat_rows", {normal({2, 33}, 1), normal({1, 33}, 2), normal({600, 33}, 3)}}, 0.0);
  expect_op({"concat_rows", {normal({5}, 1), normal({2}, 2)}}, 0.0);
  expect_op({"concat_rows", {as(DType::kBf16, normal({3, 5}, 1)), as(DType::kBf16, normal({2, 5}, 2))}}, 0.0);
  expect_op({"fill", {}, {{"shape", std::vector<int64_t>{3, 7000}}, {"value", -1.5}}}, 0.0);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
