// The WordPiece model through a tokenizer; recorded/bert*.json hold what the package makes of more texts.
#include "tokenizers/word_piece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tokenizers/small_tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string word_piece(const std::string& vocab, const std::string& most_chars = "10") {
  return tokenizer_json(
      {{"model", R"({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                     "max_input_chars_per_word": )" +
                     most_chars + R"(, "vocab": )" + vocab + "}"},
       {"normalizer", R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                          "strip_accents": null, "lowercase": true})"},
       {"pre_tokenizer", R"({"type": "BertPreTokenizer"})"}});
}

const std::string kWords =
    R"({"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "##a": 4, "a": 5, "##b": 6, "##": 7,
  "unaffected": 8, "##affx": 9, "!": 10, "\u00e9": 11, "##\u4f60": 12, "\u4f60": 13})";

// By the tokenizers package (0.23.3).
TEST(WordPieceModel, TakesTheLongestTokenAtEachPlace) {
  const auto tokenizer = tokenizer_of(word_piece(kWords));
  EXPECT_THAT(encode(*tokenizer, "unaffable"), ElementsAre(1, 2, 3));
  EXPECT_THAT(encode(*tokenizer, "Una \u00e0b!unaff"), ElementsAre(1, 4, 5, 6, 10, 1, 2));
  EXPECT_THAT(encode(*tokenizer, "unaffected"), ElementsAre(8));
  EXPECT_THAT(encode(*tokenizer, "unaffect"), ElementsAre(0)) << "it never goes back to a shorter token";
  EXPECT_THAT(encode(*tokenizer, "a\u4f60\u4f60"), ElementsAre(5, 13, 13)) << "a Chinese character is a word";
  EXPECT_THAT(encode(*tokenizer, "##"), ElementsAre(0, 0)) << "the prefix alone is no token inside a word";
}

TEST(WordPieceModel, AWordThatIsTooLongIsUnknown) {
  const auto tokenizer = tokenizer_of(word_piece(kWords));
  EXPECT_THAT(encode(*tokenizer, "aaaaaaaaaa"), ElementsAre(5, 4, 4, 4, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(encode(*tokenizer, "aaaaaaaaaaa a"), ElementsAre(0, 5));
  EXPECT_THAT(encode(*tokenizer_of(word_piece(kWords, "0")), "a !"), ElementsAre(0, 0));
  const std::string long_word = "a" + std::string(99, 'b');
  const auto hundred = tokenizer_of(word_piece(kWords, "100"));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(encode(*hundred, long_word).size(), 100u);
    EXPECT_THAT(encode(*hundred, long_word + "b"), ElementsAre(0));
  }
}

TEST(WordPieceModel, NeedsItsUnknownTokenOnlyWhenItIsUsed) {
  const auto tokenizer = tokenizer_of(word_piece(R"({"a": 0})"));
  std::vector<int32_t> ids = {5};
  EXPECT_TRUE(tokenizer->encode("a a", false, ids));
  const auto status = tokenizer->encode("ab", false, ids);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("unk_token '[UNK]' is not in model.vocab"));
  EXPECT_THAT(ids, ElementsAre(5, 0, 0));
}

TEST(WordPieceModel, KnowsWhereTokensLie) {
  const auto tokenizer = tokenizer_of(word_piece(kWords));
  std::vector<int32_t> ids;
  std::vector<Span> spans;
  //                                            0  3    5 6 7       10 12 15
  ASSERT_TRUE(tokenizer->encode_with_spans("una\xFF \u0301 \u00c0b! \u4f60Unaffect", false, ids, spans));
  EXPECT_THAT(ids, ElementsAre(1, 4, 5, 6, 10, 13, 0));
  EXPECT_THAT(spans, ElementsAre(Span{0, 2}, Span{2, 3}, Span{8, 10}, Span{10, 11}, Span{11, 12},
                                 Span{13, 16}, Span{16, 24}));
  std::vector<size_t> ends;
  ASSERT_TRUE(tokenizer->encode_with_ends("unaffable a", false, ids, ends));
  EXPECT_THAT(ends, ElementsAre(2, 5, 9, 11));
}

TEST(WordPieceModel, LongTextsTakeTimeInProportion) {
  const auto tokenizer = tokenizer_of(word_piece(kWords, "10000"));
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(9990, 'a') + std::to_string(i) + " ";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(encode(*tokenizer, text), std::vector<int32_t>(200, 0));
  EXPECT_EQ(encode(*tokenizer, std::string(1 << 24, 'a')), std::vector<int32_t>(1, 0));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(WordPieceModel, RefusesBrokenModelsByField) {
  EXPECT_THAT(tokenizer_refusal(word_piece(kWords, "1000000")),
              HasSubstr("model.max_input_chars_per_word is 1000000, expected an integer from 0 to 10000"));
  EXPECT_THAT(tokenizer_refusal(tokenizer_json({{"model", R"({"type": "WordPiece", "unk_token": "[UNK]",
      "vocab": {"a": 0}})"}})),
              HasSubstr("model.continuing_subword_prefix is missing"));
  std::string bytes = word_piece(kWords);
  bytes.replace(bytes.find(R"({"type": "BertPreTokenizer"})"), 28,
                R"({"type": "ByteLevel", "add_prefix_space": false})");
  EXPECT_THAT(tokenizer_refusal(bytes), HasSubstr("model.type is WordPiece behind a ByteLevel"));
}

}  // namespace
}  // namespace plimsoll::tokenizers
