// Rotary positions: the table, the turn, its inverse and its packed form.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

Attrs table_attrs(int64_t tokens, double factor = 1.0) { return {{"tokens", tokens}, {"factor", factor}}; }

TEST(Rope, DerivativesMatchFiniteDifferences) {
  const RefTensor table = normal({1, 3, 4}, 9);
  const std::vector<DerivativeCase> rows = {
      {"rope", "rope", {normal({2, 3, 2, 4}), table}, {{"inverse", false}}, {0}, -1, {1}},
      {"rope inverse, a table a sequence",
       "rope",
       {normal({2, 3, 1, 4}), normal({2, 3, 4}, 5)},
       {{"inverse", true}},
       {0},
       -1,
       {1}},
      {"rope_packed",
       "rope_packed",
       {normal({2, 3, 12}), table},
       {{"heads", int64_t{2}}, {"head_dim", int64_t{4}}, {"inverse", false}},
       {0},
       -1,
       {1}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(Rope, TheTableHoldsCosinesThenSines) {
  const Tensors t =
      evaluate("rope_table", {values({2}, {1, 0.5}), ints({1, 2}, {0, 3})}, table_attrs(2, 2.0));
  EXPECT_LT(distance(t[0], values({1, 2, 4}, {2, 2, 0, 0, 2 * std::cos(3.0), 2 * std::cos(1.5),
                                              2 * std::sin(3.0), 2 * std::sin(1.5)})),
            1e-15);
  const Tensors counted = evaluate("rope_table", {values({2}, {1, 0.5})}, table_attrs(4));
  const Tensors given =
      evaluate("rope_table", {values({2}, {1, 0.5}), ints({1, 4}, {0, 1, 2, 3})}, table_attrs(4));
  EXPECT_EQ(counted[0].data, given[0].data);
}

TEST(Rope, TurnsHalvesAndBack) {
  const Tensors x = {normal({2, 3, 2, 4}), values({2}, {1, 0.3})};
  const Tensors turned = evaluate(x, [](Builder& b, const auto& v) {
    const ValueId table = ops::rope_table(b, v[1], {}, 3);
    const ValueId y = ops::rope(b, v[0], table);
    return std::vector{y, b.op("rope", {y, table}, {{"inverse", true}})};
  });
  EXPECT_LT(distance(turned[1], x[0]), 1e-15);
  const double c = std::cos(2.0), s = std::sin(2.0);  // token 2, first frequency, head 1: elements 20 and 22
  EXPECT_NEAR(turned[0].data[20], x[0].data[20] * c - x[0].data[22] * s, 1e-15);
  EXPECT_NEAR(turned[0].data[22], x[0].data[22] * c + x[0].data[20] * s, 1e-15);
}

TEST(Rope, ThePackedFormIsWhatItReplaces) {
  const Tensors x = {normal({2, 3, 12}), normal({2, 3, 4}, 3)};
  const Tensors fused =
      evaluate("rope_packed", x, {{"heads", int64_t{2}}, {"head_dim", int64_t{4}}, {"inverse", false}});
  const Tensors apart = evaluate(x, [](Builder& b, const auto& v) {
    const auto parts = ops::split(b, v[0], {8, 4});
    const ValueId turned = ops::rope(b, ops::reshape(b, parts[0], {2, 3, 2, 4}), v[1]);
    return std::vector{ops::concat(b, {ops::reshape(b, turned, {2, 3, 8}), parts[1]})};
  });
  EXPECT_EQ(fused[0].data, apart[0].data);
}

TEST(Rope, SaysWhatDoesNotFit) {
  const Attrs packed{{"heads", int64_t{4}}, {"head_dim", int64_t{4}}, {"inverse", false}};
  const std::vector<ErrorCase> rows = {
      {"rope_table",
       {f32({2}), i32({1, 3})},
       table_attrs(2),
       "rope_table: positions must be [B,2]: positions [1,3]"},
      {"rope_table", {f32({2})}, table_attrs(-1), "rope_table: tokens -1 out of range"},
      {"rope_table",
       {f32({2, 1})},
       table_attrs(1),
       "rope_table: inv_freq must have one axis: inv_freq [2,1]"},
      {"rope", {f32({2, 3, 4}), f32({1, 3, 4})}, {}, "rope: x must be [B,T,heads,head_dim]: x [2,3,4]"},
      {"rope",
       {f32({2, 3, 1, 4}), f32({1, 3, 2})},
       {},
       "rope: table must be [B or 1, T, 4], an even head size: x [2,3,1,4], table [1,3,2]"},
      {"rope",
       {f32({2, 3, 1, 3}), f32({1, 3, 3})},
       {},
       "rope: table must be [B or 1, T, 3], an even head size: x [2,3,1,3], table [1,3,3]"},
      {"rope_packed",
       {f32({2, 3, 12}), f32({1, 3, 4})},
       packed,
       "rope_packed: x does not hold 4 heads of 4: x [2,3,12]"},
  };
  for (const auto& row : rows) EXPECT_EQ(operand_error(row), row.what);
}

}  // namespace
}  // namespace plimsoll::ops_testing
