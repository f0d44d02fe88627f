// Which copies of weights the programs of a step share, and that their results are those of programs that
// quantise for themselves.
#include "passes/training/fp8_weights.h"

#include <gtest/gtest.h>

#include <algorithm>

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

constexpr Fp8Recipe kRecipes[] = {Fp8Recipe::kDelayed, Fp8Recipe::kCurrent, Fp8Recipe::kBlock,
                                  Fp8Recipe::kMxfp8, Fp8Recipe::kNvfp4};

/// A linear layer between two norms, with the gradients of its input and its weight.
struct Layer {
  ir::Graph graph;
  Fp8WeightsReport report;

  Layer(Fp8Recipe recipe, WeightCopies copies) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c) {
      return b.state({name, {DType::kF32, shape}, c});
    };
    const ValueId x = state("x", {2, 16, 48}, StateClass::kInput);
    const ValueId w = state("w", {80, 48}, StateClass::kParameter);
    graph.declare_state({"random", {DType::kI32, {4}}, StateClass::kScalars});
    const ValueId y =
        b.op("linear", {x, w}, {{"transposed", false}, {"fp8", true}, {"precision", std::string("bf16")}});
    const ir::OpId last_forward = graph.order().back();
    const ValueId dy = state("dy", {2, 16, 80}, StateClass::kInput);
    const std::vector<ValueId> wrt = {x, w};
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    assign(after, "y", y);
    assign(after, "dx", derivative->cotangents[0]);
    assign(after, "dw", derivative->cotangents[1]);
    Fp8Settings settings{.enabled = true, .form = {.recipe = recipe}, .random_state = "random"};
    EXPECT_TRUE(fp8(graph, {.fp8 = settings, .last_forward_op = last_forward}).ok());
    auto shared = fp8_weights(graph, {.copies = copies});
    EXPECT_TRUE(shared.ok()) << shared.error().message();
    report = *shared;
    const Status valid = ir::verify(graph);
    EXPECT_TRUE(valid.ok()) << valid.error().message() << ir::print(graph);
  }
  static void assign(ir::Builder& b, const char* name, ValueId v) {
    b.graph().declare_state({name, b.type(v), StateClass::kOutput});
    b.assign(name, v);
  }

  /// Ops that quantise the weight.
  [[nodiscard]] int64_t num_quantised() const {
    return std::ranges::count_if(graph.order(), [&](ir::OpId id) { return quantises_weight(id); });
  }
  [[nodiscard]] bool quantises_weight(ir::OpId id) const {
    const ir::Op& op = graph.op(id);
    if (op.def->name != "quantize_operand") return false;
    const ir::Op& from = graph.op(graph.value(op.inputs[0]).producer);
    return from.attrs.find("name") != nullptr && from.attrs.str("name") == "w";
  }
  [[nodiscard]] int64_t num_states() const { return std::ranges::count_if(graph.states(), is_fp8_weight); }

  /// The program's results; states that it keeps stay in the interpreter.
  [[nodiscard]] std::vector<double> run(reference::Interpreter& interpreter) const {
    uint32_t seed = 1;
    for (const auto& state : graph.states()) {
      std::vector<double> data(static_cast<size_t>(state.type.num_elements()));
      for (double& value : data) {
        seed = seed * 1664525 + 1013904223;
        value = state.type.dtype == DType::kF32 ? static_cast<double>(seed >> 8) / 0x1p23 - 1 : 1;
      }
      if (!is_fp8_weight(state)) interpreter.set(state.name, reference::tensor(state.type, data));
    }
    EXPECT_TRUE(interpreter.run(graph).ok());
    std::vector<double> results;
    for (const char* name : {"y", "dx", "dw"})
      results.insert(results.end(), interpreter.find(name)->data.begin(), interpreter.find(name)->data.end());
    return results;
  }
};

/// One copy serves both products, but blocks of one row, which lie along what each product sums over.
TEST(Fp8Weights, OneCopyOfEachForm) {
  for (const Fp8Recipe recipe : kRecipes) {
    const int64_t forms = recipe == Fp8Recipe::kMxfp8 ? 2 : 1;
    const Layer own(recipe, WeightCopies::kOwn), kept(recipe, WeightCopies::kKeep),
        read(recipe, WeightCopies::kRead);
    EXPECT_EQ(own.num_quantised(), 2) << numerics::name(recipe);
    EXPECT_EQ(own.num_states(), 0) << numerics::name(recipe);
    EXPECT_EQ(kept.num_quantised(), forms) << numerics::name(recipe);
    EXPECT_EQ(read.num_quantised(), 0) << numerics::name(recipe);
    EXPECT_GE(kept.num_states(), 2 * forms) << numerics::name(recipe);
    EXPECT_EQ(kept.num_states(), read.num_states()) << numerics::name(recipe);
    ASSERT_EQ(kept.report.copies.size(), static_cast<size_t>(forms));
    EXPECT_EQ(kept.report.copies[0].product, "weight");
    EXPECT_NE(kept.report.copies[0].note.find("once a step"), std::string::npos);
  }
}

/// So that one op may make both.
TEST(Fp8Weights, CopiesOfOneWeightStandTogether) {
  const Layer kept(Fp8Recipe::kMxfp8, WeightCopies::kKeep);
  std::vector<size_t> places;
  for (size_t i = 0; i < kept.graph.order().size(); ++i)
    if (kept.quantises_weight(kept.graph.order()[i])) places.push_back(i);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[1], places[0] + 1);
}

/// The first micro-batch's program keeps what the next one's reads.
TEST(Fp8Weights, ResultsAreThoseOfOwnCopies) {
  for (const Fp8Recipe recipe : kRecipes) {
    reference::Interpreter alone, session;
    const std::vector<double> own = Layer(recipe, WeightCopies::kOwn).run(alone);
    EXPECT_EQ(Layer(recipe, WeightCopies::kKeep).run(session), own) << numerics::name(recipe);
    EXPECT_EQ(Layer(recipe, WeightCopies::kRead).run(session), own) << numerics::name(recipe);
  }
}

}  // namespace
}  // namespace plimsoll::passes
