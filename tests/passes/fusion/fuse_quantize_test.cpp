// Which ops quantise where they compute, which make both copies at once, and that results stay what they
// were.
#include "passes/fusion/fuse_quantize.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/reference/interpreter.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/autodiff.h"
#include "passes/training/fp8.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;
using numerics::Fp8Recipe;

/// A norm and a gated MLP, with the gradients of everything.
struct Mlp {
  ir::Graph graph;
  ir::OpId last_forward;
  FuseQuantizeReport report;

  explicit Mlp(Fp8Recipe recipe, int64_t tokens = 128) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c) {
      return b.state({name, {DType::kF32, shape}, c});
    };
    const ValueId x = state("x", {2, tokens, 48}, StateClass::kInput);
    graph.declare_state({"random", {DType::kI32, {4}}, StateClass::kScalars});
    const ValueId norm = state("norm", {48}, StateClass::kParameter);
    const ValueId gate_up = state("gate_up", {160, 48}, StateClass::kParameter);
    const ValueId down = state("down", {48, 80}, StateClass::kParameter);
    const auto linear = [&](ValueId v, ValueId w) {
      return b.op("linear", {v, w},
                  {{"transposed", false}, {"fp8", true}, {"precision", std::string("bf16")}});
    };
    const ValueId normed = b.ops("rms_norm", {x, norm}, {{"eps", 1e-6}})[0];
    const ValueId y = ops::silu(b, linear(ops::swiglu(b, linear(normed, gate_up)), down));
    last_forward = graph.order().back();
    const ValueId dy = state("dy", {2, tokens, 48}, StateClass::kInput);
    const std::vector<ValueId> wrt = {x, norm, gate_up, down};
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    assign(after, "y", y);
    for (size_t i = 0; i < wrt.size(); ++i) assign(after, kNames[i], derivative->cotangents[i]);
    Fp8Settings settings{.enabled = true, .form = {.recipe = recipe}, .random_state = "random"};
    EXPECT_TRUE(fp8(graph, {.fp8 = settings, .last_forward_op = last_forward}).ok());
  }
  static void assign(ir::Builder& b, const char* name, ValueId v) {
    b.graph().declare_state({name, b.type(v), StateClass::kOutput});
    b.assign(name, v);
  }
  Mlp& fuse() {
    const auto result = fuse_quantize(graph, {.last_forward_op = last_forward});
    EXPECT_TRUE(result.ok()) << result.error().message();
    report = *result;
    const Status valid = ir::verify(graph);
    EXPECT_TRUE(valid.ok()) << valid.error().message() << ir::print(graph);
    return *this;
  }
  [[nodiscard]] int64_t count(std::string_view op) const {
    return std::ranges::count_if(graph.order(), [&](ir::OpId id) { return graph.op(id).def->name == op; });
  }
  [[nodiscard]] std::vector<double> run() const {
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
    std::vector<double> results = interpreter.find("y")->data;
    for (const char* name : kNames)
      results.insert(results.end(), interpreter.find(name)->data.begin(), interpreter.find(name)->data.end());
    return results;
  }
  static constexpr const char* kNames[] = {"dx", "dnorm", "dgate_up", "ddown"};
};

/// Blocks of one row: both copies of norm, activation and the gradient at gate and up, each in one op; those
/// of the gradient that comes in are paired.
TEST(FuseQuantize, BothCopiesWhereTheyAreComputed) {
  for (const Fp8Recipe recipe : {Fp8Recipe::kBlock, Fp8Recipe::kMxfp8}) {
    Mlp mlp(recipe);
    mlp.fuse();
    EXPECT_EQ(mlp.report.fused, 3U) << numerics::name(recipe);
    EXPECT_EQ(mlp.report.paired, 1U) << numerics::name(recipe);
    for (const char* fused : {"rms_norm_quantize", "swiglu_quantize", "swiglu_grad_quantize"})
      EXPECT_EQ(mlp.count(fused), 1) << fused;
    for (const char* alone : {"rms_norm", "swiglu", "swiglu_grad"}) EXPECT_EQ(mlp.count(alone), 0) << alone;
  }
}

/// A scale of the tensor is fused where it comes from past steps; the largest magnitude is wanted first
/// otherwise.
TEST(FuseQuantize, ScalesOfTheTensor) {
  EXPECT_EQ(Mlp(Fp8Recipe::kDelayed).fuse().report.fused, 3U);
  EXPECT_EQ(Mlp(Fp8Recipe::kCurrent).fuse().report.fused, 0U);
  EXPECT_EQ(Mlp(Fp8Recipe::kNvfp4).fuse().report.fused, 0U);
}

TEST(FuseQuantize, ResultsStayWhatTheyWere) {
  for (const Fp8Recipe recipe :
       {Fp8Recipe::kDelayed, Fp8Recipe::kCurrent, Fp8Recipe::kBlock, Fp8Recipe::kMxfp8, Fp8Recipe::kNvfp4}) {
    Mlp plain(recipe), fused(recipe);
    EXPECT_EQ(fused.fuse().run(), plain.run()) << numerics::name(recipe);
  }
  for (const Fp8Recipe recipe : {Fp8Recipe::kBlock, Fp8Recipe::kMxfp8}) {
    Mlp plain(recipe, /*tokens=*/70), fused(recipe, /*tokens=*/70);
    EXPECT_EQ(fused.fuse().run(), plain.run()) << "blocks end with sequences, " << numerics::name(recipe);
    EXPECT_EQ(fused.report.fused, 3U);
  }
}

/// What another op or an outside holder reads stays.
TEST(FuseQuantize, LeavesWhatOthersRead) {
  Mlp mlp(Fp8Recipe::kMxfp8);
  ir::Builder b(mlp.graph, ops::find_op);
  for (const ir::OpId id : std::vector<ir::OpId>(mlp.graph.order()))
    if (mlp.graph.op(id).def->name == "swiglu") Mlp::assign(b, "kept", mlp.graph.op(id).outputs[0]);
  mlp.fuse();
  EXPECT_EQ(mlp.count("swiglu"), 1);
  EXPECT_EQ(mlp.report.fused, 2U);
  EXPECT_EQ(mlp.report.paired, 2U);
}

}  // namespace
}  // namespace plimsoll::passes
