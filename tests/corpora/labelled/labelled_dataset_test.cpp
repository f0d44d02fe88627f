// Labelled examples with random access: cut, padded, pooled where their tokens end.
#include "corpora/labelled/labelled_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "labelled_files.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using enum io::ProblemType;

struct ReadRow {
  std::vector<int32_t> tokens;
  int32_t last = -1;
  std::vector<float> labels;
  int64_t count = 0;
};

ReadRow read_row(const LabelledDataset& data, int64_t index, size_t length, size_t labels) {
  std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
  ReadRow row{std::vector<int32_t>(length, -7), -1, std::vector<float>(labels, -7), 0};
  const auto count = data.read(index, {row.tokens, &row.last, row.labels}, scratch);
  EXPECT_TRUE(count) << (count ? "" : count.error().message());
  row.count = count ? *count : -1;
  return row;
}

const std::string kLines = R"({"input_ids": [1, 2, 3, 4, 5], "label": "b"}
{"input_ids": [9, 9], "label": "a"}
{"input_ids": [4, 9, 9, 5], "label": 1}
)";

LabelledDataset open_labelled(const io::TemporaryFolder& folder, std::optional<int64_t> pad) {
  const std::vector<std::string> shards = {
      labelled_shard(folder, "x", kLines),
      labelled_shard(folder, "y", "{\"input_ids\": [6], \"label\": 0}\n")};
  auto data = LabelledDataset::open(
      shards,
      {.sequence_length = 3, .vocab_size = 100, .pad_token = pad, .labels = {kSingleLabel, {"a", "b"}}});
  EXPECT_TRUE(data) << (data ? "" : data.error().message());
  return std::move(data).value();
}

TEST(LabelledDataset, CutsPadsAndPools) {
  const io::TemporaryFolder folder;
  const LabelledDataset data = open_labelled(folder, 9);
  EXPECT_EQ(data.size(), 4);
  EXPECT_EQ(data.num_tokens(), 12);
  const ReadRow cut = read_row(data, 0, 3, 1);
  EXPECT_THAT(cut.tokens, ElementsAre(1, 2, 3));
  EXPECT_EQ(cut.last, 2);
  EXPECT_EQ(cut.count, 3);
  EXPECT_THAT(cut.labels, ElementsAre(1));
  const ReadRow padding = read_row(data, 1, 3, 1);
  EXPECT_THAT(padding.tokens, ElementsAre(9, 9, 9));
  EXPECT_EQ(padding.last, 0) << "as transformers, where nothing is left";
  EXPECT_EQ(padding.count, 0);
  EXPECT_THAT(padding.labels, ElementsAre(0));
  const ReadRow within = read_row(data, 2, 3, 1);
  EXPECT_THAT(within.tokens, ElementsAre(4, 9, 9)) << "cut first";
  EXPECT_EQ(within.last, 0);
  const ReadRow second = read_row(data, 3, 3, 1);
  EXPECT_THAT(second.tokens, ElementsAre(6, 9, 9));
  EXPECT_THAT(second.labels, ElementsAre(0));
}

TEST(LabelledDataset, WithoutAPaddingTokenLengthsDecide) {
  const io::TemporaryFolder folder;
  for (const std::optional<int64_t> pad : {std::optional<int64_t>(), std::optional<int64_t>(-1)}) {
    const LabelledDataset data = open_labelled(folder, pad);
    const ReadRow nines = read_row(data, 1, 3, 1);
    EXPECT_THAT(nines.tokens, ElementsAre(9, 9, 0));
    EXPECT_EQ(nines.last, 1);
    EXPECT_EQ(nines.count, 2);
  }
}

TEST(LabelledDataset, ReadsRowsOfABucket) {
  const io::TemporaryFolder folder;
  const LabelledDataset data = open_labelled(folder, 9);
  std::vector<std::byte> scratch(static_cast<size_t>(data.scratch_bytes()));
  EXPECT_EQ(*data.length(0, scratch), 3);
  EXPECT_EQ(*data.length(3, scratch), 1);
  EXPECT_THAT(read_row(data, 3, 1, 1).tokens, ElementsAre(6));
}

TEST(LabelledDataset, ReadsTokenTypesBesideTheTokens) {
  const io::TemporaryFolder folder;
  const std::string shard = labelled_shard(folder, "x",
                                           R"({"input_ids": [1, 2], "token_type_ids": [0, 1], "label": 0}
{"input_ids": [4, 5, 6, 7], "token_type_ids": [1, 0, 1, 1], "label": 0}
)",
                                           {.format = {.num_token_types = 2}});
  const auto data = LabelledDataset::open(
      std::vector{shard}, {.sequence_length = 3, .token_types = true, .labels = {kSingleLabel, {"a", "b"}}});
  ASSERT_TRUE(data) << data.error().message();
  std::vector<std::byte> scratch(static_cast<size_t>(data->scratch_bytes()));
  std::vector<int32_t> tokens(3, -7), types(3, -7);
  int32_t last = -7;
  float label = -7;
  const auto types_of = [&](int64_t index) {
    EXPECT_TRUE(data->read(index, {tokens, &last, {&label, 1}, types}, scratch));
    return types;
  };
  EXPECT_THAT(types_of(0), ElementsAre(0, 1, 0));
  EXPECT_THAT(types_of(1), ElementsAre(1, 0, 1));
  EXPECT_FALSE(LabelledDataset::open(std::vector{shard}, {.labels = {kSingleLabel, {"a", "b"}}}))
      << "types belong to it";
}

TEST(LabelledDataset, KnowsOtherTypes) {
  const io::TemporaryFolder folder;
  const auto open = [&](const std::string& name, const std::string& type) {
    const std::string shard =
        labelled_shard(folder, name, "{\"input_ids\": [1], \"token_type_ids\": [" + type + "], \"label\": 0}",
                       {.format = {.num_token_types = 2}});
    return LabelledDataset::open(std::vector{shard},
                                 {.token_types = true, .labels = {kSingleLabel, {"a", "b"}}});
  };
  const uint64_t ones = open("x", "1")->fingerprint();
  EXPECT_EQ(open("x", "1")->fingerprint(), ones);
  EXPECT_NE(open("x", "0")->fingerprint(), ones);
  ASSERT_TRUE(open("y", "1"));
  std::filesystem::copy_file(folder.path("y.types"), folder.path("x.types"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto mixed = LabelledDataset::open(std::vector{folder.path("x.shard")}, {.token_types = true});
  ASSERT_FALSE(mixed);
  EXPECT_THAT(mixed.error().message(), HasSubstr("belong to another shard"));
}

TEST(LabelledDataset, KnowsOtherDataAndOtherLabels) {
  const io::TemporaryFolder folder;
  const std::string shard = labelled_shard(folder, "x", lines_of({"[0, 1]", "[1, 1]"}));
  const auto fingerprint = [&](const io::Labels& labels) {
    return LabelledDataset::open(std::vector{shard}, {.labels = labels})->fingerprint();
  };
  const uint64_t multi = fingerprint({kMultiLabel, {"a", "b"}});
  EXPECT_EQ(multi, fingerprint({kMultiLabel, {"a", "b"}}));
  EXPECT_NE(multi, fingerprint({kRegression, {"a", "b"}}));
  EXPECT_NE(multi, fingerprint({kMultiLabel, {"a", "c"}}));
  labelled_shard(folder, "x", lines_of({"[0, 1]", "[1, 0]"}));
  EXPECT_NE(multi, fingerprint({kMultiLabel, {"a", "b"}}));
}

TEST(LabelledDataset, RefusesLabelsOfAnotherShard) {
  const io::TemporaryFolder folder;
  const std::string x = labelled_shard(folder, "x", lines_of({"0"})),
                    y = labelled_shard(folder, "y", "{\"input_ids\": [2], \"label\": 0}");
  std::filesystem::copy_file(labels_beside(y), labels_beside(x),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(LabelledDataset::open(std::vector{x}, {}).error().message(),
              HasSubstr("belong to another shard"));
  const auto larger = LabelledDataset::open(std::vector{y}, {.vocab_size = 50});
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::corpora
