// Fused activations against their derivatives and against what they replace.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(Activation, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {"swiglu", "swiglu", {normal({2, 3, 8})}},
      {"swiglu of one column", "swiglu", {normal({2})}},
      {"bias_gelu tanh", "bias_gelu", {normal({2, 3, 4}), normal({4}, 1)}, {{"approximate", "tanh"}}},
      {"bias_gelu erf", "bias_gelu", {normal({3, 4}), normal({4}, 1)}, {{"approximate", "none"}}},
      {"bias_gelu sigmoid", "bias_gelu", {normal({3, 4}), normal({4}, 1)}, {{"approximate", "sigmoid"}}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Activation, SwigluIsWhatItReplaces) {
  const Tensors x = {normal({2, 3, 8}), normal({2, 3, 4}, 1)};
  const Tensors fused = evaluate(x, [](Builder& b, const auto& v) {
    return std::vector{ops::swiglu(b, v[0]), b.op("swiglu_grad", {v[1], v[0]})};
  });
  const Tensors apart = evaluate(x, [](Builder& b, const auto& v) {
    const auto parts = ops::split(b, v[0], {4, 4});
    const ValueId d_gate = b.op("silu_grad", {ops::mul(b, v[1], parts[1]), parts[0]});
    const ValueId d_up = ops::mul(b, v[1], ops::silu(b, parts[0]));
    return std::vector{ops::mul(b, ops::silu(b, parts[0]), parts[1]), ops::concat(b, {d_gate, d_up})};
  });
  EXPECT_LT(distance(fused, apart), 1e-15);
}

TEST(Activation, BiasGeluIsWhatItReplaces) {
  const Tensors x = {normal({2, 3, 4}), normal({4}, 1), normal({2, 3, 4}, 2)};
  for (const ops::GeluForm& form : ops::gelu_forms()) {
    const ops::Gelu kind = form.form;
    const Attrs attrs{{"approximate", std::string(form.approximate)}};
    const Tensors fused = evaluate(x, [&](Builder& b, const auto& v) {
      return std::vector{ops::bias_gelu(b, v[0], v[1], kind),
                         b.op("bias_gelu_grad", {v[2], v[0], v[1]}, attrs)};
    });
    const Tensors apart = evaluate(x, [&](Builder& b, const auto& v) {
      const ValueId sum = ops::bias_add(b, v[0], v[1]);
      return std::vector{ops::gelu(b, sum, kind), b.op("gelu_grad", {v[2], sum}, attrs)};
    });
    EXPECT_EQ(distance(fused, apart), 0) << form.approximate;
  }
}

TEST(Activation, SaysWhatDoesNotFit) {
  const std::vector<ErrorCase> rows = {
      {"swiglu", {f32({2, 3})}, {}, "swiglu: the last axis is not gate and up side by side: gate_up [2,3]"},
      {"swiglu_grad", {f32({2, 3}), f32({2, 4})}, {}, "swiglu_grad: gate_up must be [2,6], is [2,4]"},
      {"bias_gelu",
       {f32({2, 3}), f32({2})},
       {{"approximate", "tanh"}},
       "bias_gelu: bias must be [3], is [2]"},
      {"bias_gelu",
       {f32({2, 3}), f32({3})},
       {{"approximate", "x"}},
       "bias_gelu: approximate must be one of \"none\", \"tanh\", \"sigmoid\""},
      {"bias_gelu_grad",
       {f32({2}), f32({3}), f32({2})},
       {{"approximate", "tanh"}},
       "bias_gelu_grad: x must be [2], is [3]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
