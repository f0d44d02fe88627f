// Which dtype a result has where operands are bf16 or f16, and that values are stored so.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TensorType bf16(Shape shape) { return {DType::kBf16, shape}; }
TensorType f16(Shape shape) { return {DType::kF16, shape}; }

/// Result types, as text; what the builder says where operands do not fit.
std::string results_of(const std::string& op, const std::vector<TensorType>& inputs,
                       const Attrs& attrs = {}) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(inputs[i].shape.rank() == 0 ? ValueId{}
                                                   : b.state({fmt::format("in{}", i), inputs[i], {}}));
  const auto results = b.ops(op, operands, attrs);
  if (!b.status()) return b.status().error().what;
  std::string text;
  for (const ValueId v : results) text += (text.empty() ? "" : " ") + to_string(graph.type(v));
  return text;
}

TEST(Dtypes, OfSumsAndProductsTheWidest) {
  EXPECT_EQ(results_of("add", {bf16({2}), bf16({2})}), "bf16[2]");
  EXPECT_EQ(results_of("add", {bf16({2}), f32({2})}), "f32[2]");
  EXPECT_EQ(results_of("mul", {f16({2}), bf16({2})}), "f32[2]");
  EXPECT_EQ(results_of("add_rms_norm", {bf16({2, 4}), f32({2, 4}), f32({4})}, {{"eps", 1e-6}}),
            "f32[2,4] f32[2,4] f32[2]");
}

TEST(Dtypes, OfActivationsTheOperands) {
  EXPECT_EQ(results_of("swiglu", {bf16({2, 8})}), "bf16[2,4]");
  EXPECT_EQ(results_of("swiglu_grad", {f32({2, 4}), bf16({2, 8})}), "bf16[2,8]");
  EXPECT_EQ(results_of("rms_norm", {bf16({2, 4}), f32({4})}, {{"eps", 1e-6}}), "bf16[2,4] f32[2]");
  EXPECT_EQ(results_of("silu_grad", {f32({2}), f16({2})}), "f16[2]");
}

TEST(Dtypes, OfNormsWhatIsAsked) {
  const Attrs out{{"eps", 1e-6}, {"out", "bf16"}};
  const TensorType x = f32({2, 4}), row = f32({4});
  EXPECT_EQ(results_of("rms_norm", {x, row}, out), "bf16[2,4] f32[2]");
  EXPECT_EQ(results_of("add_rms_norm", {bf16({2, 4}), x, row}, out), "f32[2,4] bf16[2,4] f32[2]");
  EXPECT_EQ(results_of("layer_norm", {x, row, row}, out), "bf16[2,4] f32[2] f32[2]");
  EXPECT_EQ(results_of("add_layer_norm", {x, x, row, row}, out), "f32[2,4] bf16[2,4] f32[2] f32[2]");
  EXPECT_EQ(results_of("rms_norm", {x, row}, {{"eps", 1e-6}, {"out", "u8"}}),
            "rms_norm: out must be f32, bf16 or f16");
}

TEST(Dtypes, OfTheHeadsGradientWhatIsAsked) {
  Attrs attrs{{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}, {"precision", "bf16"}};
  const std::vector<TensorType> in{bf16({3, 4}), f32({5, 4}), {DType::kI32, {3}}, f32({1})};
  EXPECT_EQ(results_of("head_loss", in, attrs), "f32[1] bf16[3,4] f32[5,4]");
  attrs.set("dx", std::string("f32"));
  EXPECT_EQ(results_of("head_loss", in, attrs), "f32[1] f32[3,4] f32[5,4]");
}

/// A sum is normed as it is stored, so that its norm can be computed again from it.
TEST(Dtypes, AShortSumIsRoundedBeforeItIsNormed) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  const auto state = [&](const char* name, const TensorType& type) {
    return b.state({name, type, ir::StateClass::kInput});
  };
  const ValueId x = state("x", bf16({1, 2})), y = state("y", bf16({1, 2})), row = state("w", f32({2}));
  const auto fused = b.ops("add_rms_norm", {x, y, row}, {{"eps", 1e-6}, {"out", "f32"}});
  const auto again = b.ops("rms_norm", {fused[0], row}, {{"eps", 1e-6}, {"out", "f32"}});
  reference::Interpreter interpreter(reference::Precision::kStored);
  interpreter.set("x", {bf16({1, 2}), {1.0, 3.0}});
  interpreter.set("y", {bf16({1, 2}), {0x1p-8, 0x1p-9}});
  interpreter.set("w", values({2}, {1.0, 1.0}));
  ASSERT_TRUE(interpreter.run(graph).ok());
  EXPECT_EQ(interpreter.value(fused[0]).data, (std::vector<double>{1.0, 3.0}));
  EXPECT_EQ(interpreter.value(fused[1]).data, interpreter.value(again[0]).data);
  EXPECT_EQ(interpreter.value(fused[2]).data, interpreter.value(again[1]).data);
}

TEST(Dtypes, OfMatrixProductsWhatIsAsked) {
  const TensorType x = f32({3, 4}), weight = f32({5, 4});
  EXPECT_EQ(results_of("linear", {x, weight}), "f32[3,5]");
  EXPECT_EQ(results_of("linear", {bf16({3, 4}), weight}), "bf16[3,5]");
  EXPECT_EQ(results_of("linear", {x, weight}, {{"precision", "bf16"}, {"out", "bf16"}}), "bf16[3,5]");
  EXPECT_EQ(results_of("linear_dw", {bf16({3, 4}), bf16({3, 5})}), "f32[5,4]");
  EXPECT_EQ(results_of("linear_dw", {bf16({3, 4}), bf16({3, 5})}, {{"out", "bf16"}}), "bf16[5,4]");
  EXPECT_EQ(results_of("linear", {x, weight}, {{"precision", "f8"}}),
            "linear: precision must be tf32, bf16 or f16");
  EXPECT_EQ(results_of("linear", {x, weight}, {{"out", "i32"}}), "linear: out must be f32, bf16 or f16");
}

TEST(Dtypes, OfStatisticsAndAccumulators) {
  EXPECT_EQ(results_of("rms_norm_grad", {bf16({2, 4}), f32({2, 4}), bf16({4}), f32({2})}),
            "f32[2,4] bf16[4]");
  EXPECT_EQ(results_of("rms_norm_grad", {bf16({2, 4}), f32({2, 4}), f32({4}), bf16({2})}),
            "rms_norm_grad: rstd must be f32, is bf16[2]");
  const std::vector<TensorType> grad = {f32({2, 4}), f32({2, 4}), f32({4}), f32({2})};
  EXPECT_EQ(results_of("rms_norm_grad", grad, {{"rounded", "bf16"}}), "f32[2,4] f32[4] bf16[2,4]");
  EXPECT_EQ(results_of("rms_norm_grad", grad, {{"rounded", "f16"}, {"frozen", true}}), "f32[2,4] f16[2,4]");
  EXPECT_EQ(results_of("rms_norm_grad", grad, {{"dx", "bf16"}}), "bf16[2,4] f32[4]");
  EXPECT_EQ(results_of("rms_norm_grad", grad, {{"rounded", "f32"}}),
            "rms_norm_grad: rounded must be bf16 or f16");
  EXPECT_EQ(results_of("rms_norm_grad", grad, {{"rounded", "bf16"}, {"dx", "bf16"}}),
            "rms_norm_grad: a result is rounded a second time where it is not f32");
  EXPECT_EQ(results_of("layer_norm_grad", {f32({2, 4}), f32({2, 4}), f32({4}), f32({2}), f32({2})},
                       {{"rounded", "bf16"}}),
            "f32[2,4] f32[4] f32[4] bf16[2,4]");
  EXPECT_EQ(results_of("linear_dw", {f32({3, 4}), f32({3, 5}), bf16({5, 4})}),
            "linear_dw: acc must be f32, is bf16[5,4]");
  EXPECT_EQ(results_of("linear_dw", {f32({3, 4}), f32({3, 5}), f32({5, 4})}, {{"out", "bf16"}}),
            "linear_dw: a gradient is accumulated in f32");
}

TEST(Dtypes, CastRoundsAndItsDerivativeCastsBack) {
  EXPECT_EQ(results_of("cast", {f32({2})}, {{"out", "bf16"}}), "bf16[2]");
  EXPECT_EQ(results_of("cast", {{DType::kU8, {2}}}, {}), "f32[2]");
  const auto build = [](Builder& b, const std::vector<ValueId>& in) {
    return std::vector<ValueId>{ops::cast(b, ops::cast(b, in[0], DType::kBf16), DType::kF32)};
  };
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  reference::Interpreter interpreter(reference::Precision::kStored);
  interpreter.set("x", values({2}, {1.0 + 0x1p-8, 3.0 + 0x1p-20}));
  const auto y = build(b, {b.state({"x", f32({2}), ir::StateClass::kInput})});
  ASSERT_TRUE(interpreter.run(graph).ok());
  EXPECT_EQ(interpreter.value(y[0]).data, (std::vector<double>{1.0, 3.0}));
  EXPECT_LT(derivative_error({"cast", "cast", {normal({3, 2})}}), kDerivativeTolerance);
}

/// The gradients of a bf16 map are of their operands' dtypes.
TEST(Dtypes, DerivativesFollowTheirOperands) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  const auto state = [&](const char* name, const TensorType& type) {
    return b.state({name, type, ir::StateClass::kInput});
  };
  const ValueId x = state("x", f32({3, 4})), weight = state("w", f32({5, 4})), bias = state("b", f32({5}));
  const ValueId dy = state("dy", bf16({3, 5}));
  const auto y = b.ops("linear", {x, weight, bias}, {{"precision", "bf16"}, {"out", "bf16"}});
  SingleOpVjp vjp(b, graph.op(graph.value(y[0]).producer), {dy}, {true, true, true});
  vjp.op().def->vjp(vjp);
  ASSERT_TRUE(b.status().ok());
  EXPECT_EQ(to_string(graph.type(vjp.sums()[0])), "f32[3,4]");
  EXPECT_EQ(to_string(graph.type(vjp.sums()[1])), "f32[5,4]");
  EXPECT_EQ(to_string(graph.type(vjp.sums()[2])), "f32[5]");
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(graph.op(graph.value(vjp.sums()[i]).producer).attrs.str("precision"), "bf16");
}

}  // namespace
}  // namespace plimsoll::ops_testing
