// Sessions on the CPU.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "ir/network_queue.h"
#include "ops/ops.h"
#include "runtime/flipping_device.h"
#include "runtime/session_testing.h"

namespace plimsoll::runtime {
namespace {

using session_testing::plan_program;
using session_testing::read_state;
using session_testing::write_state;

using ir::DType;
using ir::StateClass;
using ir::ValueId;

ir::StateDecl decl(const std::string& name, ir::Shape shape, StateClass c = StateClass::kInput) {
  return {name, {DType::kF32, shape}, c};
}

passes::Program plan(ir::Graph graph, const Device& device) {
  auto program = session_testing::plan_program(std::move(graph), device.target());
  EXPECT_TRUE(program.ok());
  return std::move(*program);
}

/// y = silu(x · w) + x, then y over x: an arena value, a workspace, an assignment in place.
ir::Graph small_program() {
  ir::Graph graph;
  graph.name = "small";
  ir::Builder b(graph, ops::find_op);
  const ValueId x = b.state(decl("x", {3, 8})), w = b.state(decl("w", {8, 8}, StateClass::kParameter));
  const ValueId y = ops::add(b, ops::silu(b, ops::linear(b, x, w, {})), x);
  graph.declare_state(decl("y", {3, 8}, StateClass::kOutput));
  b.assign("y", y);
  EXPECT_TRUE(b.status().ok());
  return graph;
}

void fill(Session& session, std::string_view state) {
  std::vector<float> values(static_cast<size_t>(session.type(state).num_elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(3 * i + 1));
  session_testing::write_state(session, state, values);
}

std::vector<float> run_small(int threads, const SessionOptions& options) {
  cpu::CpuDevice device(threads);
  std::vector<passes::Program> programs;
  programs.push_back(plan(small_program(), device));
  auto session = Session::create(device, *passes::plan_session(std::move(programs)), options);
  EXPECT_TRUE(session.ok());
  fill(**session, "x");
  fill(**session, "w");
  EXPECT_TRUE((*session)->run(0));
  return read_state<float>(**session, "y");
}

TEST(SessionTest, RunsAProgramAndKeepsItsBitsUnderPoisonAndThreads) {
  const std::vector<float> plain = run_small(1, {});
  double sum = 0;
  for (int64_t k = 0; k < 8; ++k)
    sum += std::sin(3.0 * static_cast<double>(k) + 1) * std::sin(3.0 * static_cast<double>(k) + 1);
  EXPECT_NEAR(plain[0], sum / (1 + std::exp(-sum)) + std::sin(1.0), 1e-5);
  EXPECT_EQ(run_small(3, {}), plain);
  EXPECT_EQ(run_small(2, {.poison = true}), plain);
}

TEST(SessionTest, PoisonShowsAReadOfDeadMemory) {
  cpu::CpuDevice device(1);
  passes::Program program = plan(small_program(), device);
  // A wrong plan: every arena value dies where it is born.
  for (auto& s : program.binding.storages)
    if (s.state < 0) s.last = s.first;
  std::vector<passes::Program> programs;
  programs.push_back(std::move(program));
  auto session = Session::create(device, *passes::plan_session(std::move(programs)), {.poison = true});
  ASSERT_TRUE(session.ok());
  fill(**session, "x");
  fill(**session, "w");
  ASSERT_TRUE((*session)->run(0));
  EXPECT_TRUE(std::isnan(read_state<float>(**session, "y")[0]));
}

TEST(SessionTest, ProgramsShareStatesByName) {
  cpu::CpuDevice device(1);
  std::vector<passes::Program> programs;
  programs.push_back(plan(small_program(), device));
  ir::Graph second;
  ir::Builder b(second, ops::find_op);
  const ValueId y = b.state(decl("y", {3, 8}, StateClass::kOutput));
  b.assign("y", ops::add(b, y, y));
  programs.push_back(plan(std::move(second), device));
  auto session = Session::create(device, *passes::plan_session(std::move(programs)));
  ASSERT_TRUE(session.ok());
  fill(**session, "x");
  fill(**session, "w");
  ASSERT_TRUE((*session)->run(0));
  const float once = read_state<float>(**session, "y")[5];
  ASSERT_TRUE((*session)->run(1));
  EXPECT_EQ(read_state<float>(**session, "y")[5], 2 * once);
}

TEST(SessionPlanTest, RefusesAStateDeclaredDifferently) {
  std::vector<passes::Program> programs(2);
  programs[0].graph.declare_state(decl("x", {2}));
  programs[1].graph.declare_state(decl("x", {3}));
  const auto session = passes::plan_session(std::move(programs));
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().where, "x");
}

/// out = silu(w); then `changed` = w + m, where `changed` is a state of the program or none.
ir::Graph gated_program(const std::string& name, const std::string& changed) {
  ir::Graph graph;
  graph.name = name;
  ir::Builder b(graph, ops::find_op);
  const ir::TensorType type{ir::DType::kF32, {4, 8}};
  const ValueId w = b.state({"w", type, StateClass::kParameter});
  const ValueId m = b.state({"m", type, StateClass::kOptimizerState});
  graph.declare_state({"out", type, StateClass::kOutput});
  b.assign("out", ops::silu(b, w));
  if (!changed.empty()) b.assign(changed, ops::add(b, w, m));
  EXPECT_TRUE(b.status().ok());
  return graph;
}

/// What another thread may read until the gate is called is unchanged when it is.
TEST(UpdateGate, StandsBeforeTheFirstChangeOfAParameterOrAStateOfTheOptimizer) {
  cpu::CpuDevice device(1);
  std::vector<passes::Program> programs;
  for (const char* changed : {"w", "m", ""})
    programs.push_back(*session_testing::plan_program(gated_program(changed, changed), device.target()));
  auto created = Session::create(device, *passes::plan_session(std::move(programs)));
  ASSERT_TRUE(created.ok());
  Session& session = **created;
  const auto value = [&](const char* state) -> float& {
    return session_testing::on_cpu<float>(session, state)[0];
  };
  int calls = 0;
  float w_at_gate = 0, m_at_gate = 0, out_at_gate = 0;
  session.set_update_gate([&] {
    ++calls;
    w_at_gate = value("w"), m_at_gate = value("m"), out_at_gate = value("out");
  });
  for (int run = 0; run < 4; ++run) {
    ASSERT_TRUE(session.enable_timing(run >= 2));
    value("w") = 1, value("m") = 2, value("out") = 0;
    ASSERT_TRUE(session.run(run % 2));
    EXPECT_EQ(calls, run + 1);
    EXPECT_EQ(w_at_gate, 1);
    EXPECT_EQ(m_at_gate, 2);
    EXPECT_NE(out_at_gate, 0);  // what comes before the change has been done
    EXPECT_EQ(value(run % 2 == 0 ? "w" : "m"), 3);
  }
  ASSERT_TRUE(session.enable_timing(false));
  ASSERT_TRUE(session.run(2));
  EXPECT_EQ(calls, 4);  // a program that changes neither does not wait
  session.set_update_gate(nullptr);
  ASSERT_TRUE(session.run(0));
  EXPECT_EQ(calls, 4);
}

/// Counts the queues that are waited for.
class WatchedDevice final : public session_testing::FlippingDevice {
 public:
  using FlippingDevice::FlippingDevice;
  Status synchronize(ir::Queue queue) override {
    waited_.insert(queue);
    return FlippingDevice::synchronize(queue);
  }
  Status launch(const KernelCall& call, ir::Queue queue) override {
    if (!at_launch) at_launch = waited_.size();
    return FlippingDevice::launch(call, queue);
  }
  void start_again() { waited_.clear(), at_launch.reset(); }
  std::optional<size_t> at_launch;  ///< before the first

 private:
  std::set<ir::Queue> waited_;
};

// What is issued one by one would not wait for copies of the program before: a replay does, on its queues.
TEST(SessionTest, ARunOneByOneBeginsBehindAllQueues) {
  cpu::CpuDevice cpu(1);
  WatchedDevice device(cpu);
  std::vector<passes::Program> programs;
  programs.push_back(plan(small_program(), device));
  const auto session = Session::create(device, *passes::plan_session(std::move(programs)));
  ASSERT_TRUE(session.ok());
  fill(**session, "x");
  fill(**session, "w");
  ASSERT_TRUE((*session)->enable_timing(true));
  device.start_again();
  ASSERT_TRUE((*session)->run(0));
  EXPECT_EQ(device.at_launch, ir::kNumAllQueues);
}

}  // namespace
}  // namespace plimsoll::runtime
