// Adafactor's table and its states; torch_test.cpp has the steps.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "backends/reference/interpreter.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/tensor_rules.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

int64_t state_bytes(const Update& like, const ir::TensorType& type, bool moment) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", type, ir::StateClass::kParameter});
  Update update = like;
  update.parameter = "w";
  update.gradient = b.state({"g", type, ir::StateClass::kInput});
  EXPECT_TRUE(append_update(b, {update}, {"adafactor", {}, moment}).ok());
  int64_t bytes = 0;
  for (const auto& state : graph.states())
    if (state.state_class == ir::StateClass::kOptimizerState) bytes += state.type.bytes().count;
  return bytes;
}

/// q, k and v side by side are three matrices: a row a row, a column each.
TEST(AdafactorTest, ItsStatesAreAsLargeAsTheTheorySays) {
  const ir::TensorType matrix{ir::DType::kF32, {96, 40}}, vector{ir::DType::kF32, {96}};
  EXPECT_EQ(state_bytes({}, matrix, false), 4 * (96 + 40));
  EXPECT_EQ(state_bytes({.parameter = "", .gradient = {}, .parts = {64, 16, 16}}, matrix, false),
            4 * (96 + 3 * 40));
  EXPECT_EQ(state_bytes({.parameter = "", .gradient = {}, .kind = ir::ParameterKind::kVector}, vector, false),
            4 * 96);
  EXPECT_EQ(state_bytes({}, matrix, true), 4 * (96 + 40 + 96 * 40));
  const ir::TensorType filters{ir::DType::kF32, {8, 3, 5, 4}};
  EXPECT_EQ(
      state_bytes({.parameter = "", .gradient = {}, .kind = ir::ParameterKind::kFilters}, filters, false),
      4 * 8 * 4 * (3 + 5));
}

/// Twenty steps of a convolution [2, 2, 3, 2] whose tensor in files is [out, in, height, width].
std::vector<double> train_filters(const AdafactorHyper& adafactor) {
  const ir::TensorType type{ir::DType::kF32, {2, 2, 3, 2}};
  const auto in_storage = [](const auto& value) {
    std::vector<double> values;
    for (int o = 0; o < 2; ++o)
      for (int position = 0; position < 6; ++position)
        for (int i = 0; i < 2; ++i) values.push_back(value((o * 2 + i) * 6 + position));
    return values;
  };
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", type, ir::StateClass::kParameter});
  Update update{.parameter = "w", .gradient = b.state({"g", type, ir::StateClass::kInput})};
  update.kind = ir::ParameterKind::kFilters;
  EXPECT_TRUE(append_update(b, {update}, {"adafactor", {}, adafactor.beta1.has_value()}).ok());
  reference::Interpreter interpreter;
  for (const auto& state : graph.states()) interpreter.set(state.name, reference::constant(state.type, 0));
  interpreter.set("w", reference::tensor(type, in_storage([](int i) { return std::sin(3 * i); })));
  for (int step = 1; step <= 20; ++step) {
    const StepHyper hyper{.learning_rate = 0.1,
                          .weight_decay = 0.1,
                          .step = step,
                          .optimizer = "adafactor",
                          .adafactor = adafactor};
    const ir::TensorType table = graph.find_state(kGroupsState)->type;
    std::vector<float> fields(static_cast<size_t>(table.num_elements()));
    write_groups(hyper, {}, fields.data());
    interpreter.set(std::string(kGroupsState), reference::tensor(table, {fields.begin(), fields.end()}));
    interpreter.set("g", reference::tensor(type, in_storage([&](int i) { return std::sin(step + 2 * i); })));
    EXPECT_TRUE(interpreter.run(graph).ok());
  }
  return interpreter.find("w")->data;
}

// tests/interop/record_optimizers.py with transformers 5.23.
TEST(AdafactorTest, FactorsFiltersAsTransformersDoes) {
  const std::vector<double> plain = {
      -0.0645245686173, -0.739062786102, 0.116563208401,  0.690716803074,   -0.181756436825, -0.731413900852,
      0.3119379282,     0.808977246284,  -0.537750303745, -0.937428951263,  0.640019774437,  0.935450434685,
      -0.863457262516,  -0.446042984724, 0.782863497734,  0.31785428524,    -0.737123370171, -0.19053222239,
      0.813419759274,   0.215048477054,  -0.744081020355, -0.0798343792558, 0.632452726364,  -0.143429070711};
  const std::vector<double> with_moment = {
      -0.0506428666413, -0.764424264431,  0.17928609252,   0.767570316792,  -0.246625214815,
      -0.766153216362,  0.304543048143,   0.764331281185,  -0.46294888854,  -0.864039123058,
      0.589779615402,   0.923052608967,   -0.926696658134, -0.522674739361, 0.848815381527,
      0.352845430374,   -0.732648909092,  -0.149413973093, 0.739130556583,  0.1407700032,
      -0.693477153778,  -0.0659491866827, 0.660165905952,  -0.0789090245962};
  for (const auto& [beta1, expected] :
       {std::pair(std::optional<double>(), plain), std::pair(std::optional(0.9), with_moment)}) {
    AdafactorHyper adafactor;
    adafactor.scale_parameter = true;
    adafactor.beta1 = beta1;
    const std::vector<double> after = train_filters(adafactor);
    for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], expected[i], 1e-6) << i;
  }
}

TEST(AdafactorTest, TheFirstStepsSecondMomentIsItsOwn) {
  float table[2 * ops::kAdafactorFields];
  StepHyper hyper{.learning_rate = 0.5, .weight_decay = 0.25, .optimizer = "adafactor"};
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kAdafactorBeta2], 0.0F);
  EXPECT_EQ(table[ops::kAdafactorRate], 0.5F);
  EXPECT_EQ(table[ops::kAdafactorFields + ops::kAdafactorDecay], 0.0F);
  hyper.step = 400;
  hyper.adafactor.relative_step = true;
  write_groups(hyper, {}, table);
  EXPECT_EQ(table[ops::kAdafactorRate], 0.01F);
}

}  // namespace
}  // namespace plimsoll::optimizers
