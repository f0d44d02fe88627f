// Kernels that move elements along an axis against the reference, and copies of views of any strides.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(StridedKernels, AgainstReference) {
  for (const int64_t axis : {0, 1, 2})
    for (const bool brief : {false, true}) {
      const Tensor x = brief ? bf16(normal({3, 4, 5}, 1)) : normal({3, 4, 5}, 1);
      expect_op({"flip", {x}, {{"axis", axis}}}, 0);
      struct Slice {
        int64_t start, step, extent;
      };
      for (const Slice s : {Slice{2, 3, 17}, Slice{0, 1, 9}, Slice{4, 1, 9}, Slice{3, 1, 12}, Slice{0, 2, 9}})
        expect_op(
            {"slice_grad", {x}, {{"axis", axis}, {"start", s.start}, {"step", s.step}, {"extent", s.extent}}},
            0);
      const Tensor index =
          ints({2, 4, 3}, {0, 1, 2, 0, 2, 1, 1, 1, 0, 2, 2, 2, 0, 1, 2, 0, 2, 1, 1, 1, 0, 2, 2, 2});
      expect_op({"gather", {x, index}, {{"axis", axis}}}, 0);
      const Tensor dy = brief ? bf16(normal({2, 4, 3}, 2)) : normal({2, 4, 3}, 2);
      expect_op({"gather_grad", {dy, index}, {{"axis", axis}, {"shape", std::vector<int64_t>{3, 4, 5}}}},
                brief ? kBf16Step : 1e-6);
    }
}

/// Elements of a permuted, stretched or thinned tensor where they belong.
TEST(StridedKernels, CopiesOfAnyView) {
  const Shape shape{4, 3, 5};
  const ir::Op op = make_op({"copy", {normal(shape, 1)}});
  std::vector<float> x(200), y(60);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const ir::Strides& strides : {ir::Strides{15, 5, 1}, ir::Strides{1, 20, 4}, ir::Strides{0, 1, 3},
                                     ir::Strides{15, 0, 2}, ir::Strides{0, 0, 0}}) {
    const runtime::TensorRef in{reinterpret_cast<std::byte*>(x.data()), {DType::kF32, shape}, strides};
    const runtime::TensorRef out{
        reinterpret_cast<std::byte*>(y.data()), {DType::kF32, shape}, ir::dense_strides(shape)};
    ASSERT_TRUE(device(2).launch({&op, {&in, 1}, {&out, 1}, {}}, ir::Queue::kCompute).ok());
    for (int64_t i = 0; i < 60; ++i)
      EXPECT_EQ(y[static_cast<size_t>(i)],
                static_cast<float>(i / 15 * strides[0] + i / 5 % 3 * strides[1] + i % 5 * strides[2]));
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
