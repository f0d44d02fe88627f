// What quantising refuses, and both copies at once.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(QuantizeOperand, SaysWhatDoesNotFit) {
  const auto refused = [&](const Attrs& with, std::vector<TensorType> inputs) {
    const ir::OpDef* def = ops::find_op("quantize_operand");
    const auto types = def->infer({"quantize_operand", std::move(inputs), {}, with});
    return types ? std::string() : types.error().what;
  };
  const TensorType x{DType::kF32, {4, 24}};
  EXPECT_NE(refused({{"scheme", std::string("nf4")}}, {x}).find("scheme of FP8"), std::string::npos);
  EXPECT_NE(refused({{"scheme", std::string("nvfp4")}, {"hadamard", true}}, {x}).find("runs of 16"),
            std::string::npos);
  EXPECT_NE(refused({{"scheme", std::string("nvfp4")}, {"stochastic", true}}, {x}).find("random"),
            std::string::npos);
  const Attrs drawn{
      {"scheme", std::string("nvfp4")}, {"transposed", true}, {"stochastic", true}, {"key", int64_t{5}}};
  const TensorType none, random{DType::kI32, {4}};  // a block of 16 terms has one scale
  EXPECT_NE(refused(drawn, {{DType::kF32, {2, 24, 4}}, none, random}).find("runs of 16"), std::string::npos);
  EXPECT_EQ(refused(drawn, {{DType::kF32, {2, 32, 4}}, none, random}), "");
  EXPECT_EQ(refused(drawn, {{DType::kF32, {1, 24, 4}}, none, random}), "");
  EXPECT_NE(
      refused({{"scheme", std::string("mxfp8")}, {"slot", int64_t{0}}}, {x, {DType::kF32, {3}}}).find("slot"),
      std::string::npos);
  const Attrs both{{"scheme", std::string("e4m3")}, {"both", true}};
  EXPECT_NE(refused(both, {x}).find("both copies"), std::string::npos) << "one copy lies both ways";
}

/// In one op the results of the two.
TEST(QuantizeOperand, BothCopiesAreThoseOfTwoOps) {
  const RefTensor x = normal({2, 33, 70});
  for (const char* scheme : {"fp8-block-1x128", "mxfp8"}) {
    const Tensors both = evaluate("quantize_operand", {x}, {{"scheme", std::string(scheme)}, {"both", true}});
    const Tensors plain = evaluate("quantize_operand", {x}, {{"scheme", std::string(scheme)}});
    const Tensors turned =
        evaluate("quantize_operand", {x}, {{"scheme", std::string(scheme)}, {"transposed", true}});
    ASSERT_EQ(both.size(), 4U);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(both[i].data, plain[i].data) << scheme;
      EXPECT_EQ(both[2 + i].data, turned[i].data) << scheme;
    }
  }
}

}  // namespace
}  // namespace plimsoll::ops_testing
