#include "planner/report/precision_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::planner {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;
using testing::ElementsAre;

/// Why a cast stands alone follows from what makes the tensor.
TEST(PrecisionReport, SaysWhyACastStandsAlone) {
  ir::Graph graph;
  graph.name = "step";
  ir::Builder b(graph, ops::find_op);
  const auto parameter = [&](const char* name) {
    return b.state({name, {DType::kF32, {4, 6}}, StateClass::kParameter});
  };
  const ValueId w = parameter("w"), x = parameter("x");
  const ValueId kept = ops::cast(b, w, DType::kBf16);
  ops::mul(b, kept, kept);
  const ValueId product = ops::linear(b, w, x, {});
  const auto scope = b.scope("layers.3.mlp");
  const ValueId stored = ops::cast(b, product, DType::kF16);
  ops::add(b, ops::mul(b, stored, stored), stored);
  const ValueId shared = ops::silu(b, w);
  const ValueId copy = ops::cast(b, shared, DType::kBf16);
  ops::mul(b, copy, copy);
  ops::add(b, shared, shared);
  ASSERT_TRUE(b.status());

  const std::vector<CastUse> casts = casts_of(graph);
  ASSERT_EQ(casts.size(), 3U);
  EXPECT_EQ(casts[0].op, "w");
  EXPECT_EQ(casts[0].from + casts[0].to, "f32bf16");
  EXPECT_THAT(casts[0].shape, ElementsAre(4, 6));
  EXPECT_EQ(casts[0].why, "w is kept in f32; mul reads what is stored");
  EXPECT_EQ(casts[1].program, "step");
  EXPECT_EQ(casts[1].layer, "layers.3.mlp");
  EXPECT_EQ(casts[1].uses, 2);
  EXPECT_THAT(casts[1].readers, ElementsAre("mul", "add"));
  EXPECT_EQ(casts[1].why, "linear stores its products' f32; mul, add read what is stored");
  EXPECT_EQ(casts[2].why, "other ops read silu's f32; mul reads what is stored");
}

}  // namespace
}  // namespace plimsoll::planner
