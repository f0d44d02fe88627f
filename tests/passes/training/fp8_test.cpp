// What the pass makes of linear maps, forward and backward, by recipe.
#include "passes/training/fp8.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/fp8_scaling.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/fusion/dead_code.h"
#include "passes/training/autodiff.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;
using numerics::Fp8Recipe;

/// Two marked maps with a silu between, and the gradients of both weights.
struct Maps {
  ir::Graph graph;
  ir::OpId last_forward;
  Fp8Report report;

  explicit Maps(int64_t tokens = 32, bool has_backward = true) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c) {
      return b.state({name, {DType::kF32, shape}, c});
    };
    const ValueId x = state("x", {2, tokens, 48}, StateClass::kInput);
    graph.declare_state({"random", {DType::kI32, {4}}, StateClass::kScalars});
    const ValueId up = state("up", {80, 48}, StateClass::kParameter);
    const ValueId down = state("down", {48, 80}, StateClass::kParameter);
    const auto linear = [&](ValueId v, ValueId w) {
      return b.op("linear", {v, w},
                  {{"transposed", false}, {"fp8", true}, {"precision", std::string("bf16")}});
    };
    const ValueId y = linear(ops::silu(b, linear(x, up)), down);
    last_forward = graph.order().back();
    if (!has_backward) {
      assign(b, "y", y);
      return;
    }
    const ValueId dy = state("dy", {2, tokens, 48}, StateClass::kInput);
    const std::vector<ValueId> wrt = {up, down};
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    assign(after, "y", y);
    assign(after, "dup", derivative->cotangents[0]);
    assign(after, "ddown", derivative->cotangents[1]);
  }
  static void assign(ir::Builder& b, const char* name, ValueId v) {
    b.graph().declare_state({name, b.type(v), StateClass::kOutput});
    b.assign(name, v);
  }

  void run(Fp8Settings settings, bool has_backward = true) {
    settings.random_state = "random";
    auto result = fp8(graph, {.fp8 = settings, .last_forward_op = has_backward ? last_forward : ir::OpId{}});
    ASSERT_TRUE(result.ok()) << result.error().message();
    const Status valid = ir::verify(graph);
    ASSERT_TRUE(valid.ok()) << valid.error().message() << ir::print(graph);
    report = *result;
  }
  [[nodiscard]] int64_t count(std::string_view op) const {
    return std::count_if(graph.order().begin(), graph.order().end(),
                         [&](ir::OpId id) { return graph.op(id).def->name == op; });
  }
  [[nodiscard]] int64_t quantised(const char* attr) const {
    return std::count_if(graph.order().begin(), graph.order().end(), [&](ir::OpId id) {
      const ir::Op& op = graph.op(id);
      return op.def->name == "quantize_operand" && op.attrs.flag(attr);
    });
  }
};

Fp8Settings recipe(Fp8Recipe r) { return {.enabled = true, .form = {.recipe = r}}; }

/// A marked map whose weight is two parameters, as q and k apart, and their gradients.
struct Parts {
  ir::Graph graph;
  Fp8Report report;

  explicit Parts(bool has_dx) {
    ir::Builder b(graph, ops::find_op);
    const auto state = [&](const char* name, Shape shape, StateClass c) {
      return b.state({name, {DType::kF32, shape}, c});
    };
    const ValueId x = state("x", {2, 32, 48}, StateClass::kInput);
    const ValueId q = state("q", {64, 48}, StateClass::kParameter);
    const ValueId k = state("k", {16, 48}, StateClass::kParameter);
    const ValueId y = b.op("linear", {x, ops::concat_rows(b, {q, k})},
                           {{"transposed", false}, {"fp8", true}, {"precision", std::string("bf16")}});
    const ir::OpId last_forward = graph.order().back();
    const ValueId dy = state("dy", {2, 32, 80}, StateClass::kInput);
    std::vector<ValueId> wrt = {q, k};
    if (has_dx) wrt.push_back(x);
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    Maps::assign(after, "y", y);
    for (size_t i = 0; i < wrt.size(); ++i)
      Maps::assign(after, ("d" + std::to_string(i)).c_str(), derivative->cotangents[i]);
    EXPECT_TRUE(dead_code(graph, {}).ok());
    auto result = fp8(graph, {.fp8 = {.enabled = true, .form = {.recipe = Fp8Recipe::kDelayed}},
                              .last_forward_op = last_forward});
    EXPECT_TRUE(result.ok()) << result.error().message();
    EXPECT_TRUE(ir::verify(graph)) << ir::print(graph);
    if (result) report = *result;
  }
  /// The slots that each op of that name has.
  [[nodiscard]] std::vector<std::vector<int64_t>> recorded() const {
    std::vector<std::vector<int64_t>> slots;
    for (const ir::OpId id : graph.order())
      if (graph.op(id).def->name == "record_amax") slots.push_back(graph.op(id).attrs.ints("slots"));
    return slots;
  }
};

/// Parts of a gradient have the slot of the whole, of which there are three a product, whatever lies apart.
TEST(Fp8, DelayedScalesOfAGradientAreThoseOfItsParts) {
  using Slots = std::vector<std::vector<int64_t>>;
  const Parts whole(/*has_dx=*/true);
  EXPECT_EQ(whole.report.slots, 3);
  EXPECT_EQ(whole.recorded(), (Slots{{0, 1, 2}})) << "the whole's magnitude is the largest of the parts'";
  const Parts parts(/*has_dx=*/false);
  EXPECT_EQ(parts.report.slots, 3);
  EXPECT_EQ(parts.recorded(), (Slots{{0, 1, 2}, {2}})) << "an op takes one magnitude a slot";
}

/// y twice, dw twice, dx once: x needs no gradient. Inputs and gradients have one copy for both products,
/// weights one for each.
TEST(Fp8, OneScaleForTheTensor) {
  Maps maps;
  maps.run(recipe(Fp8Recipe::kCurrent));
  EXPECT_EQ(maps.count("linear") + maps.count("linear_dw"), 0);
  EXPECT_EQ(maps.count("scaled_matmul"), 5);
  EXPECT_EQ(maps.count("quantize_operand"), 2 + 2 + 3);  // inputs, gradients, weights
  ASSERT_EQ(maps.report.products.size(), 5U);
  EXPECT_EQ(maps.report.products[0].product, "y");
  EXPECT_EQ(maps.report.products[2].left, "e5m2");
  EXPECT_EQ(maps.report.slots, 0);
}

/// A second copy along the tokens for the weights' gradients.
TEST(Fp8, BlocksRunAlongWhatIsSummed) {
  Maps maps;
  maps.run(recipe(Fp8Recipe::kMxfp8));
  EXPECT_EQ(maps.count("scaled_matmul"), 5);
  EXPECT_EQ(maps.count("quantize_operand"), 2 * 2 + 1 + 2 + 3);  // dy of the first map has no dx
  EXPECT_EQ(maps.quantised("transposed"), 2 + 2 + 1);
  Maps tiles(/*tokens=*/128);
  tiles.run(recipe(Fp8Recipe::kBlock));
  EXPECT_EQ(tiles.quantised("transposed"), 2 + 2);  // a tile of a weight lies both ways
  EXPECT_NE(tiles.report.products[0].note.find("last block"), std::string::npos);
}

/// Blocks along tokens end with each sequence, so that they do not know what else is in the batch.
TEST(Fp8, BlocksEndWithSequences) {
  for (const auto& [r, block] :
       {std::pair<Fp8Recipe, int64_t>{Fp8Recipe::kBlock, 128}, {Fp8Recipe::kMxfp8, 32}})
    for (const int64_t tokens : {70, 128}) {
      Maps maps(tokens);
      maps.run(recipe(r));
      const bool fills = tokens % block != 0;
      EXPECT_EQ(maps.quantised("by_sequence"), fills ? 4 : 0) << "inputs and gradients, no weights";
      const auto& told = maps.report.products.back();
      EXPECT_EQ(told.product, "dw");
      EXPECT_EQ(told.note.find("in each sequence has") != std::string::npos, fills) << told.note;
      for (const ir::OpId id : maps.graph.order()) {
        const ir::Op& op = maps.graph.op(id);
        if (op.def->name != "scaled_matmul" || op.attrs.find("segment") == nullptr) continue;
        EXPECT_EQ(op.attrs.i64("segment"), (tokens + block - 1) / block * block);
        EXPECT_EQ(op.attrs.i64("inner"), 2 * op.attrs.i64("segment"));
        EXPECT_EQ(op.attrs.find("terms") != nullptr, fills);
      }
    }
}

TEST(Fp8, Nvfp4TransformsAndDrawsForGradients) {
  Maps maps;
  maps.run(recipe(Fp8Recipe::kNvfp4));
  EXPECT_EQ(maps.quantised("hadamard"), 4);
  EXPECT_EQ(maps.quantised("stochastic"), 3);
  Maps plain;
  plain.run({.enabled = true, .form = {.recipe = Fp8Recipe::kNvfp4, .hadamard = false, .stochastic = false}});
  EXPECT_EQ(plain.quantised("hadamard") + plain.quantised("stochastic"), 0);
}

TEST(Fp8, WhatBlocksCannotCutStays) {
  Maps maps(/*tokens=*/20);
  maps.run(recipe(Fp8Recipe::kNvfp4));
  EXPECT_EQ(maps.count("linear_dw"), 2);
  EXPECT_EQ(maps.count("scaled_matmul"), 3);
  const auto& told = maps.report.products.back();
  EXPECT_EQ(told.product, "dw");
  EXPECT_EQ(told.left, "");
  EXPECT_NE(told.note.find("bf16"), std::string::npos);
}

/// Where zeros would be half of a copy, it is no smaller than the numbers in bf16.
TEST(Fp8, ShortSequencesHaveTheirWeightsGradientsInBf16) {
  for (const auto& [r, tokens] :
       {std::pair<Fp8Recipe, int64_t>{Fp8Recipe::kBlock, 64}, {Fp8Recipe::kMxfp8, 16}}) {
    Maps few(tokens), enough(tokens + 1);
    few.run(recipe(r));
    enough.run(recipe(r));
    EXPECT_EQ(few.count("linear_dw"), 2);
    EXPECT_EQ(few.quantised("by_sequence"), 0);
    EXPECT_NE(few.report.products.back().note.find("stays in bf16"), std::string::npos);
    EXPECT_EQ(enough.count("linear_dw"), 0);
  }
}

TEST(Fp8, DelayedRecordsEachOperandOnce) {
  Maps maps;
  maps.run(recipe(Fp8Recipe::kDelayed));
  EXPECT_EQ(maps.report.slots, ops::fp8_slots(2));
  ASSERT_EQ(maps.count("record_amax"), 1);
  EXPECT_EQ(maps.count("next_fp8_scales"), 0);
  for (const ir::OpId id : maps.graph.order()) {
    if (maps.graph.op(id).def->name != "record_amax") continue;
    EXPECT_EQ(maps.graph.op(id).attrs.ints("slots"), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
  }
  EXPECT_EQ(maps.graph.find_state(ops::kFp8HistoryState)->type.shape, (Shape{1024, 6}));
  Maps step;
  Fp8Settings settings = recipe(Fp8Recipe::kDelayed);
  settings.ends_step = true;
  step.run(settings);
  EXPECT_EQ(step.count("next_fp8_scales"), 1);
  Maps eval(32, /*has_backward=*/false);
  eval.run(recipe(Fp8Recipe::kDelayed), /*has_backward=*/false);
  EXPECT_EQ(eval.count("record_amax"), 0) << "evaluation records nothing";
  EXPECT_EQ(eval.report.slots, maps.report.slots);
}

}  // namespace
}  // namespace plimsoll::passes
