// The update gate: what another thread may read until it is called is unchanged when it is.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "runtime/session_testing.h"

namespace plimsoll::runtime {
namespace {

using ir::StateClass;
using ir::ValueId;

/// out = silu(w); then `changed` = w + m, where `changed` is a state of the program or none.
ir::Graph program(const std::string& name, const std::string& changed) {
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

TEST(UpdateGate, StandsBeforeTheFirstChangeOfAParameterOrAStateOfTheOptimizer) {
  cpu::CpuDevice device(1);
  std::vector<passes::Program> programs;
  for (const char* changed : {"w", "m", ""})
    programs.push_back(*session_testing::plan_program(program(changed, changed), device.target()));
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
  for (int run = 0; run < 2; ++run) {
    value("w") = 1, value("m") = 2, value("out") = 0;
    ASSERT_TRUE(session.run(run));
    EXPECT_EQ(calls, run + 1);
    EXPECT_EQ(w_at_gate, 1);
    EXPECT_EQ(m_at_gate, 2);
    EXPECT_NE(out_at_gate, 0);  // what comes before the change has been done
    EXPECT_EQ(value(run == 0 ? "w" : "m"), 3);
  }
  ASSERT_TRUE(session.run(2));
  EXPECT_EQ(calls, 2);  // a program that changes neither does not wait
  session.set_update_gate(nullptr);
  ASSERT_TRUE(session.run(0));
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace plimsoll::runtime
