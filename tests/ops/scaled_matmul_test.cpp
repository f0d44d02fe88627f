// What the op refuses, and that a product of quantised operands is near that of the operands.
#include <gtest/gtest.h>

#include "ops/op_testing.h"
#include "ops/scaled_operand.h"

namespace plimsoll::ops_testing {
namespace {

Tensors quantised(const RefTensor& x, const char* scheme) {
  return evaluate("quantize_operand", {x}, {{"scheme", std::string(scheme)}});
}

RefTensor product(const RefTensor& x, const RefTensor& w, const char* a, const char* b) {
  const Tensors left = quantised(x, a), right = quantised(w, b);
  Tensors operands = {left[0], left[1], right[0], right[1]};
  if (left.size() > 2 && std::string(a).starts_with("nvfp4")) {
    operands.insert(operands.end(), {absent(), absent(), left[2], right[2]});
  }
  return evaluate("scaled_matmul", operands,
                  {{"a_scheme", std::string(a)},
                   {"b_scheme", std::string(b)},
                   {"inner", x.type.shape.dim(-1)},
                   {"columns", w.type.shape.dim(0)}})[0];
}

TEST(ScaledMatmul, IsNearTheProductOfTheOperands) {
  const RefTensor x = normal({6, 80}), w = normal({9, 80}, 1);
  const RefTensor exact = evaluate("linear", {x, w}, {{"transposed", false}})[0];
  for (const auto& [a, b, bound] :
       {std::tuple{"e4m3", "e4m3", 0.1}, std::tuple{"mxfp8", "mxfp8", 0.1},
        std::tuple{"fp8-block-1x128", "fp8-block-128x128", 0.1}, std::tuple{"nvfp4", "nvfp4-16x16", 0.25}})
    EXPECT_LT(distance(product(x, w, a, b), exact), bound) << a;
}

TEST(ScaledMatmul, SaysWhatDoesNotFit) {
  const TensorType codes{DType::kU8, {2, 32}}, scales{DType::kU8, {2, 1}};
  const Attrs attrs{{"a_scheme", std::string("mxfp8")},
                    {"b_scheme", std::string("mxfp8")},
                    {"inner", int64_t{32}},
                    {"columns", int64_t{2}}};
  Attrs narrow = attrs;
  narrow.set("inner", int64_t{16});
  Attrs mixed = attrs;
  mixed.set("b_scheme", std::string("nvfp4"));
  const auto refused = [&](const Attrs& with, std::vector<TensorType> inputs) {
    const ir::OpDef* def = ops::find_op("scaled_matmul");
    const auto types = def->infer({"scaled_matmul", std::move(inputs), {}, with});
    return types ? std::string() : types.error().what;
  };
  EXPECT_EQ(refused(attrs, {codes, scales, codes, scales}), "");
  EXPECT_NE(refused(narrow, {codes, scales, codes, scales}).find("codes are not"), std::string::npos);
  EXPECT_NE(refused(mixed, {codes, scales, codes, scales}).find("nvfp4 is multiplied"), std::string::npos);
  Attrs in_segments = attrs;
  in_segments.set("segment", int64_t{32});
  in_segments.set("terms", int64_t{20});
  EXPECT_EQ(refused(in_segments, {codes, scales, codes, scales}), "");
  in_segments.set("terms", int64_t{33});
  EXPECT_NE(refused(in_segments, {codes, scales, codes, scales}).find("terms are of segments"),
            std::string::npos);
  Attrs of_tensor = attrs;
  of_tensor.set("a_scheme", std::string("e4m3"));
  EXPECT_NE(refused(of_tensor, {codes, {DType::kF32, {1}}, codes, scales}).find("scale of the tensor"),
            std::string::npos);
  EXPECT_NE(refused(attrs, {codes, {DType::kU8, {2, 2}}, codes, scales}).find("scales are not"),
            std::string::npos);
}

}  // namespace
}  // namespace plimsoll::ops_testing
