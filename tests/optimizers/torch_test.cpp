// Five steps of every optimizer as programs of the interpreter, against torch.optim in float64
// (tests/interop/record_optimizers.py prints the rows): a matrix that decays and a vector that does not.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backends/reference/interpreter.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {
namespace {

struct Row {
  StepHyper hyper;
  double clip;
  std::vector<double> after;  ///< the matrix, then the vector
};

// torch 2.15.
const std::vector<Row> kRows = {
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.1, .optimizer = "adamw"},
     0.0,
     {0.802957970206, -1.9686012641, 0.613880788219, 2.74724854373, 1.02515117411, -2.13687988058,
      0.690520420226, 3.05539947293}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.1, .optimizer = "adamw"},
     0.5,
     {0.804208545543, -1.96746294005, 0.613546610707, 2.74824295717, 1.02570628985, -2.13620360232,
      0.689669236588, 3.05729796152}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.0, .optimizer = "adam"},
     0.0,
     {0.8238075064, -2.01474513371, 0.62680262353, 2.81336689899, 1.02515117411, -2.13687988058,
      0.690520420226, 3.05539947293}},
    {{.weight_decay = 0.0, .optimizer = "sgd"},
     0.0,
     {0.903782577785, -1.95046207807, 0.554987323215, 2.90469647686, 0.96269107175, -2.06567649837,
      0.591971062315, 2.9891295651}},
    {{.weight_decay = 0.1, .optimizer = "sgd"},
     0.5,
     {0.953306609745, -1.94272829725, 0.502753848393, 2.90836546008, 0.991087747284, -2.01703803651,
      0.523092902704, 2.99781795969}},
    {{.weight_decay = 0.0, .momentum = 0.9, .optimizer = "sgd"},
     0.0,
     {0.766030424341, -1.87384305338, 0.628969947167, 2.76650218233, 0.903269087169, -2.15558790577,
      0.726225742417, 2.96730165167}},
    {{.weight_decay = 0.1, .momentum = 0.9, .optimizer = "sgd"},
     0.5,
     {0.896965063427, -1.87969637777, 0.510292080803, 2.80758737393, 0.976823052063, -2.04014599321,
      0.556590204089, 2.99304632439}},
    {{.weight_decay = 0.0, .momentum = 0.9, .dampening = 0.4, .optimizer = "sgd"},
     0.0,
     {0.791174014465, -1.93578436414, 0.655379718092, 2.80646280784, 0.964688773626, -2.17382595601,
      0.679985469784, 3.02402518826}},
    {{.weight_decay = 0.1, .momentum = 0.9, .dampening = 0.4, .optimizer = "sgd"},
     0.5,
     {0.912226126377, -1.91441319187, 0.522315014208, 2.84615544409, 0.991985669064, -2.0449494965,
      0.54542551248, 3.00714212986}},
    {{.weight_decay = 0.0, .momentum = 0.9, .nesterov = true, .optimizer = "sgd"},
     0.0,
     {0.693209959692, -1.83692082611, 0.671060275666, 2.69454844096, 0.875633250202, -2.20570561357,
      0.79557423049, 2.9597010516}},
    {{.weight_decay = 0.1, .momentum = 0.9, .nesterov = true, .optimizer = "sgd"},
     0.5,
     {0.862063180521, -1.83559793079, 0.511398033642, 2.73755657894, 0.97022849414, -2.0531694304,
      0.574024086383, 2.99155965165}},
};

constexpr int kSteps = 5;
const std::vector<double> kStart = {1.0, -2.0, 0.5, 3.0};

/// The gradient of parameter `p` at a step, as record_optimizers.py has it.
std::vector<double> gradient(int p, int step) {
  std::vector<double> values;
  for (int i = 0; i < 4; ++i) values.push_back(std::sin(step + 2 * i + 5 * p));
  return values;
}

/// Parameters after kSteps steps of the one program; its states start at zero.
std::vector<double> train(const Row& row) {
  const ir::TensorType types[] = {{ir::DType::kF32, {2, 2}}, {ir::DType::kF32, {4}}};
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  std::vector<Update> updates;
  for (const int p : {0, 1}) {
    const std::string name = p == 0 ? "matrix" : "vector";
    b.state({name, types[p], ir::StateClass::kParameter});
    updates.push_back({name, b.state({"grad." + name, types[p], ir::StateClass::kInput}), row_of(0, p == 0)});
  }
  OptimizerOptions options{std::string(row.hyper.optimizer), {}, row.hyper.momentum > 0};
  if (row.clip > 0) options.max_grad_norm = row.clip;
  EXPECT_TRUE(append_update(b, updates, options).ok());
  reference::Interpreter interpreter;
  for (const auto& state : graph.states()) interpreter.set(state.name, reference::constant(state.type, 0));
  for (const int p : {0, 1})
    interpreter.set(updates[static_cast<size_t>(p)].parameter, reference::tensor(types[p], kStart));
  for (int step = 1; step <= kSteps; ++step) {
    StepHyper hyper = row.hyper;
    hyper.learning_rate = 0.1 / step;
    hyper.step = step;
    const ir::TensorType table = graph.find_state(kGroupsState)->type;
    std::vector<float> fields(static_cast<size_t>(table.num_elements()));
    write_groups(hyper, {}, fields.data());
    interpreter.set(std::string(kGroupsState), reference::tensor(table, {fields.begin(), fields.end()}));
    for (const int p : {0, 1})
      interpreter.set("grad." + updates[static_cast<size_t>(p)].parameter,
                      reference::tensor(types[p], gradient(p, step)));
    EXPECT_TRUE(interpreter.run(graph).ok());
  }
  std::vector<double> after = interpreter.find("matrix")->data;
  const auto& vector = interpreter.find("vector")->data;
  after.insert(after.end(), vector.begin(), vector.end());
  return after;
}

TEST(TorchTest, FiveStepsEndWhereTorchDoes) {
  for (const Row& row : kRows) {
    const std::vector<double> after = train(row);
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(after[i], row.after[i], 1e-6)
          << row.hyper.optimizer << " momentum " << row.hyper.momentum << " dampening " << row.hyper.dampening
          << " nesterov " << row.hyper.nesterov << " clip " << row.clip << " element " << i;
  }
}

TEST(TorchTest, EveryOptimizerHasARow) {
  std::set<std::string_view> recorded;
  for (const Row& row : kRows) recorded.insert(row.hyper.optimizer);
  for (const std::string_view name : optimizer_names()) EXPECT_TRUE(recorded.contains(name)) << name;
}

}  // namespace
}  // namespace plimsoll::optimizers
