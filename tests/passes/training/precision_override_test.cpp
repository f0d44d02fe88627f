// Names by which overrides find ops.
#include "passes/training/precision_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;
using testing::ElementsAre;

/// Two maps in a layer, the second without a weight of its own there; a head with the first's weight.
class OverrideNamesTest : public testing::Test {
 protected:
  OverrideNamesTest() : b_(graph_, ops::find_op) {
    const ValueId x = b_.state({"x", {DType::kF32, {4, 4}}, StateClass::kInput});
    const ValueId table = parameter("model.table.weight");
    ValueId y;
    {
      const auto scope = b_.scope("layers.0.mlp");
      y = ops::linear(b_, x, parameter("model.layers.0.mlp.up.weight"), {});
      maps_.push_back(graph_.value(y).producer);
      y = ops::linear(b_, y, x, {});
      maps_.push_back(graph_.value(y).producer);
    }
    const auto scope = b_.scope("lm_head");
    maps_.push_back(graph_.value(ops::linear(b_, y, table, {})).producer);
  }
  ValueId parameter(const std::string& name) {
    return b_.state({name, {DType::kF32, {4, 4}}, StateClass::kParameter});
  }

  ir::Graph graph_;
  ir::Builder b_;
  std::vector<ir::OpId> maps_;
};

TEST_F(OverrideNamesTest, AreThoseOfTheCheckpoint) {
  OverrideNames names(graph_);
  EXPECT_THAT(names.of(graph_.op(maps_[0])).by_parts,
              ElementsAre("linear", "model.layers.0.mlp", "model.layers.0.mlp.up.weight"));
  EXPECT_THAT(names.of(graph_.op(maps_[1])).by_parts, ElementsAre("linear", "model.layers.0.mlp"));
  EXPECT_THAT(names.of(graph_.op(maps_[2])).by_parts, ElementsAre("linear", "lm_head", "table.weight"));
  EXPECT_THAT(names.of(graph_.op(maps_[2])).whole, ElementsAre("model.table.weight"));
  EXPECT_THAT(names.of(graph_.op(maps_[0])).whole, ElementsAre());
}

TEST_F(OverrideNamesTest, MatchByPartsInARow) {
  OverrideNames names(graph_);
  const auto matching = [&](const std::string& pattern) {
    std::string which;
    for (const ir::OpId id : maps_) which += matches(pattern, names.of(graph_.op(id))) ? '1' : '0';
    return which;
  };
  for (const char* all : {"*", "linear", "lin*"}) EXPECT_EQ(matching(all), "111") << all;
  for (const char* below : {"model", "model.*", "model.layers", "layers.*", "layers.?", "mlp", "*.mlp"})
    EXPECT_EQ(matching(below), "110") << below;
  for (const char* one : {"up", "mlp.up", "model.layers.0.mlp.up.weight"})
    EXPECT_EQ(matching(one), "100") << one;
  for (const char* head :
       {"lm_head", "lm_head.*", "table", "model.table", "model.table.weight", "model.table.*"})
    EXPECT_EQ(matching(head), "001") << head;
  for (const char* none : {"odel", "layer", "model.mlp", "layers.1", "model.table.bias", "odel.table", ""})
    EXPECT_EQ(matching(none), "000") << none;
}

}  // namespace
}  // namespace plimsoll::passes
