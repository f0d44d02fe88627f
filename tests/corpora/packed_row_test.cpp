// Where documents begin, by each of the members that say it; rows as a whole are example_reader_test's.
#include "corpora/packed_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<int32_t>;

TEST(PackedRow, AgreesOrSaysWhatDisagrees) {
  PackedRow row(5, {});
  EXPECT_FALSE(row.by_lengths("a", Values{2, 3}));
  EXPECT_FALSE(row.by_positions("b", Values{0, 1, 0, 1, 2}));
  EXPECT_FALSE(row.by_bounds("c", Values{0, 2, 5}));
  EXPECT_FALSE(row.by_numbers("d", Values{1, 1, 7, 7, 7}));
  EXPECT_TRUE(row.is_packed());
  EXPECT_THAT(row.begins(), ElementsAre(0, 2));
  EXPECT_EQ(row.by_numbers("e", Values{1, 1, 1, 7, 7}),
            "\"a\" and \"e\" disagree about where documents begin (token 3)");
  EXPECT_EQ(row.by_numbers("f", Values{1, 1, 1, 1, 1}),
            "\"a\" and \"f\" disagree about where documents begin (token 3)");
}

TEST(PackedRow, PaddingBelongsToNoDocument) {
  const std::vector<uint8_t> seen = {1, 1, 0, 1, 0, 0};
  PackedRow row(6, seen);
  EXPECT_FALSE(row.by_lengths("a", Values{3, 1})) << "what follows is padding";
  EXPECT_FALSE(row.by_lengths("b", Values{2, 2})) << "so is what begins the second";
  EXPECT_FALSE(row.by_positions("c", Values{0, 1, 1, 0, 1, 1}));
  EXPECT_FALSE(row.by_bounds("d", Values{0, 3, 6}));
  EXPECT_THAT(row.begins(), ElementsAre(0, 3));
}

TEST(PackedRow, RefusesWhatDoesNotAddUp) {
  const auto of = [](auto take, const Values& values) {
    PackedRow row(3, {});
    return (row.*take)("x", values).value_or("taken");
  };
  EXPECT_EQ(of(&PackedRow::by_lengths, {2}), "\"x\" adds up to 2, and \"input_ids\" has 3 values");
  EXPECT_EQ(of(&PackedRow::by_lengths, {3, 0}), "\"x\" holds 0, expected lengths from 1 on");
  EXPECT_THAT(of(&PackedRow::by_bounds, {}), HasSubstr("is empty"));
  EXPECT_THAT(of(&PackedRow::by_bounds, {1, 3}), HasSubstr("begins with 1"));
  EXPECT_EQ(of(&PackedRow::by_bounds, {0, 2, 2}), "\"x\" goes from 2 to 2, expected it to increase");
  EXPECT_EQ(of(&PackedRow::by_bounds, {0, 2}), "\"x\" ends with 2, and \"input_ids\" has 3 values");
  EXPECT_EQ(of(&PackedRow::by_positions, {1, 2, 3}), "\"x\" begins with 1, expected 0");
  EXPECT_EQ(of(&PackedRow::by_positions, {0, 2, 3}),
            "\"x\" holds 2 at token 2, expected 1, or 0 where a document begins");
  EXPECT_EQ(of(&PackedRow::by_numbers, {0}), "\"x\" has 1 values, \"input_ids\" 3");
}

}  // namespace
}  // namespace plimsoll::corpora
