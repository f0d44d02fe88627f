// Twenty steps of every optimizer as programs of the interpreter, against torch.optim, or the published rule,
// in float64 (tests/interop/record_optimizers.py prints the rows): a matrix that decays and a vector that
// does not.
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
     {0.791737500405, -1.94709819303, 0.609932676343, 2.7119214014, 1.02980879134, -2.14052784292,
      0.689273939541, 3.06050417006}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.1, .optimizer = "adamw"},
     0.5,
     {0.792849190153, -1.94596217342, 0.609561320578, 2.71277394063, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.0, .optimizer = "adam"},
     0.0,
     {0.823076132964, -2.0190089189, 0.630913709882, 2.81394382436, 1.02980879134, -2.14052784292,
      0.689273939541, 3.06050417006}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.1, .optimizer = "adam_l2"},
     0.5,
     {0.75427787583, -1.69277024589, 0.561766557612, 2.67673786496, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
    {{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 0.001, .weight_decay = 0.1, .optimizer = "adamw_8bit"},
     0.0,
     {0.791737500405, -1.94709819303, 0.609932676343, 2.7119214014, 1.02980879134, -2.14052784292,
      0.689273939541, 3.06050417006}},
    {{.weight_decay = 0.0, .optimizer = "sgd"},
     0.0,
     {0.892740579273, -1.96379207326, 0.577123792386, 2.89960242881, 0.978462262192, -2.08695234062,
      0.593907620771, 3.008793622}},
    {{.weight_decay = 0.1, .optimizer = "sgd"},
     0.5,
     {0.938039634845, -1.92063963849, 0.501738144617, 2.86903976112, 0.995033061869, -2.02243377057,
      0.523638423441, 3.0027596603}},
    {{.weight_decay = 0.0, .momentum = 0.9, .optimizer = "sgd"},
     0.0,
     {0.737906359257, -1.85804968157, 0.643949288819, 2.73824159924, 0.890978521964, -2.17383585699,
      0.753703961964, 2.96267965461}},
    {{.weight_decay = 0.1, .momentum = 0.9, .optimizer = "sgd"},
     0.5,
     {0.811324713323, -1.71157177106, 0.469692621469, 2.55546814189, 0.973848247735, -2.04486192207,
      0.563490046171, 2.99201955834}},
    {{.weight_decay = 0.0, .momentum = 0.9, .dampening = 0.4, .optimizer = "sgd"},
     0.0,
     {0.75809745425, -1.92902553928, 0.682830951142, 2.7768564954, 0.96269444622, -2.20382434637,
      0.706947267687, 3.03158344481}},
    {{.weight_decay = 0.1, .momentum = 0.9, .dampening = 0.4, .optimizer = "sgd"},
     0.5,
     {0.853736271628, -1.80821352243, 0.50107227933, 2.68315155859, 0.991595502373, -2.05271748311,
      0.552280925284, 3.00920439978}},
    {{.weight_decay = 0.0, .momentum = 0.9, .nesterov = true, .optimizer = "sgd"},
     0.0,
     {0.656856302603, -1.83603678667, 0.706678152323, 2.66401986813, 0.88034293196, -2.24340461191,
      0.822241186538, 2.97520531115}},
    {{.weight_decay = 0.1, .momentum = 0.9, .nesterov = true, .optimizer = "sgd"},
     0.5,
     {0.774148319125, -1.66750863581, 0.4734671109, 2.48011424541, 0.97149648483, -2.06280950044,
      0.580779464995, 2.99557726281}},
    {{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.0, .optimizer = "lion"},
     0.0,
     {0.841283669461, -2.02400132332, 0.60732744165, 2.83180998525, 1.00581950514, -2.09066077498,
      0.652805399365, 2.98010521943}},
    {{.beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .optimizer = "lion"},
     0.5,
     {0.809484133001, -1.95220080378, 0.586905329993, 2.72930798842, 1.00581950514, -2.09066077498,
      0.652805399365, 2.98010521943}},
    {{.weight_decay = 0.1, .optimizer = "adafactor"},
     0.0,
     {0.82891704142, -1.89758860101, 0.545441945244, 2.73306271278, 1.02011393339, -2.08481305192,
      0.64295803713, 3.02670145688}},
    {{.weight_decay = 0.1, .optimizer = "adafactor", .adafactor = {.scale_parameter = true}},
     0.5,
     {0.686887980874, -1.82667321939, 0.595845557773, 2.52126678019, 1.01964220631, -2.15835410693,
      0.781393679476, 3.03725273223}},
    {{.weight_decay = 0.1,
      .optimizer = "adafactor",
      .adafactor = {.scale_parameter = true, .eps = {0.5, 2.5}}},
     0.5,
     {0.826926162013, -1.7990766321, 0.518276868879, 2.65881782862, 0.983305786151, -2.07428991563,
      0.581175036789, 3.00979060632}},
    {{.weight_decay = 0.1,
      .optimizer = "adafactor",
      .adafactor = {.scale_parameter = true, .relative_step = true}},
     0.5,
     {0.938663401912, -1.93273286001, 0.503180685688, 2.86540945776, 1.01070465334, -2.02247218506,
      0.521473002088, 3.01270031202}},
    {{.weight_decay = 0.1,
      .optimizer = "adafactor",
      .adafactor = {.relative_step = true, .warmup_init = true}},
     0.5,
     {0.999975124292, -1.99998200419, 0.500012505034, 2.99994062505, 1.00002518175, -2.00002024133,
      0.499993026875, 3.00002697567}},
    {{.weight_decay = 0.1,
      .optimizer = "adafactor",
      .adafactor = {.clip_threshold = 0.5, .decay_rate = -0.5, .beta1 = 0.9}},
     0.5,
     {0.901906213693, -1.91353721825, 0.507530056975, 2.8199127445, 1.00840309322, -2.03475997461,
      0.561857986281, 3.00904556333}},
    {{.beta1 = 0.8,
      .beta2 = 0.95,
      .epsilon = 0.001,
      .weight_decay = 0.1,
      .optimizer = "muon",
      .muon = {.adjust_lr_fn = "original"}},
     0.5,
     {0.826542316934, -1.96679149956, 0.47838759079, 2.74443942239, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
    {{.beta1 = 0.8,
      .beta2 = 0.95,
      .epsilon = 0.001,
      .weight_decay = 0.1,
      .optimizer = "muon",
      .muon = {.adjust_lr_fn = "match_rms_adamw"}},
     0.5,
     {0.925540435384, -1.93981057158, 0.481187926037, 2.85152158391, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
    {{.beta1 = 0.8,
      .beta2 = 0.95,
      .epsilon = 0.001,
      .weight_decay = 0.1,
      .optimizer = "muon",
      .muon = {.momentum = 0.8, .nesterov = false, .adjust_lr_fn = "original"}},
     0.5,
     {0.828404381982, -1.97916611511, 0.486533667924, 2.76074990097, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
    {{.beta1 = 0.8,
      .beta2 = 0.95,
      .epsilon = 0.001,
      .weight_decay = 0.1,
      .optimizer = "muon",
      .muon = {.ns_steps = 3}},
     0.5,
     {0.830964097131, -1.9739679233, 0.472714349538, 2.74999513094, 1.03034986052, -2.13983705424,
      0.688540461922, 3.06236017875}},
};

constexpr int kSteps = 20;
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
    updates.push_back({name,
                       b.state({"grad." + name, types[p], ir::StateClass::kInput}),
                       row_of(0, p == 0),
                       {},
                       true,
                       p == 0 ? ir::ParameterKind::kLinear : ir::ParameterKind::kVector});
  }
  OptimizerOptions options{
      std::string(row.hyper.optimizer), {}, row.hyper.momentum > 0 || row.hyper.adafactor.beta1};
  if (row.clip > 0) options.max_grad_norm = row.clip;
  options.muon_ns_steps = row.hyper.muon.ns_steps;
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

TEST(TorchTest, TwentyStepsEndWhereTorchDoes) {
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
