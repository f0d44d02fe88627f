// What ops that compute and quantise make: the results of the two ops.
#include "ops/fused_quantize.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

/// Operands of the op that is fused; matrices of 20 x 48.
Tensors operands_of(const ops::FusedQuantize& fused) {
  const std::string op(fused.computes);
  const RefTensor x = normal({20, 48}), other = normal({20, 48}, 1), row = normal({48}, 2),
                  bias = normal({48}, 3);
  if (op == "rms_norm") return {x, row};
  if (op == "add_rms_norm") return {x, other, row};
  if (op == "layer_norm") return {x, row, bias};
  if (op == "add_layer_norm") return {x, other, row, bias};
  if (op == "swiglu") return {x};
  if (op == "swiglu_grad") return {normal({20, 24}, 4), x};
  if (op == "bias_gelu") return {x, bias};
  return {other, x, bias};
}

Attrs attrs_of(const ops::FusedQuantize& fused) {
  if (fused.computes.find("norm") != std::string_view::npos) return {{"eps", 1e-5}};
  if (fused.computes.find("gelu") != std::string_view::npos) return {{"approximate", std::string("none")}};
  return {};
}

TEST(FusedQuantize, MakesWhatTheTwoOpsMake) {
  for (const ops::FusedQuantize& fused : ops::fused_quantizes()) {
    const Tensors operands = operands_of(fused);
    const Tensors alone = evaluate(fused.computes, operands, attrs_of(fused));
    for (const bool transposed : {false, true}) {
      Attrs attrs = attrs_of(fused);
      attrs.set("scheme", std::string("mxfp8"));
      attrs.set("transposed", transposed);
      const Tensors got = evaluate(fused.op, operands, attrs);
      const Tensors copies = evaluate("quantize_operand", {alone[fused.result]},
                                      {{"scheme", std::string("mxfp8")}, {"transposed", transposed}});
      ASSERT_EQ(got.size(), alone.size() - 1 + copies.size()) << fused.op;
      for (size_t i = 0, other = 0; i < alone.size(); ++i)
        if (i != fused.result) {
          EXPECT_EQ(got[other++].data, alone[i].data) << fused.op;
        }
      for (size_t i = 0; i < copies.size(); ++i)
        EXPECT_EQ(got[alone.size() - 1 + i].data, copies[i].data) << fused.op;
    }
  }
}

TEST(FusedQuantize, KnowsTheTypeOfWhatIsQuantised) {
  for (const ops::FusedQuantize& fused : ops::fused_quantizes()) {
    const Tensors operands = operands_of(fused);
    const TensorType second = operands.size() > 1 ? operands[1].type : TensorType{};
    const Attrs attrs = attrs_of(fused);
    const Tensors alone = evaluate(fused.computes, operands, attrs);
    EXPECT_EQ(ops::quantized_type(fused, attrs, operands[0].type, second), alone[fused.result].type)
        << fused.op;
    EXPECT_EQ(ops::quantizing(fused.computes), &ops::fused_quantize(fused.op));
  }
  EXPECT_EQ(ops::quantizing("add"), nullptr);
}

TEST(FusedQuantize, SaysWhatDoesNotFit) {
  const auto refused = [&](std::string_view op, Attrs attrs, std::vector<TensorType> inputs) {
    const auto types = ops::find_op(op)->infer({op, std::move(inputs), {}, attrs});
    return types ? std::string() : types.error().what;
  };
  const TensorType x{DType::kF32, {4, 32}}, low{DType::kBf16, {4, 32}}, half{DType::kBf16, {4, 16}};
  const auto scheme = [](const char* name) { return Attrs{{"scheme", std::string(name)}}; };
  EXPECT_EQ(refused("swiglu_quantize", scheme("mxfp8"), {x}), "");
  EXPECT_NE(refused("swiglu_quantize", scheme("e4m3"), {x}).find("not given"), std::string::npos);
  EXPECT_NE(refused("swiglu_quantize", scheme("nvfp4"), {x}).find("codes of a byte"), std::string::npos);
  EXPECT_EQ(refused("swiglu_grad_quantize", scheme("mxfp8"), {half, low}), "");
  EXPECT_NE(refused("swiglu_grad_quantize", scheme("mxfp8"), {half, x}).find("one dtype"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::ops_testing
