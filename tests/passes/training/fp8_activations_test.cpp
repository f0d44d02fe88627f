// Which values backward reads from copies in FP8, what it rebuilds from them, and that forward does not
// change.
#include "passes/training/fp8_activations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/reference/interpreter.h"
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
using numerics::Fp8Recipe;

constexpr int64_t kHidden = 48, kInner = 160;

/// The MLP of a block with its norm, and the gradients of everything.
struct Mlp {
  ir::Graph graph;
  ir::OpId last_forward;
  std::vector<Fp8Product> copies;

  explicit Mlp(Fp8Recipe recipe, bool copies_activations) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c) {
      return b.state({name, {DType::kF32, shape}, c});
    };
    const ValueId x = state("x", {2, 128, kHidden}, StateClass::kInput);
    const ValueId residual = state("residual", {2, 128, kHidden}, StateClass::kInput);
    graph.declare_state({"random", {DType::kI32, {4}}, StateClass::kScalars});
    const ValueId norm = state("norm", {kHidden}, StateClass::kParameter);
    const ValueId up = state("up", {kInner, kHidden}, StateClass::kParameter);
    const ValueId down = state("down", {kHidden, kInner}, StateClass::kParameter);
    ValueId y;
    {
      const auto block = b.block(0, "layers.0");
      const auto linear = [&](ValueId v, ValueId w) {
        return b.op("linear", {v, w},
                    {{"transposed", false}, {"fp8", true}, {"precision", std::string("bf16")}});
      };
      const auto sums = b.ops("add_rms_norm", {x, residual, norm}, {{"eps", 1e-6}});
      y = ops::add(b, sums[0], linear(ops::silu(b, linear(sums[1], up)), down));
    }
    last_forward = graph.order().back();
    const ValueId dy = state("dy", {2, 128, kHidden}, StateClass::kInput);
    const std::vector<ValueId> wrt = {x, norm, up, down};
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    assign(after, "y", y);
    for (size_t i = 0; i < wrt.size(); ++i) assign(after, kNames[i], derivative->cotangents[i]);
    Fp8Settings settings{.enabled = true, .form = {.recipe = recipe}, .random_state = "random"};
    EXPECT_TRUE(fp8(graph, {.fp8 = settings, .last_forward_op = last_forward}).ok());
    if (!copies_activations) return;
    const auto report = fp8_activations(graph, {.last_forward_op = last_forward});
    EXPECT_TRUE(report.ok()) << report.error().message();
    copies = report->copies;
    const Status valid = ir::verify(graph);
    EXPECT_TRUE(valid.ok()) << valid.error().message() << ir::print(graph);
  }
  static void assign(ir::Builder& b, const char* name, ValueId v) {
    b.graph().declare_state({name, b.type(v), StateClass::kOutput});
    b.assign(name, v);
  }
  [[nodiscard]] int64_t count(std::string_view op) const {
    return std::count_if(graph.order().begin(), graph.order().end(),
                         [&](ir::OpId id) { return graph.op(id).def->name == op; });
  }
  [[nodiscard]] std::vector<double> run(const char* wanted) const {
    reference::Interpreter interpreter;
    uint32_t seed = 1;
    for (const auto& state : graph.states()) {
      std::vector<double> data(static_cast<size_t>(state.type.num_elements()));
      for (double& value : data) {
        seed = seed * 1664525 + 1013904223;
        value = state.type.dtype == DType::kF32 ? static_cast<double>(seed >> 8) / 0x1p23 - 1 : 1;
      }
      interpreter.set(state.name, reference::tensor(state.type, data));
    }
    EXPECT_TRUE(interpreter.run(graph).ok());
    return interpreter.find(wanted)->data;
  }
  static constexpr const char* kNames[] = {"dx", "dnorm", "dup", "ddown"};
};

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, squares = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    squares += b[i] * b[i];
  }
  return std::sqrt(error / squares);
}

/// The sum that is normed and the activation's input have a copy each.
TEST(Fp8Activations, CopiesWhatNormsAndActivationsRead) {
  const Mlp mlp(Fp8Recipe::kMxfp8, true);
  ASSERT_EQ(mlp.copies.size(), 2U);
  EXPECT_EQ(mlp.count("dequantize_operand"), 2);
  EXPECT_EQ(mlp.count("rms_norm"), 1) << "the norm of the copy, alone";
  for (const Fp8Product& copy : mlp.copies) {
    EXPECT_EQ(copy.product, "kept");
    EXPECT_EQ(copy.left, "fp8-block-1x128");
    EXPECT_EQ(copy.block, 0);
    EXPECT_NE(copy.note.find("instead of"), std::string::npos) << copy.note;
  }
}

TEST(Fp8Activations, ForwardIsTheSameAndGradientsAreNear) {
  for (const Fp8Recipe recipe :
       {Fp8Recipe::kDelayed, Fp8Recipe::kCurrent, Fp8Recipe::kBlock, Fp8Recipe::kMxfp8}) {
    const Mlp with(recipe, true), without(recipe, false);
    EXPECT_EQ(with.run("y"), without.run("y"));
    for (const char* gradient : Mlp::kNames) {
      const double error = distance(with.run(gradient), without.run(gradient));
      EXPECT_LT(error, 0.08) << gradient << ", " << numerics::name(recipe);
      EXPECT_GT(error, 0) << gradient;
    }
  }
}

/// What delayed scaling records are forward's magnitudes.
TEST(Fp8Activations, RecordsWhatForwardHas) {
  const Mlp with(Fp8Recipe::kDelayed, true);
  ASSERT_EQ(with.count("record_amax"), 1);
  for (const ir::OpId id : with.graph.order()) {
    if (with.graph.op(id).def->name != "record_amax") continue;
    const size_t record =
        static_cast<size_t>(std::ranges::find(with.graph.order(), id) - with.graph.order().begin());
    for (const ValueId v : with.graph.op(id).inputs) {
      const ir::Op& maker = with.graph.op(with.graph.value(v).producer);
      if (maker.def->name != "quantize_operand") continue;
      const ir::Op& from = with.graph.op(with.graph.value(maker.inputs[0]).producer);
      EXPECT_NE(from.def->name, "rms_norm") << "that is the copy's, op " << record;
    }
  }
}

}  // namespace
}  // namespace plimsoll::passes
