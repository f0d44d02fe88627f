// What the pass makes of a small graph: precisions, dtypes, shared casts, overrides; and what derivatives
// inherit.
#include "passes/training/autocast.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/autodiff.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;

/// x -> norm -> linear -> silu -> linear, added to x: a block in small.
struct Block {
  ir::Graph graph;
  ValueId sum, weight, table;

  Block() {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c, DType dtype = DType::kF32) {
      return b.state({name, {dtype, shape}, c});
    };
    table = state("table", {11, 8}, StateClass::kParameter);
    const ValueId x = ops::embedding(b, table, state("ids", {2, 5}, StateClass::kInput, DType::kI32));
    const auto layer = b.scope("layers.0");
    const ValueId y = ops::rms_norm(b, x, state("norm", {8}, StateClass::kParameter), 1e-6).y;
    weight = state("up", {12, 8}, StateClass::kParameter);
    ValueId h;
    {
      const auto mlp = b.scope("mlp");
      h = ops::silu(b, ops::linear(b, y, weight, {}));
    }
    const auto head = b.scope("down");
    sum = ops::add(b, x, ops::linear(b, h, state("down", {8, 12}, StateClass::kParameter), {}));
    graph.declare_state({"out", graph.type(sum), StateClass::kOutput});
    b.assign("out", sum);
  }

  Result<AutocastReport> run(const AutocastOptions& options) {
    auto report = autocast(graph, options);
    const Status valid = ir::verify(graph);
    EXPECT_TRUE(valid.ok()) << (valid ? "" : valid.error().message()) << ir::print(graph);
    return report;
  }
  [[nodiscard]] std::vector<std::string> dtypes(std::string_view op) const {
    std::vector<std::string> found;
    for (const ir::OpId id : graph.order())
      if (graph.op(id).def->name == op)
        found.emplace_back(ir::name(graph.type(graph.op(id).outputs[0]).dtype));
    return found;
  }
  [[nodiscard]] std::string precision_of(std::string_view layer) const {
    for (const ir::OpId id : graph.order()) {
      const ir::Op& op = graph.op(id);
      if (op.def->name == "linear" && op.layer.find(layer) != std::string::npos)
        return op.attrs.find("precision") == nullptr ? "" : op.attrs.str("precision");
    }
    return "none";
  }
};

using Names = std::vector<std::string>;

TEST(Autocast, ProductsAreShortTheStreamIsNot) {
  Block block;
  ASSERT_TRUE(block.run({.precision = ops::Precision::kBf16}).ok());
  EXPECT_EQ(block.dtypes("linear"), (Names{"bf16", "bf16"}));
  EXPECT_EQ(block.dtypes("silu"), Names{"bf16"});
  EXPECT_EQ(block.dtypes("rms_norm"), Names{"f32"});
  EXPECT_EQ(block.dtypes("add"), Names{"f32"});
  EXPECT_EQ(block.dtypes("cast"), Names{});
  EXPECT_EQ(block.precision_of("mlp"), "bf16");
}

TEST(Autocast, ShortStreamHasOneCastAndLeavesTheStatesDtype) {
  Block block;
  ASSERT_TRUE(block.run({.precision = ops::Precision::kBf16, .short_residual = true}).ok());
  EXPECT_EQ(block.dtypes("rms_norm"), Names{"bf16"});
  EXPECT_EQ(block.dtypes("add"), Names{"bf16"});
  EXPECT_EQ(block.dtypes("cast"), (Names{"bf16", "f32"}));  // of the rows, shared; of what "out" takes
}

/// What a state alone takes is not rounded on its way there: dumped logits are those of the loss.
TEST(Autocast, AResultForAStateIsStoredAsTheStateIs) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto input = [&](const char* name, Shape shape) {
    return b.state({name, {DType::kF32, shape}, StateClass::kInput});
  };
  const ValueId logits = ops::linear(b, input("x", {3, 8}), input("w", {5, 8}), {});
  graph.declare_state({"logits", graph.type(logits), StateClass::kOutput});
  b.assign("logits", logits);
  ASSERT_TRUE(autocast(graph, {.precision = ops::Precision::kBf16}).ok());
  ASSERT_TRUE(ir::verify(graph).ok());
  EXPECT_EQ(graph.type(logits).dtype, DType::kF32);
  EXPECT_EQ(graph.op(graph.value(logits).producer).attrs.str("precision"), "bf16");
  for (const ir::OpId id : graph.order()) EXPECT_NE(graph.op(id).def->name, "cast");
}

TEST(Autocast, Tf32StoresF32) {
  Block block;
  ASSERT_TRUE(block.run({.precision = ops::Precision::kTf32}).ok());
  EXPECT_EQ(block.dtypes("linear"), (Names{"f32", "f32"}));
  EXPECT_EQ(block.precision_of("down"), "tf32");
}

/// Its operands are stored as they are multiplied in every other precision.
TEST(Autocast, AttentionIsToldOfTf32Alone) {
  const auto told = [](ops::Precision precision) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ValueId x = b.state({"x", {DType::kF32, {1, 5, 2, 4}}, StateClass::kInput});
    const ValueId y = ops::attention(b, x, x, x, {}, {}).out;
    graph.declare_state({"y", graph.type(y), StateClass::kOutput});
    b.assign("y", y);
    EXPECT_TRUE(autocast(graph, {.precision = precision}).ok());
    for (const ir::OpId id : graph.order())
      if (const ir::Op& op = graph.op(id); op.def->name == "attention")
        return op.attrs.find("precision") == nullptr ? std::string() : op.attrs.str("precision");
    return std::string("none");
  };
  EXPECT_EQ(told(ops::Precision::kTf32), "tf32");
  EXPECT_EQ(told(ops::Precision::kF32), "");
  EXPECT_EQ(told(ops::Precision::kBf16), "");
}

TEST(Autocast, OverridesByLayerAndOp) {
  using enum ops::Precision;
  const std::vector<PrecisionOverride> overrides = {{"layers.*.down", kF32}, {"attention*", kF32}};
  Block block;
  const auto report = block.run({.precision = ops::Precision::kF16, .overrides = overrides});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(block.dtypes("linear"), (Names{"f16", "f32"}));
  EXPECT_EQ(block.precision_of("down"), "");
  EXPECT_EQ(report->used, (std::vector<bool>{true, false}));
  const auto why = std::find_if(report->choices.begin(), report->choices.end(),
                                [](const PrecisionChoice& c) { return c.layer == "layers.0.down"; });
  ASSERT_NE(why, report->choices.end());
  EXPECT_EQ(why->why, "precision_overrides: layers.*.down");
}

/// Of an op, of its name's beginning, of all within a layer; the first that matches; products alone.
TEST(Autocast, OverridesInTheirOrder) {
  using enum ops::Precision;
  const auto run = [](const std::vector<PrecisionOverride>& overrides, ops::Precision precision) {
    Block block;
    const auto report = block.run({.precision = precision, .overrides = overrides});
    EXPECT_TRUE(report.ok());
    return std::pair(block.precision_of("mlp") + " " + block.precision_of("down"), report->used);
  };
  using Used = std::vector<bool>;
  EXPECT_EQ(run({{"mlp", kF32}, {"linear", kTf32}}, kBf16), (std::pair{std::string(" tf32"), Used{1, 1}}));
  EXPECT_EQ(run({{"lin*", kF16}, {"mlp", kF32}}, kBf16), (std::pair{std::string("f16 f16"), Used{1, 0}}));
  EXPECT_EQ(run({{"layers.0", kBf16}}, kF32), (std::pair{std::string("bf16 bf16"), Used{1}}));
  EXPECT_EQ(run({{"up", kF32}}, kBf16), (std::pair{std::string(" bf16"), Used{1}}));  // a weight
  EXPECT_EQ(run({{"layers", kF32}, {"layer", kF32}}, kTf32), (std::pair{std::string(" "), Used{1, 0}}));
  EXPECT_EQ(run({{"rms_norm", kBf16}, {"add", kBf16}}, kTf32),
            (std::pair{std::string("tf32 tf32"), Used{0, 0}}));
}

TEST(Autocast, NothingIsDoneForF32) {
  Block block;
  const std::string before = ir::print(block.graph);
  ASSERT_TRUE(block.run({}).ok());
  EXPECT_EQ(ir::print(block.graph), before);
}

/// Products of the derivative are of the forward's precision; gradients of parameters are f32.
TEST(Autocast, DerivativesInheritIt) {
  Block block;
  ASSERT_TRUE(block.run({.precision = ops::Precision::kBf16}).ok());
  ir::Builder b(block.graph, ops::find_op);
  const ValueId seed = ops::fill(b, {2, 5, 8}, 1.0);
  const auto report =
      autodiff(block.graph, {.loss = block.sum, .wrt = {block.weight, block.table}, .seed = seed});
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(ir::verify(block.graph).ok()) << ir::print(block.graph);
  for (const ValueId v : report->cotangents) EXPECT_EQ(block.graph.type(v).dtype, DType::kF32);
  for (const ir::OpId id : block.graph.order()) {
    const ir::Op& op = block.graph.op(id);
    if (op.def->name != "linear" && op.def->name != "linear_dw") continue;
    EXPECT_EQ(op.attrs.str("precision"), "bf16") << ir::print(block.graph);
  }
}

/// Attention as models of one's own write it: its products are short, its softmax is not, arithmetic between
/// follows its operands; derivatives multiply in the same precision.
TEST(Autocast, GeneralOpsFollowPyTorchsLists) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ValueId q = b.state({"q", {DType::kF32, {2, 3, 4}}, StateClass::kParameter});
  const ValueId k = b.state({"k", {DType::kF32, {2, 5, 4}}, StateClass::kParameter});
  const ValueId scores = ops::pointwise(b, "mul(x0,0.5)", {ops::batched_matmul(b, q, k, false, true)});
  const ValueId mixed = ops::batched_matmul(b, ops::softmax(b, scores), ops::pointwise(b, "tanh(x0)", {k}));
  const ValueId loss = ops::reduce(b, ops::Reduce::kMean, mixed, {0, 1, 2}, false);
  const ValueId seed = ops::fill(b, {1}, 1);
  ASSERT_TRUE(autocast(graph, {.precision = ops::Precision::kBf16}).ok());
  ASSERT_TRUE(autodiff(graph, {.loss = loss, .wrt = {q, k}, .seed = seed}).ok());
  const Status valid = ir::verify(graph);
  ASSERT_TRUE(valid.ok()) << (valid ? "" : valid.error().message()) << ir::print(graph);
  EXPECT_EQ(to_string(graph.type(scores)), "bf16[2,3,5]");
  EXPECT_EQ(to_string(graph.type(mixed)), "bf16[2,3,4]");
  EXPECT_EQ(to_string(graph.type(loss)), "f32[1]");
  int products = 0;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    const std::string type = op.outputs.empty() ? "" : to_string(graph.type(op.outputs[0]));
    EXPECT_TRUE(op.def->name != "softmax" || type == "f32[2,3,5]") << type;
    EXPECT_TRUE(op.def->name != "softmax_grad" || type == "bf16[2,3,5]") << type;
    if (op.def->rounded_operands == 0) continue;
    EXPECT_EQ(op.attrs.str("precision"), "bf16");
    ++products;
  }
  EXPECT_EQ(products, 6) << "two, and two derivatives of each";
}

}  // namespace
}  // namespace plimsoll::passes
