// How long collectives of a rank take.
#include "planner/cost/network.h"

#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "ops/ranks.h"
#include "planner/cost/cost_model.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::planner {
namespace {

constexpr int64_t kGrain = ops::kPieceGrain;

TEST(Network, MessagesFollowOneAnotherOverTheirLinks) {
  const Network one{.intra = 1e9, .latency = 1e-3};
  EXPECT_DOUBLE_EQ(one.seconds({3, 1'000'000}), 3 * (1e-3 + 1e-3));
  const Network nodes{.per_node = 2, .intra = 1e9, .inter = 1e8, .latency = 1e-3};
  EXPECT_DOUBLE_EQ(nodes.seconds({3, 1'000'000}), (1e-3 + 1e-3) + 2 * (1e-3 + 1e-2));
  EXPECT_DOUBLE_EQ(nodes.seconds({1, 1'000'000}), 2e-3);
  EXPECT_EQ(nodes.seconds({0, 1'000'000}), 0);
}

double network_seconds(const CostModel& model) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  ops::exchange(b, b.state({"x", {ir::DType::kF32, {64 * kGrain}}, ir::StateClass::kGradient}), 2);
  EXPECT_TRUE(b.status());
  StepSeconds seconds;
  for (const ir::OpId id : graph.order()) model.add(graph, graph.op(id), seconds);
  EXPECT_EQ(network_bytes(graph, graph.op(graph.order().back())), 32.0 * kGrain * 4);
  EXPECT_EQ(seconds.total(), seconds.parts[static_cast<size_t>(Part::kNetwork)]);
  return seconds.total();
}

TEST(CostModel, CollectivesTakeTheNetworksTime) {
  MachineProfile p = generic_cpu("avx2");
  p.memory_bandwidth = 20e9, p.launch_seconds = 0;
  const double bytes = 32 * kGrain * 4;
  EXPECT_DOUBLE_EQ(network_seconds(CostModel(p, 1)), bytes / 10e9) << "read and written in memory";
  const Network slow{.intra = 1e8, .latency = 0.5, .is_described = true};
  EXPECT_DOUBLE_EQ(network_seconds(CostModel(p, 1, slow)), 0.5 + bytes / 1e8);
  p.factors = {{"exchange", ProductType::kF32, 3}};
  EXPECT_DOUBLE_EQ(network_seconds(CostModel(p, 1)), 3 * bytes / 10e9) << "as runs found it";
  EXPECT_DOUBLE_EQ(network_seconds(CostModel(p, 1, slow)), 0.5 + bytes / 1e8) << "another network";
}

}  // namespace
}  // namespace plimsoll::planner
