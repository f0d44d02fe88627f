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
  EXPECT_EQ(back->num_eval, -1);
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
