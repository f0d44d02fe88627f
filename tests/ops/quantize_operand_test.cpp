// What quantising refuses, and both copies at once.
#include <gtest/gtest.h>

#include <string>
#include <utility>

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
  const Attrs plain{{"scheme", std::string("mxfp8")}, {"by_sequence", true}};
  EXPECT_NE(refused(plain, {x}).find("by_sequence is of transposes"), std::string::npos);
  const Attrs halves{{"scheme", std::string("nvfp4")}, {"by_sequence", true}, {"transposed", true}};
  EXPECT_NE(refused(halves, {x}).find("by_sequence is of transposes"), std::string::npos);
}

/// The transpose has for each sequence what it has of that sequence alone, filled up with zeros.
TEST(QuantizeOperand, BlocksEndWithSequences) {
  constexpr int64_t kTokens = 70, kCols = 3;
  const RefTensor x = normal({2, kTokens, kCols});
  for (const auto& [scheme, block] :
       {std::pair<std::string, int64_t>{"fp8-block-1x128", 128}, {"mxfp8", 32}}) {
    const Attrs attrs{{"scheme", scheme}, {"transposed", true}, {"by_sequence", true}};
    const Tensors all = evaluate("quantize_operand", {x}, attrs);
    const int64_t columns = (kTokens + block - 1) / block * block, of_scales = columns / block;
    ASSERT_EQ(all[0].type.shape, (Shape{kCols, 2 * columns})) << scheme;
    ASSERT_EQ(all[1].type.shape, (Shape{kCols, 2 * of_scales})) << scheme;
    for (int64_t s = 0; s < 2; ++s) {
      const auto begin = x.data.begin() + s * kTokens * kCols;
      const Tensors one =
          evaluate("quantize_operand", {values({kTokens, kCols}, {begin, begin + kTokens * kCols})},
                   {{"scheme", scheme}, {"transposed", true}});
      for (int64_t r = 0; r < kCols; ++r) {
        for (int64_t c = 0; c < columns; ++c)
          ASSERT_EQ(all[0].data[static_cast<size_t>((r * 2 + s) * columns + c)],
                    c < kTokens ? one[0].data[static_cast<size_t>(r * kTokens + c)] : 0)
              << scheme << " " << s << " " << r << " " << c;
        for (int64_t c = 0; c < of_scales; ++c)
          ASSERT_EQ(all[1].data[static_cast<size_t>((r * 2 + s) * of_scales + c)],
                    one[1].data[static_cast<size_t>(r * of_scales + c)]);
      }
    }
  }
}

/// In one op the results of the two.
TEST(QuantizeOperand, BothCopiesAreThoseOfTwoOps) {
  const RefTensor x = normal({2, 33, 70});
  for (const char* scheme : {"fp8-block-1x128", "mxfp8"})
    for (const bool by_sequence : {false, true}) {
      const Attrs attrs{{"scheme", std::string(scheme)}};
      Attrs of_both = attrs, of_turned = attrs;
      of_both.set("both", true), of_turned.set("transposed", true);
      if (by_sequence) of_both.set("by_sequence", true), of_turned.set("by_sequence", true);
      const Tensors both = evaluate("quantize_operand", {x}, of_both);
      const Tensors plain = evaluate("quantize_operand", {x}, attrs);
      const Tensors turned = evaluate("quantize_operand", {x}, of_turned);
      ASSERT_EQ(both.size(), 4U);
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(both[i].data, plain[i].data) << scheme;
        EXPECT_EQ(both[2 + i].data, turned[i].data) << scheme;
      }
    }
}

}  // namespace
}  // namespace plimsoll::ops_testing
