// Reductions over any axes against the reference.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

Attrs over(const char* kind, std::vector<int64_t> axes, bool keep = false) {
  return {{"kind", kind}, {"axes", std::move(axes)}, {"keep", keep}};
}

TEST(ReduceAxes, EveryKindOverEveryAxis) {
  const Shape large = sizes_for<Shape>({2, 150, 60}, {2, 600, 150});
  for (const char* kind : {"sum", "mean", "max"})
    for (const std::vector<int64_t>& axes :
         std::vector<std::vector<int64_t>>{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}, {}}) {
      expect_op({"reduce", {normal({3, 5, 33}, 1)}, over(kind, axes)}, 2e-6);
      expect_op({"reduce", {normal(large, 2)}, over(kind, axes, true)}, 4e-6);
    }
}

TEST(ReduceAxes, LongSums) {
  expect_op({"reduce", {normal({300'000}, 1)}, over("sum", {0})}, 2e-6);
  expect_op({"reduce", {normal({3, 100'001}, 1)}, over("mean", {1})}, 2e-6);
  expect_op({"reduce", {normal({3, 100'001}, 1)}, over("max", {1})}, 0);
  expect_op({"reduce", {normal({1, 1}, 1)}, over("sum", {1})}, 0);
}

TEST(ReduceAxes, SumsGoOn) {
  expect_op({"reduce", {normal({700, 40}, 1), normal({40}, 2)}, over("sum", {0})}, 3e-6);
  expect_op({"reduce", {normal({40, 70}, 1), normal({40}, 2)}, over("sum", {1})}, 3e-6);
  expect_op({"reduce", {normal({40, 70}, 1), normal({40, 70}, 2)}, over("sum", {}, true)}, 1e-6);
}

TEST(ReduceAxes, StoredDtypes) {
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const Tensor x = as(dtype, normal({4, 30, 70}, 1));
    for (const std::vector<int64_t>& axes : std::vector<std::vector<int64_t>>{{0}, {2}, {0, 2}}) {
      expect_op({"reduce", {x}, over("mean", axes)}, 2e-6);
      expect_op({"reduce", {x}, over("max", axes)}, 0);
    }
  }
}

TEST(ReduceAxes, NotANumberPasses) {
  std::vector<float> values(100, 1.0F);
  values[57] = NAN;
  for_each_isa([&](const std::string& isa) {
    for (const int64_t axis : {0, 1})
      for (const Shape& s : {Shape{100, 1}, Shape{1, 100}, Shape{10, 10}}) {
        const Tensor y = run_cpu({"reduce", {floats(s, values)}, over("max", {axis})})[0];
        size_t found = 0;
        for (size_t i = 0; i < y.bits.size(); ++i) found += std::isnan(y.value(i)) ? 1 : 0;
        EXPECT_EQ(found, 1U) << isa;
      }
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
