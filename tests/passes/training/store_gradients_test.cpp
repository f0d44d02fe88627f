// Gradients take the dtype that is asked for, their sums follow, and what has it already is left alone.
#include "passes/training/store_gradients.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/autodiff.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::ValueId;

/// A norm and a table used twice, as of a tied head; weights in `dtype`.
struct TiedTable {
  ir::Graph graph;
  AutodiffReport derivative;
  std::vector<ValueId> gradients;

  explicit TiedTable(DType dtype) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, DType type, ir::Shape shape) {
      return b.state({name, {type, shape}, ir::StateClass::kInput});
    };
    const ValueId table = state("table", dtype, {11, 8}), weight = state("norm", dtype, {8});
    const ValueId ids = state("ids", DType::kI32, {2, 5}), targets = state("targets", DType::kI32, {2, 5});
    const ValueId x = ops::rms_norm(b, ops::embedding(b, table, ids), weight, 1e-6).y;
    const ValueId loss =
        ops::cross_entropy(b, ops::linear(b, x, table, {}), targets, state("scale", DType::kF32, {1}), {})
            .loss;
    auto report = autodiff(graph, {.loss = loss, .wrt = {table, weight}});
    EXPECT_TRUE(report.ok());
    derivative = *report;
    for (const auto& uses : derivative.contributions)
      gradients.insert(gradients.end(), uses.begin(), uses.end());
  }
  [[nodiscard]] DType of(ValueId v) const { return graph.type(v).dtype; }
};

TEST(StoreGradients, GivesEachItsDtypeAndSumsFollow) {
  for (const DType weights : {DType::kF32, DType::kBf16})
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
      TiedTable t(weights);
      ASSERT_EQ(t.gradients.size(), 3U);
      ASSERT_TRUE(store_gradients(t.graph, t.gradients, dtype).ok());
      ASSERT_TRUE(ir::verify(t.graph).ok());
      for (const ValueId v : t.gradients) EXPECT_EQ(t.of(v), dtype);
      for (const ValueId v : t.derivative.cotangents) EXPECT_EQ(t.of(v), dtype);
    }
}

TEST(StoreGradients, LeavesAPlainProgramAsItIs) {
  TiedTable t(DType::kF32);
  const std::string before = ir::print(t.graph);
  ASSERT_TRUE(store_gradients(t.graph, t.gradients, DType::kF32).ok());
  EXPECT_EQ(ir::print(t.graph), before);
}

TEST(StoreGradients, OfPartsSideBySideIsThatOfEach) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto state = [&](const char* name, DType type, ir::Shape shape) {
    return b.state({name, {type, shape}, ir::StateClass::kInput});
  };
  const ValueId x = state("x", DType::kF32, {2, 5, 4}), bias = state("bias", DType::kF32, {8});
  const std::vector<ValueId> biases = ops::split(b, bias, {3, 5});
  const ValueId y = ops::concat(b, {ops::linear(b, x, state("v", DType::kF32, {3, 4}), biases[0]),
                                    ops::linear(b, x, state("w", DType::kF32, {5, 4}), biases[1])});
  const ValueId loss =
      ops::cross_entropy(b, y, state("targets", DType::kI32, {2, 5}), state("scale", DType::kF32, {1}), {})
          .loss;
  const auto report = autodiff(graph, {.loss = loss, .wrt = {bias}});
  ASSERT_TRUE(report.ok());
  const ValueId gradient = report->contributions[0][0];
  ASSERT_EQ(graph.op(graph.value(gradient).producer).def->name, "concat");
  ASSERT_TRUE(store_gradients(graph, std::span(&gradient, 1), DType::kBf16).ok());
  ASSERT_TRUE(ir::verify(graph).ok());
  EXPECT_EQ(graph.type(gradient).dtype, DType::kBf16);
  for (const ValueId part : graph.op(graph.value(gradient).producer).inputs)
    EXPECT_EQ(graph.type(part).dtype, DType::kBf16);
}

TEST(StoreGradients, NamesWhatCannotBeStored) {
  TiedTable t(DType::kF32);
  const ValueId sum = t.derivative.cotangents[0];  // of both uses: an addition
  const Status status = store_gradients(t.graph, std::span(&sum, 1), DType::kBf16);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().what, "a gradient from 'add' cannot be stored as bf16");
}

}  // namespace
}  // namespace plimsoll::passes
