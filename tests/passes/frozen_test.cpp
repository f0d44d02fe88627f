// What passes make of parameters that do not learn: no gradient, no weight gradient in head and loss, and no
// backward below the lowest that does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "ir/op_def.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/pipeline.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::ValueId;

/// embedding -> `layers` of y = x + silu(x W_i) -> head -> loss, differentiated with respect to what is not
/// `frozen`.
struct FrozenProgram {
  ir::Graph graph;
  std::map<std::string, ValueId> parameters;
  AutodiffReport derivative;

  explicit FrozenProgram(const std::vector<std::string>& frozen, bool joined = false) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const std::string& name, DType dtype, ir::Shape shape, ir::StateClass c) {
      return b.state({name, {dtype, shape}, c});
    };
    const auto weight = [&](const std::string& name, ir::Shape shape) {
      return parameters[name] = state(name, DType::kF32, shape, ir::StateClass::kParameter);
    };
    const ValueId ids = state("ids", DType::kI32, {1, 3}, ir::StateClass::kInput);
    const ValueId targets = state("targets", DType::kI32, {1, 3}, ir::StateClass::kInput);
    const ValueId scale = state("scale", DType::kF32, {1}, ir::StateClass::kScalars);
    ValueId x = ops::embedding(b, weight("table", {7, 4}), ids);
    for (const std::string layer : {"w0", "w1"}) {
      ValueId w;
      if (joined)
        w = ops::concat_rows(b, {weight(layer + ".a", {1, 4}), weight(layer + ".b", {3, 4})}, layer);
      else
        w = weight(layer, {4, 4});
      x = ops::add(b, x, ops::silu(b, ops::linear(b, x, w, {})));
    }
    const ValueId logits = ops::linear(b, x, weight("head", {7, 4}), {});
    ValueId loss = ops::cross_entropy(b, logits, targets, scale, {}).loss;
    EXPECT_TRUE(b.status().ok());
    Pipeline pipeline({.frozen = frozen});
    EXPECT_TRUE(pipeline.forward(graph, {&loss, 1}).ok());
    std::vector<ValueId> wrt;
    for (const auto& [name, value] : parameters)
      if (std::find(frozen.begin(), frozen.end(), name) == frozen.end()) wrt.push_back(value);
    auto report = pipeline.differentiate(graph, {loss, wrt});
    EXPECT_TRUE(report.ok());
    derivative = std::move(*report);
    for (size_t i = 0; i < derivative.cotangents.size(); ++i) {
      const std::string name = "grad" + std::to_string(i);
      EXPECT_TRUE(derivative.cotangents[i].valid()) << name;
      graph.declare_state({name, graph.type(derivative.cotangents[i]), ir::StateClass::kGradient});
      b.assign(name, derivative.cotangents[i]);
    }
    EXPECT_TRUE(pipeline.backward(graph).ok());
  }

  [[nodiscard]] int64_t count(std::string_view op) const {
    return std::count_if(graph.order().begin(), graph.order().end(),
                         [&](ir::OpId id) { return graph.op(id).def->name == op; });
  }
};

TEST(Frozen, NothingFrozenComputesAll) {
  const FrozenProgram p({});
  EXPECT_EQ(p.count("linear_dw"), 2);
  EXPECT_EQ(p.count("embedding_grad"), 1);
  EXPECT_EQ(p.count("linear"), 4) << "two forward, two back";
  for (const ir::OpId id : p.graph.order())
    if (p.graph.op(id).def->name == "head_loss") {
      EXPECT_EQ(p.graph.op(id).outputs.size(), 3U);
    }
}

TEST(Frozen, AFrozenHeadGivesDxAlone) {
  const FrozenProgram p({"head"});
  ASSERT_EQ(p.count("head_loss"), 1);
  for (const ir::OpId id : p.graph.order())
    if (p.graph.op(id).def->name == "head_loss") {
      EXPECT_EQ(p.graph.op(id).outputs.size(), 2U);
    }
  EXPECT_EQ(p.count("linear_dw"), 2);
}

TEST(Frozen, ANormThatDoesNotLearnGivesDxAlone) {
  for (const bool learns : {true, false}) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const std::string& name, ir::Shape shape, ir::StateClass c) {
      return b.state({name, {DType::kF32, std::move(shape)}, c});
    };
    const ValueId x = state("x", {3, 4}, ir::StateClass::kParameter);
    const ValueId w = state("w", {4}, ir::StateClass::kParameter);
    const ValueId v = state("v", {4}, ir::StateClass::kParameter);
    const ValueId bias = state("bias", {4}, ir::StateClass::kParameter);
    const ValueId y = ops::layer_norm(b, ops::rms_norm(b, ops::silu(b, x), w, 1e-5).y, v, bias, 1e-5).y;
    ValueId loss = b.op("squared_error", {y, state("labels", {3, 4}, ir::StateClass::kInput),
                                          state("scale", {1}, ir::StateClass::kScalars)});
    ASSERT_TRUE(b.status().ok()) << b.status().error().message();
    Pipeline pipeline(
        {.frozen = learns ? std::vector<std::string>{} : std::vector<std::string>{"w", "v", "bias"}});
    ASSERT_TRUE(pipeline.forward(graph, {&loss, 1}).ok());
    const auto report = pipeline.differentiate(
        graph, {loss, learns ? std::vector<ValueId>{x, w, v, bias} : std::vector<ValueId>{x}});
    ASSERT_TRUE(report.ok()) << report.error().message();
    for (const ir::OpId id : graph.order()) {
      const ir::Op& op = graph.op(id);
      if (op.def->name == "rms_norm_grad") {
        EXPECT_EQ(op.outputs.size(), learns ? 2U : 1U);
      }
      if (op.def->name == "layer_norm_grad") {
        EXPECT_EQ(op.outputs.size(), learns ? 3U : 1U);
      }
    }
  }
}

TEST(Frozen, BackwardStopsBelowTheLowestThatLearns) {
  const FrozenProgram p({"table", "w0", "head"});
  EXPECT_EQ(p.count("linear_dw"), 1);
  EXPECT_EQ(p.count("embedding_grad"), 0);
  EXPECT_EQ(p.count("linear"), 2) << "no cotangent goes below w1";
}

TEST(Frozen, TheMiddleIsPassedThrough) {
  const FrozenProgram p({"w0", "w1", "head"});
  EXPECT_EQ(p.count("linear_dw"), 0);
  EXPECT_EQ(p.count("embedding_grad"), 1);
  EXPECT_EQ(p.count("linear"), 4);
}

TEST(Frozen, TheHeadAloneTakesNoDx) {
  const FrozenProgram p({"table", "w0", "w1"});
  EXPECT_EQ(p.count("head_loss_dw"), 1);
  EXPECT_EQ(p.count("head_loss"), 0);
  EXPECT_EQ(p.count("linear"), 2);
  EXPECT_EQ(p.count("linear_dw"), 0);
}

/// Of a joined storage the rows that learn have a weight gradient of their own, and no other is computed.
TEST(Frozen, RowsOfAJoinedWeightAreComputedApart) {
  const FrozenProgram p({"table", "w0.a", "w0.b", "w1.a", "head"}, /*joined=*/true);
  ASSERT_EQ(p.count("linear_dw"), 1);
  for (const ir::OpId id : p.graph.order())
    if (p.graph.op(id).def->name == "linear_dw") {
      EXPECT_EQ(p.graph.type(p.graph.op(id).outputs[0]).shape, (ir::Shape{3, 4}));
    }
  const FrozenProgram both({}, /*joined=*/true);
  EXPECT_EQ(both.count("linear_dw"), 4);
}

}  // namespace
}  // namespace plimsoll::passes
