// What the process that prepares the data says of it arrives as it was said, or not at all.
#include "preprocessing/run_data_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll::preprocessing {
namespace {

RunData some_data() {
  RunData data;
  data.train = {{.paths = {"a.txt", "b:with 3:signs\n"}, .weight = 1e-310}, {.paths = {}, .weight = 0.1}};
  data.eval = {{.paths = {""}, .weight = std::numeric_limits<double>::max()}};
  data.eval_names = {"one", ""};
  data.buckets.lengths = {128, 512};
  data.buckets.sequences = std::numeric_limits<int64_t>::max();
  data.labels = io::Labels{};
  data.labels->names = {"neg", "pos"};
  data.token_kinds = std::make_shared<const datasets::TokenKinds>(datasets::TokenKinds{103, "swcs"});
  data.num_eval = -1;
  return data;
}

TEST(RunDataText, BringsBackEveryNumber) {
  const RunData data = some_data();
  const auto back = run_data_of(run_data_text(data));
  ASSERT_TRUE(back) << back.error().message();
  ASSERT_EQ(back->train.size(), 2U);
  EXPECT_EQ(back->train[0].weight, 1e-310) << "a subnormal number";
  EXPECT_EQ(back->train[0].paths, data.train[0].paths);
  EXPECT_EQ(back->train[1].weight, 0.1);
  EXPECT_EQ(back->eval[0].weight, std::numeric_limits<double>::max());
  EXPECT_EQ(back->eval_names, data.eval_names);
  EXPECT_EQ(back->buckets.lengths, data.buckets.lengths);
  EXPECT_EQ(back->buckets.sequences, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(back->labels->names, data.labels->names);
  ASSERT_NE(back->token_kinds, nullptr);
  EXPECT_EQ(back->token_kinds->mask_token, 103);
  EXPECT_EQ(back->token_kinds->kinds, "swcs");
  EXPECT_EQ(back->num_eval, -1);
}

TEST(RunDataText, SaysWhereNothingIsMasked) {
  RunData data = some_data();
  data.token_kinds = nullptr;
  const auto none = run_data_of(run_data_text(data));
  ASSERT_TRUE(none) << none.error().message();
  EXPECT_EQ(none->token_kinds, nullptr);
  EXPECT_EQ(none->num_eval, -1) << "what stands behind it";
  data.token_kinds = std::make_shared<const datasets::TokenKinds>(datasets::TokenKinds{0, ""});
  const auto empty = run_data_of(run_data_text(data));
  ASSERT_TRUE(empty && empty->token_kinds != nullptr) << "the mask token may be id 0";
  EXPECT_EQ(empty->token_kinds->mask_token, 0);
}

TEST(RunDataText, RefusesWhatIsCutOrLonger) {
  const std::string text = run_data_text(some_data());
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(run_data_of(std::string_view(text).substr(0, size))) << size;
  EXPECT_FALSE(run_data_of(text + "1:1"));
}

TEST(RunDataText, RefusesNumbersThatAreNone) {
  for (const char* text : {"", "x", "1:x", "20:99999999999999999999", "1:9", "99999999999999999999:1"})
    EXPECT_FALSE(run_data_of(text)) << text;
}

}  // namespace
}  // namespace plimsoll::preprocessing
