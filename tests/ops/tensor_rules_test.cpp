// The rules that look beyond one element: parts are matrices of their own, operands that do not fit.
#include "ops/tensor_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

using Ints = std::vector<int64_t>;

/// A step of `rule` on rows of the operands: [first, first + sum of parts).
Tensors step(const std::string& rule, int64_t first, const std::vector<int64_t>& parts) {
  const ops::RuledTensor whole{{6, 5}, {4, 2}};
  int64_t rows = 0;
  for (const int64_t part : parts) rows += part;
  const auto cut = [&](const RefTensor& t) {
    return values({rows, 5}, {t.data.begin() + 5 * first, t.data.begin() + 5 * (first + rows)});
  };
  Tensors x = {cut(normal(whole.shape, 1)), cut(normal(whole.shape, 2))};
  for (const ops::RuleState& state : ops::find_tensor_rule(rule)->states)
    x.push_back(reference::constant({DType::kF32, state.shape_of({x[0].type.shape, parts})}, 0.25));
  const int64_t fields = ops::find_tensor_rule(rule)->num_fields;
  x.insert(x.end(), {values({1}, {0.5}), reference::constant({DType::kF32, {1, fields}}, 0.5)});
  return evaluate(rule, x, {{"group", int64_t{0}}, {"parts", parts}});
}

TEST(TensorRules, EachPartIsAMatrixOfItsOwn) {
  for (const char* rule : {"adafactor", "adafactor_moment", "muon"}) {
    const Tensors both = step(rule, 0, {4, 2});
    std::vector<double> apart = step(rule, 0, {4})[0].data;
    const std::vector<double> second = step(rule, 4, {2})[0].data;
    apart.insert(apart.end(), second.begin(), second.end());
    EXPECT_EQ(both[0].data, apart) << rule;
    EXPECT_NE(both[0].data, step(rule, 0, {6})[0].data) << rule;
  }
}

TEST(TensorRules, SaysWhatDoesNotFit) {
  const auto clip = f32({1}), groups = f32({2, 14});
  EXPECT_NE(operand_error({"muon",
                           {f32({4, 5}), f32({4, 5}), f32({4, 5}), clip, groups},
                           {{"group", int64_t{0}}, {"parts", Ints{3}}},
                           ""})
                .find("parts must be rows of param, all of them"),
            std::string::npos);
  EXPECT_NE(operand_error({"adafactor",
                           {f32({4, 5}), f32({4, 5}), f32({5}), f32({1, 5}), clip, groups},
                           {{"group", int64_t{0}}, {"parts", Ints{4}}},
                           ""})
                .find("row must be [4]"),
            std::string::npos);
  EXPECT_NE(operand_error({"muon",
                           {f32({4, 5}), f32({4, 5}), f32({4, 5}), clip, f32({2, 8})},
                           {{"group", int64_t{0}}, {"parts", Ints{4}}},
                           ""})
                .find("groups must be [n,14]"),
            std::string::npos);
  EXPECT_NE(operand_error({"muon",
                           {f32({4, 5}), f32({4, 5}), f32({4, 5}), clip, groups},
                           {{"group", int64_t{0}}, {"parts", Ints{4}}, {"first", int64_t{256}}},
                           ""})
                .find("a window begins at a whole block of the rule"),
            std::string::npos);
}

}  // namespace
}  // namespace plimsoll::ops_testing
