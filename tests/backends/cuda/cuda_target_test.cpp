// What a card has kernels for, as planning asks, and what is said where it has none.
#include "backends/cuda/cuda_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/kernel.h"
#include "ops/update_rules.h"

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

/// Exactly the rules that optimizer.cu has.
TEST(CudaTarget, HasKernelsForTheRulesThatItRuns) {
  const CudaTarget target(90, 1_GiB, 1);
  std::vector<std::string_view> rules;
  for (const ops::UpdateRule& rule : ops::update_rules()) {
    EXPECT_EQ(find_kernel(rule.name) != nullptr, find_kernel(rule.multi_tensor) != nullptr);
    if (find_kernel(rule.name) != nullptr) rules.push_back(rule.name);
  }
  EXPECT_THAT(rules, testing::UnorderedElementsAre("adamw", "sgd", "sgd_momentum", "lion"));
}

TEST(CudaTarget, WhatHasNoKernelIsRefusedInTheWordsOfSettings) {
  const CudaTarget target(90, 1_GiB, 1);
  const ir::Attrs none;
  const std::vector<std::pair<const char*, const char*>> refused = {
      {"adamw_8bit", "training.optimizer adamw_8bit"},
      {"adafactor_vector", "training.optimizer adafactor"},
      {"muon", "training.optimizer muon"},
      {"dora_norm", "lora.use_dora"},
      {"embedding_columns", "LoRA beside an embedding"},
      {"token_rows_grad", "lora.trainable_token_indices"},
      {"no_such_op", "the op no_such_op"}};
  for (const auto& [op, what] : refused) {
    const Status status = target.accepts({op, {}, {}, none});
    ASSERT_FALSE(status) << op;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(status.error().what, HasSubstr(what));
    EXPECT_THAT(status.error().hint, testing::Not(testing::IsEmpty()));
  }
  EXPECT_THAT(target.accepts({"adamw_8bit", {}, {}, none}).error().hint,
              HasSubstr("memory.update_on_host=true"));
}

TEST(CudaTarget, LooksAtTypesAndNotAtNamesAlone) {
  const CudaTarget target(90, 1_GiB, 1), turing(75, 1_GiB, 1);
  const ir::Attrs none;
  const auto product = [&](DType x, DType weight) {
    return ir::OpTypes{"linear", {matrix(x, 8, 64), matrix(weight, 64, 64)}, {matrix(x, 8, 64)}, none};
  };
  EXPECT_TRUE(target.accepts(product(DType::kBf16, DType::kBf16)));
  EXPECT_THAT(target.accepts(product(DType::kBf16, DType::kNf4)).error().what,
              HasSubstr("quantized weights (nf4)"));
  EXPECT_TRUE(turing.accepts(product(DType::kF16, DType::kF16)));
  EXPECT_THAT(turing.accepts(product(DType::kBf16, DType::kBf16)).error().hint, HasSubstr("precision=fp16"));
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
