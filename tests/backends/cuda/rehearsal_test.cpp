#include "backends/cuda/rehearsal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/op_list.h"

namespace plimsoll::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> modules_named(const ir::Graph& graph, int capability = 90) {
  const ir::Graph* const programs[] = {&graph, &graph};
  std::vector<std::string> names;
  for (const ModuleId& id : modules_of(programs, capability)) names.push_back(id.module + " " + id.defines);
  return names;
}

ir::StateDecl input(std::string_view name, const ir::Shape& shape, ir::DType dtype = ir::DType::kF32) {
  return {.name = std::string(name), .type = {dtype, shape}, .state_class = ir::StateClass::kInput};
}

TEST(Rehearsal, NamesTheModulesOfTheOpsThatAreThereOnce) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state(input("x", {8, 64})), w = b.state(input("w", {64}));
  b.op("rms_norm", {b.op("rms_norm", {x, w}, {{"eps", 1e-5}}), w}, {{"eps", 1e-5}});
  ASSERT_TRUE(b.status().ok()) << b.status().error().message();
  EXPECT_THAT(modules_named(graph), ElementsAre("norm/norm "));
}

TEST(Rehearsal, NamesThemWithTheMacrosThatTypesAsk) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state(input("x", {1, 128, 3 * 64}, ir::DType::kBf16));
  b.op("attention_packed", {x},
       {{"heads", int64_t{1}},
        {"kv_heads", int64_t{1}},
        {"head_dim", int64_t{64}},
        {"scale", 0.125},
        {"causal", true},
        {"window", int64_t{0}}});
  ASSERT_TRUE(b.status().ok()) << b.status().error().message();
  EXPECT_THAT(modules_named(graph), testing::Contains(HasSubstr("MMA_WIDTH=64")));
  EXPECT_THAT(modules_named(graph, 75), testing::Not(modules_named(graph, 80)));
}

TEST(Rehearsal, LeavesOutWhatTheHostRuns) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state(input("x", {8, 64}));
  b.op("silu", {x});
  ASSERT_TRUE(b.status().ok());
  graph.op(graph.order().back()).queue = ir::Queue::kHost;
  EXPECT_TRUE(modules_named(graph).empty());
}

}  // namespace
}  // namespace plimsoll::cuda
