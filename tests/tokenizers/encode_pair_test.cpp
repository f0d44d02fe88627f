// Rows of one text and of two: special tokens, type ids, rows of a number of tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenizers/small_tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A template of these pieces: "<s>" and "x" are special, A and B the texts.
std::string pair_template(const std::vector<std::string>& pair) {
  std::string pieces;
  for (const std::string& piece : pair)
    pieces +=
        (pieces.empty() ? "" : ", ") +
        (piece == "A" || piece == "B" ? "{\"Sequence\": {\"id\": \"" + piece + "\", \"type_id\": 0}}"
                                      : "{\"SpecialToken\": {\"id\": \"" + piece + "\", \"type_id\": 0}}");
  return R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [)" +
         pieces + R"(], "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]},
             "x": {"id": "x", "ids": [3, 2], "tokens": ["d", "c"]}}})";
}
std::string with_post_processor(const std::string& post_processor) {
  return tokenizer_json(
      {{"model", kGpt2Model}, {"added_tokens", kAdded}, {"post_processor", post_processor}});
}

/// As tokenizers 0.23.3 has it.
TEST(EncodePair, EncodesPairsAsThePostProcessorSays) {
  struct Row {
    std::string post_processor;
    std::vector<int32_t> pair, with_empty, plain;
  };
  const Row rows[] = {
      {"null", {6, 4, 10}, {6}, {6, 8}},
      {R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true})",
       {6, 4, 10},
       {6},
       {6, 8}},
      {pair_template({"<s>", "A", "x", "B", "<s>"}), {10, 6, 3, 2, 4, 10, 10}, {10, 6, 3, 2, 10}, {6, 8}},
      {pair_template({"B", "<s>", "A"}), {4, 10, 10, 6}, {10, 6}, {8, 6}},
      {R"({"type": "RobertaProcessing", "cls": ["<s>", 10], "sep": ["d", 3], "trim_offsets": true,
           "add_prefix_space": false})",
       {10, 6, 3, 3, 4, 10, 3},
       {10, 6, 3, 3, 3},
       {6, 8}},
      {R"({"type": "BertProcessing", "cls": ["<s>", 10], "sep": ["d", 3]})",
       {10, 6, 3, 4, 10, 3},
       {10, 6, 3, 3},
       {6, 8}},
  };
  for (const Row& row : rows) {
    const auto tokenizer = tokenizer_of(with_post_processor(row.post_processor));
    const auto pair = [&](std::string_view text, std::string_view second, bool special) {
      std::vector<int32_t> ids;
      EXPECT_TRUE(tokenizer->encode_pair(text, second, special, ids));
      return ids;
    };
    EXPECT_EQ(pair("abc", "ab<s>", true), row.pair) << row.post_processor;
    EXPECT_EQ(pair("abc", "", true), row.with_empty) << row.post_processor;
    EXPECT_EQ(pair("abc", "aa", false), row.plain) << row.post_processor;
  }
}

TEST(EncodePair, RefusesPairsThatHaveNoPlace) {
  for (const std::vector<std::string>& pieces : {std::vector<std::string>{}, {"<s>", "A"}, {"B"}}) {
    const auto tokenizer = tokenizer_of(with_post_processor(pair_template(pieces)));
    std::vector<int32_t> ids = {5};
    const Status status = tokenizer->encode_pair("a", "b", true, ids);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message(), "post_processor.pair has no place for two texts: t.json");
    EXPECT_THAT(ids, ElementsAre(5));
  }
  EXPECT_THAT(tokenizer_refusal(with_post_processor(pair_template({"A", "B", "A"}))),
              HasSubstr("post_processor.pair[2].Sequence repeats the text"));
  EXPECT_THAT(tokenizer_refusal(with_post_processor(pair_template({"A", "y", "B"}))),
              HasSubstr("post_processor.pair[1].SpecialToken.id names 'y'"));
}

const std::string kBert = R"({"type": "BertProcessing", "cls": ["<s>", 10], "sep": ["d", 3]})";

/// As tokenizers 0.23.3 has it.
TEST(EncodePair, TypeIdsAreThePostProcessors) {
  struct Row {
    std::string post_processor;
    std::vector<int32_t> single, pair, plain;
  };
  std::string typed = pair_template({"<s>", "A", "x", "B"});
  typed.replace(typed.rfind("\"id\": \"A\", \"type_id\": 0") + 22, 1, "7");
  typed.replace(typed.rfind("\"id\": \"x\", \"type_id\": 0") + 22, 1, "2");
  const Row rows[] = {
      {"null", {0}, {0, 1, 1}, {0, 1, 1}},
      {R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true})",
       {0},
       {0, 1, 1},
       {0, 1, 1}},
      {typed, {0}, {0, 7, 2, 2, 0, 0}, {7, 0, 0}},
      {R"({"type": "RobertaProcessing", "cls": ["<s>", 10], "sep": ["d", 3], "trim_offsets": true,
           "add_prefix_space": false})",
       {0, 0, 0},
       {0, 0, 0, 0, 0, 0, 0},
       {0, 0, 0}},
      {kBert, {0, 0, 0}, {0, 0, 0, 1, 1, 1}, {0, 1, 1}},
  };
  for (const Row& row : rows) {
    const auto tokenizer = tokenizer_of(with_post_processor(row.post_processor));
    std::vector<int32_t> ids = {5}, single, pair, plain;
    EXPECT_TRUE(tokenizer->encode_within("abc", std::nullopt, SIZE_MAX, ids, &single));
    EXPECT_EQ(ids.size(), single.size() + 1);
    EXPECT_TRUE(tokenizer->encode_pair("abc", "ab<s>", true, ids, &pair));
    EXPECT_TRUE(tokenizer->encode_pair("abc", "ab<s>", false, ids, &plain));
    EXPECT_EQ(single, row.single) << row.post_processor;
    EXPECT_EQ(pair, row.pair) << row.post_processor;
    EXPECT_EQ(plain, row.plain) << row.post_processor;
  }
}

/// As tokenizers 0.23.3 has it.
TEST(EncodePair, TheLongerTextLosesTokensFirst) {
  const auto tokenizer = tokenizer_of(with_post_processor(kBert));
  const auto within = [&](size_t most, std::string_view text, std::optional<std::string_view> pair) {
    std::vector<int32_t> ids, types;
    EXPECT_TRUE(tokenizer->encode_within(text, pair, most, ids, &types));
    EXPECT_EQ(types.size(), ids.size());
    return ids;
  };
  EXPECT_THAT(within(9, "cacaca", std::nullopt), ElementsAre(10, 2, 0, 2, 0, 2, 0, 3));
  EXPECT_THAT(within(4, "cacaca", std::nullopt), ElementsAre(10, 2, 0, 3));
  EXPECT_THAT(within(2, "cacaca", std::nullopt), ElementsAre(10, 3));
  EXPECT_THAT(within(8, "cacaca", "bb"), ElementsAre(10, 2, 0, 2, 3, 1, 1, 3));
  EXPECT_THAT(within(8, "bb", "cacaca"), ElementsAre(10, 1, 1, 3, 2, 0, 2, 3));
  EXPECT_THAT(within(6, "bbbb", "cacaca"), ElementsAre(10, 1, 3, 2, 0, 3)) << "the odd one is the longer's";
  EXPECT_THAT(within(6, "cacaca", "bbbb"), ElementsAre(10, 2, 0, 3, 1, 3));
  EXPECT_THAT(within(6, "bbbb", "caca"), ElementsAre(10, 1, 3, 2, 0, 3)) << "of equal ones the pair's";
  EXPECT_THAT(within(3, "bbbb", "caca"), ElementsAre(10, 3, 3));
  std::vector<int32_t> ids = {5};
  const Status refused = tokenizer->encode_within("a", "b", 2, ids);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("2 tokens are fewer than the 3 special ones of a pair"));
  EXPECT_THAT(ids, ElementsAre(5));
}

TEST(EncodePair, JoinsWhatWasEncodedBefore) {
  const auto tokenizer = tokenizer_of(with_post_processor(kBert));
  const std::vector<int32_t> question = {6}, window = {4, 0};
  std::vector<int32_t> ids = {5}, types = {9};
  ASSERT_TRUE(tokenizer->join(question, window, ids, &types));
  EXPECT_THAT(ids, ElementsAre(5, 10, 6, 3, 4, 0, 3));
  EXPECT_THAT(types, ElementsAre(9, 0, 0, 0, 1, 1, 1));
  ASSERT_TRUE(tokenizer->join(window, std::nullopt, ids));
  EXPECT_THAT(std::span(ids).subspan(7), ElementsAre(10, 4, 0, 3));
  EXPECT_EQ(tokenizer->num_special_tokens(false), 2u);
  EXPECT_EQ(tokenizer->num_special_tokens(true), 3u);
  const auto single = tokenizer_of(with_post_processor(pair_template({})));
  EXPECT_FALSE(single->join(question, window, ids));
  EXPECT_EQ(single->num_special_tokens(true), 0u);
}

}  // namespace
}  // namespace plimsoll::tokenizers
