// What a card has kernels for, as planning asks, and what is said where it has none.
#include "backends/cuda/cuda_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/kernel.h"
#include "backends/cuda/kernel.h"

namespace plimsoll::cuda {
namespace {

using ir::DType;
using testing::HasSubstr;

ir::TensorType matrix(DType dtype, int64_t rows, int64_t columns) {
  return {dtype, ir::Shape{rows, columns}};
}

TEST(CudaTarget, IsWhatItIsMadeOf) {
  const CudaTarget target(89, 20_GiB, 2);
  EXPECT_EQ(target.name(), "cuda");
  EXPECT_EQ(target.instruction_set(), "sm_89");
  EXPECT_EQ(target.memory_bytes(), int64_t{20} << 30);
  EXPECT_TRUE(target.has_matrix_units(DType::kBf16));
  EXPECT_FALSE(target.is_in_process());
  EXPECT_EQ(target.host()->num_threads(), 2);
  EXPECT_EQ(CudaTarget(0, 1_GiB, 1).instruction_set(), "cuda") << "a size alone";
  EXPECT_FALSE(CudaTarget(75, 1_GiB, 1).has_matrix_units(DType::kBf16)) << "Turing";
}

/// What a plan for the CPU has kernels for, a plan for a card has too.
TEST(CudaTarget, HasAKernelForEveryOpOfTheCpu) {
  std::vector<std::string_view> ops, of_cpu;
  for (const Kernel& kernel : all_kernels()) ops.push_back(kernel.op);
  for (const cpu::Kernel& kernel : cpu::all_kernels()) of_cpu.push_back(kernel.op);
  EXPECT_THAT(ops, testing::UnorderedElementsAreArray(of_cpu));
}

/// Steps and slots of an expression are held in a launch's arguments.
TEST(CudaTarget, RefusesExpressionsBeyondALaunch) {
  const CudaTarget target(90, 1_GiB, 1);
  const ir::TensorType x = matrix(DType::kF32, 8, 64);
  const auto accepts = [&](const std::string& text) {
    const ir::Attrs attrs{{"expr", text}};
    return target.accepts({"pointwise", {x}, {x}, attrs}).ok();
  };
  std::string parts = "t0=exp(x0);";
  for (int i = 1; i < 300; ++i) parts += "t" + std::to_string(i) + "=exp(t" + std::to_string(i - 1) + ");";
  EXPECT_TRUE(accepts("exp(x0)"));
  EXPECT_TRUE(accepts(parts.substr(0, parts.find("t50=")) + "t49"));
  EXPECT_FALSE(accepts(parts + "t299")) << "steps";
}

TEST(CudaTarget, WhatHasNoKernelIsRefused) {
  const CudaTarget target(90, 1_GiB, 1);
  const ir::Attrs none;
  const Status status = target.accepts({"no_such_op", {}, {}, none});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().what, HasSubstr("the op no_such_op"));
  EXPECT_THAT(status.error().hint, HasSubstr("runtime.device=cpu"));
}

/// What a plan says of products in FP8 and FP4, whose operands are stored so in any case.
TEST(CudaTarget, SaysWhatProductsOfCodesAreComputedIn) {
  const auto computed_in = [](int capability, const char* scheme, int64_t rows) {
    const ir::Attrs attrs{{"a_scheme", std::string(scheme)},
                          {"b_scheme", std::string(scheme)},
                          {"inner", int64_t{64}},
                          {"columns", int64_t{32}}};
    return CudaTarget(capability, 1_GiB, 1)
        .computes_codes_in({"scaled_matmul", {}, {matrix(DType::kF32, rows, 32)}, attrs});
  };
  EXPECT_EQ(computed_in(80, "e4m3", 16), "bf16");
  EXPECT_EQ(computed_in(89, "e4m3", 16), "fp8");
  EXPECT_EQ(computed_in(90, "e4m3", 17), "bf16") << "no whole sixteens";
  EXPECT_EQ(computed_in(90, "mxfp8", 16), "bf16");
  EXPECT_EQ(computed_in(100, "mxfp8", 16), "fp8");
  EXPECT_EQ(computed_in(120, "nvfp4", 16), "fp4");
  EXPECT_EQ(computed_in(0, "e4m3", 16), "bf16") << "a card of no name";
}

TEST(CudaTarget, LooksAtTypesAndNotAtNamesAlone) {
  const CudaTarget target(90, 1_GiB, 1), turing(75, 1_GiB, 1);
  const ir::Attrs none;
  const auto product = [&](DType x, DType weight) {
    return ir::OpTypes{"linear", {matrix(x, 8, 64), matrix(weight, 64, 64)}, {matrix(x, 8, 64)}, none};
  };
  EXPECT_TRUE(target.accepts(product(DType::kBf16, DType::kBf16)));
  for (const DType dtype : {DType::kNf4, DType::kNf4Double, DType::kFp4, DType::kFp4Double, DType::kI8Rows})
    EXPECT_TRUE(target.accepts(product(DType::kBf16, dtype)));
  const ir::OpTypes sum{"add", {matrix(DType::kNf4, 8, 64), matrix(DType::kNf4, 8, 64)}, {}, none};
  EXPECT_THAT(target.accepts(sum).error().what, HasSubstr("the op add takes no quantized weights"));
  EXPECT_TRUE(turing.accepts(product(DType::kF16, DType::kF16)));
  EXPECT_THAT(turing.accepts(product(DType::kBf16, DType::kBf16)).error().hint, HasSubstr("precision=fp16"));
  const ir::Attrs codes{{"a_scheme", std::string("e4m3")}, {"b_scheme", std::string("e4m3")}};
  const ir::OpTypes of_codes{"scaled_matmul", {}, {matrix(DType::kF32, 16, 32)}, codes};
  EXPECT_TRUE(target.accepts(of_codes));
  EXPECT_THAT(turing.accepts(of_codes).error().hint, HasSubstr("precision=fp16"));
  const auto attention = [&](int64_t sequences, int64_t head_dim) {
    const ir::TensorType t{DType::kF32, ir::Shape{sequences, 16, 2, head_dim}};
    return ir::OpTypes{"attention", {t, t, t}, {t}, none};
  };
  EXPECT_TRUE(target.accepts(attention(2, 256)));
  EXPECT_THAT(target.accepts(attention(2, 257)).error().what, HasSubstr("257 elements, only for up to 256"));
  EXPECT_TRUE(turing.accepts(attention(2, 128)));
  EXPECT_THAT(turing.accepts(attention(2, 129)).error().what, HasSubstr("only for up to 128"));
  EXPECT_THAT(target.accepts(attention(65536, 64)).error().hint, HasSubstr("micro_batch_size"));
}

}  // namespace
}  // namespace plimsoll::cuda
