// Twenty steps of adamw_8bit against bitsandbytes' AdamW8bit (tests/interop/record_8bit.py), and its states.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "backends/reference/interpreter.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "optimizers/optimizer.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

constexpr int64_t kSize = 4100;

std::vector<double> values_of(const std::function<double(int)>& value) {
  std::vector<double> values;
  for (int i = 0; i < kSize; ++i) values.push_back(static_cast<double>(static_cast<float>(value(i))));
  return values;
}

/// sum (i + 1) * codes[i] modulo 2^32.
uint32_t mark(const std::vector<double>& codes) {
  uint32_t total = 0;
  for (uint32_t i = 0; i < codes.size(); ++i) total += (i + 1) * static_cast<uint32_t>(codes[i]);
  return total;
}

class Adamw8bit : public testing::Test {
 protected:
  Adamw8bit() {
    b_.state({"w", kType, ir::StateClass::kParameter});
    const Update update{"w", b_.state({"grad", kType, ir::StateClass::kInput})};
    EXPECT_TRUE(append_update(b_, {update}, {"adamw_8bit", std::nullopt}).ok());
    for (const auto& state : graph_.states())
      interpreter_.set(state.name, reference::constant(state.type, 0));
    interpreter_.set("w", reference::tensor(kType, values_of([](int i) { return std::sin(0.37 * i); })));
  }
  void step(int step) {
    const StepHyper hyper{.learning_rate = 0.1 / step,
                          .beta1 = 0.9,
                          .beta2 = 0.99,
                          .epsilon = 1e-6,
                          .weight_decay = 0.1,
                          .step = step,
                          .optimizer = "adamw_8bit"};
    const ir::TensorType table = graph_.find_state(kGroupsState)->type;
    std::vector<float> fields(static_cast<size_t>(table.num_elements()));
    write_groups(hyper, {}, fields.data());
    interpreter_.set(std::string(kGroupsState), reference::tensor(table, {fields.begin(), fields.end()}));
    interpreter_.set("grad", reference::tensor(kType, values_of([&](int i) {
                                                 return std::cos(1.3 * i + 0.7 * step) * (1 + i % 7) / 8;
                                               })));
    EXPECT_TRUE(interpreter_.run(graph_).ok());
  }
  [[nodiscard]] const std::vector<double>& state(const std::string& name) {
    return interpreter_.find(name)->data;
  }

  const ir::TensorType kType{ir::DType::kF32, {kSize}};
  ir::Graph graph_;
  ir::Builder b_{graph_, ops::find_op};
  reference::Interpreter interpreter_;
};

TEST_F(Adamw8bit, TwentyStepsGiveTheCodesOfBitsandbytes) {  // 0.50.2
  struct Marks {
    int step;
    uint32_t m, v;
  };
  int at = 1;
  for (const Marks& marks : {Marks{1, 1064055186, 981848564}, Marks{2, 1065621772, 1091051373},
                             Marks{20, 1064457284, 1324014076}}) {
    for (; at <= marks.step; ++at) step(at);
    EXPECT_EQ(mark(state("adamw_8bit.m.w")), marks.m) << marks.step;
    EXPECT_EQ(mark(state("adamw_8bit.v.w")), marks.v) << marks.step;
  }
  const double parameters[] = {-0.108650669, 0.624918699,  0.731252789, 0.0858825222, -0.792139351,
                               -1.18553126,  -0.551208973, 0.393989146, 1.05620492};
  for (size_t i = 0; i < std::size(parameters); ++i)
    EXPECT_NEAR(state("w")[512 * i], parameters[i], 1e-6 * std::abs(parameters[i]) + 1e-7);
  EXPECT_NEAR(state("adamw_8bit.m_absmax.w")[1], 0.134145036, 1e-7);
  EXPECT_NEAR(state("adamw_8bit.v_absmax.w")[1], 0.0750295594, 1e-7);
}

/// Two bytes an element and eight a block of 256; below 4,096 elements two f32 an element.
TEST_F(Adamw8bit, ItsStatesAreAsLargeAsTheTheorySays) {
  int64_t bytes = 0;
  for (const auto& state : graph_.states())
    if (state.state_class == ir::StateClass::kOptimizerState) bytes += state.type.bytes().count;
  EXPECT_EQ(bytes, 2 * kSize + 8 * 17);
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType small{ir::DType::kF32, {4095}};
  b.state({"w", small, ir::StateClass::kParameter});
  ASSERT_TRUE(append_update(b, {{"w", b.state({"g", small, ir::StateClass::kInput})}}, {"adamw_8bit"}).ok());
  EXPECT_EQ(graph.find_state("adamw.m.w")->type, small);
  EXPECT_EQ(graph.find_state("adamw_8bit.m.w"), nullptr);
}

/// A block is of one tensor, and a tensor of fewer than 4,096 elements keeps 32 bits whatever lies beside it.
TEST_F(Adamw8bit, TensorsShareAStorageWhereNoBlockIsShared) {
  const auto together = [](const std::vector<ir::Shape>& shapes) {
    return find_optimizer("adamw_8bit")->lie_together(shapes);
  };
  EXPECT_TRUE(together({{64, 64}, {128, 64}}));
  EXPECT_TRUE(together({{64, 64}, {65, 65}})) << "the last block may be shorter";
  EXPECT_FALSE(together({{65, 65}, {64, 64}})) << "the second tensor would begin within a block";
  EXPECT_TRUE(together({{32, 64}, {8, 8}})) << "small even side by side";
  EXPECT_FALSE(together({{32, 64}, {63, 65}})) << "each is small, both together are not";
  EXPECT_FALSE(together({{64, 64}, {32, 64}})) << "the second is small";
  EXPECT_FALSE(together({{32, 64}, {64, 64}}));
  EXPECT_TRUE(together({{65, 65}}));
  EXPECT_EQ(find_optimizer("adamw")->lie_together, nullptr);
}

}  // namespace
}  // namespace plimsoll::optimizers
