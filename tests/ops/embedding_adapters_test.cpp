// What adapters put beside an embedding: derivatives, known values, operands that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

TEST(EmbeddingAdapters, ColumnsByToken) {
  const Tensors in = {values({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2}, {2, 0})};
  EXPECT_EQ(evaluate("embedding_columns", in)[0].data, (std::vector<double>{3, 6, 1, 4}));
}

TEST(EmbeddingAdapters, RowsStandAtTheirTokens) {
  const Tensors in = {values({3, 2}, {1, 1, 2, 2, 3, 3}), values({2, 2}, {7, 8, 9, 10}),
                      ints({3}, {5, 0, 4})};
  EXPECT_EQ(evaluate("token_rows", in, {{"tokens", std::vector<int64_t>{4, 5}}})[0].data,
            (std::vector<double>{9, 10, 2, 2, 7, 8}));
}

TEST(EmbeddingAdapters, DerivativesMatchFiniteDifferences) {
  const std::vector<DerivativeCase> rows = {
      {.name = "columns",
       .op = "embedding_columns",
       .inputs = {normal({2, 5}), ints({2, 3}, {0, 4, 4, 1, 2, 4})}},
      {.name = "rows",
       .op = "token_rows",
       .inputs = {normal({2, 3, 4}), normal({2, 4}, 1), ints({2, 3}, {0, 4, 4, 1, 2, 4})},
       .attrs = {{"tokens", std::vector<int64_t>{1, 4}}}},
  };
  for (const auto& row : rows) EXPECT_LT(derivative_error(row), kDerivativeTolerance) << row.name;
}

TEST(EmbeddingAdapters, SaysWhatDoesNotFit) {
  EXPECT_EQ(operand_error({"embedding_columns", {f32({2}), i32({2})}, {}, ""}),
            "embedding_columns: table must have two axes: table [2]");
  EXPECT_EQ(
      operand_error(
          {"token_rows", {f32({2, 3}), f32({2, 3}), i32({2})}, {{"tokens", std::vector<int64_t>{4, 4}}}, ""}),
      "token_rows: tokens must ascend");
}

}  // namespace
}  // namespace plimsoll::ops_testing
