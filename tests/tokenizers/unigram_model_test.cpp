// The Unigram model through a tokenizer; recorded/unigram*.json hold what the package makes of more texts.
#include "tokenizers/unigram_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tokenizers/small_tokenizer.h"

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string model_json(const std::string& vocab, const std::string& unk_id = "0",
                       const std::string& more = "") {
  return R"({"type": "Unigram", "unk_id": )" + unk_id + R"(, "vocab": )" + vocab + more + "}";
}
std::string unigram(const std::string& vocab, const std::string& unk_id = "0", const std::string& more = "") {
  return tokenizer_json({{"model", model_json(vocab, unk_id, more)}});
}

const std::string kPieces = R"([["<unk>", 0], ["a", 0.0], ["b", 0.0], ["c", 0.0], ["d", 0.0], ["cd", 1.0],
  ["ab", 2.0], ["abc", 5.0], ["abcd", 10.0]])";

// By the tokenizers package (0.23.3).
TEST(UnigramModel, TakesTheLargestSum) {
  const auto tokenizer = tokenizer_of(unigram(kPieces));
  EXPECT_THAT(encode(*tokenizer, "abcdacdxx"), ElementsAre(8, 1, 5, 0));
  EXPECT_THAT(encode(*tokenizer, "abcd"), ElementsAre(8));
  EXPECT_THAT(encode(*tokenizer, "xaxxb"), ElementsAre(0, 1, 0, 2)) << "a run of unknown characters is one";
  EXPECT_THAT(encode(*tokenizer, "<unk>x"), ElementsAre(0)) << "the piece itself is one of them";
  EXPECT_THAT(encode(*tokenizer, ""), IsEmpty());
}

TEST(UnigramModel, OfEqualSumsTheFirstFoundCounts) {
  const auto tokenizer = tokenizer_of(
      unigram(R"([["<unk>", 0], ["a", -1.0], ["aa", -1.0], ["aaa", -2.0], ["ab", -2.0], ["b", -1.0]])"));
  EXPECT_THAT(encode(*tokenizer, "aaa"), ElementsAre(3));
  EXPECT_THAT(encode(*tokenizer, "ab"), ElementsAre(4));
  EXPECT_THAT(encode(*tokenizer, "aaaa"), ElementsAre(2, 2));
  EXPECT_THAT(encode(*tokenizer, "aaaaa"), ElementsAre(2, 3));
}

TEST(UnigramModel, APieceTwiceHasItsLaterId) {
  const auto tokenizer = tokenizer_of(unigram(R"([["<unk>", 0], ["a", -1.0], ["b", -1.0], ["a", -5.0]])"));
  EXPECT_THAT(encode(*tokenizer, "aab"), ElementsAre(3, 3, 2));
  EXPECT_EQ(tokenizer->vocab_size(), 4);
  EXPECT_EQ(tokenizer->token(1), "a");
  EXPECT_EQ(tokenizer->id_of("a"), 3);
}

TEST(UnigramModel, UnknownCharactersFallBackToBytes) {
  const std::string vocab =
      R"([["<unk>", 0], ["a", -1.0], ["<0xC3>", -2.0], ["<0xA9>", -2.0], ["<0xC4>", -2.0]])";
  const auto bytes = tokenizer_of(unigram(vocab, "0", R"(, "byte_fallback": true)"));
  EXPECT_THAT(encode(*bytes, "a\u00e9a"), ElementsAre(1, 2, 3, 1));
  EXPECT_THAT(encode(*bytes, "\u00e9\u00e9"), ElementsAre(2, 3, 2, 3));
  EXPECT_THAT(encode(*bytes, "\u00e9\u4f60a"), ElementsAre(0, 1))
      << "all of a run's bytes have tokens, or none";
  std::vector<int32_t> ids;
  std::vector<Span> spans;
  ASSERT_TRUE(bytes->encode_with_spans("a\u00e9\u00e9", false, ids, spans));
  EXPECT_THAT(spans, ElementsAre(Span{0, 1}, Span{1, 3}, Span{1, 3}, Span{3, 5}, Span{3, 5}));
  EXPECT_THAT(encode(*tokenizer_of(unigram(vocab)), "\u00e9"), ElementsAre(0));
}

TEST(UnigramModel, SpansOfARunOfUnknownCharacters) {
  const auto tokenizer = tokenizer_of(unigram(kPieces));
  std::vector<int32_t> ids;
  std::vector<Span> spans;
  ASSERT_TRUE(tokenizer->encode_with_spans("ab\u4f60xcd", false, ids, spans));
  EXPECT_THAT(ids, ElementsAre(6, 0, 5));
  EXPECT_THAT(spans, ElementsAre(Span{0, 2}, Span{2, 6}, Span{6, 8}));
}

TEST(UnigramModel, NeedsItsUnknownPieceOnlyWhenItIsUsed) {
  const auto tokenizer = tokenizer_of(unigram(R"([["a", -1.0], ["ab", -1.0]])", "null"));
  std::vector<int32_t> ids = {5};
  EXPECT_TRUE(tokenizer->encode("aaba", false, ids));
  const auto status = tokenizer->encode("b", false, ids);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message(), HasSubstr("model.unk_id is null"));
  EXPECT_THAT(ids, ElementsAre(5, 0, 1, 0));
  EXPECT_THAT(encode(*tokenizer_of(unigram("[]", "null")), ""), IsEmpty());
}

TEST(UnigramModel, RefusesWhatIsBroken) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {unigram(kPieces, "9"), "model.unk_id is 9, but model.vocab has 9 pieces"},
      {unigram(kPieces, "-1"), "model.unk_id is -1"},
      {unigram(kPieces, "18446744073709551615"), "model.unk_id"},
      {unigram("[]"), "model.unk_id is 0, but model.vocab has 0 pieces"},
      {unigram(R"({"a": 0})"), "model.vocab is not there, or is no list of pieces"},
      {unigram(R"([["a"]])"), "model.vocab[0] breaks off"},
      {unigram(R"([["a", 0], []])"), "model.vocab[1] breaks off"},
      {unigram(R"([["a", 0], ["b", "c"]])"), "model.vocab[1] is or has a string"},
      {unigram(R"([["a", null]])"), "model.vocab[0] is or has null"},
      {unigram(R"([["a", 0, 1]])"), "model.vocab[0] is or has a number"},
      {unigram(R"([[0, "a"]])"), "model.vocab[0] is or has a number"},
      {unigram(R"([["a", NaN]])"), "broken JSON"},
      {unigram(R"([["a", 1e999]])"), "broken JSON"},
      {unigram(R"(["a"])"), "model.vocab[0] is or has a string"},
      {unigram(R"([{"a": 0}])"), "model.vocab[0] is or has a map"},
      {unigram(kPieces, "0", R"(, "byte_fallback": 1)"), "model.byte_fallback is 1"},
      {tokenizer_json({{"model", model_json(kPieces)},
                       {"pre_tokenizer", R"({"type": "ByteLevel", "add_prefix_space": false})"}}),
       "model.type is Unigram behind a ByteLevel pre-tokenizer"},
      {tokenizer_json({{"model", model_json(kPieces)},
                       {"normalizer", R"({"type": "Precompiled", "precompiled_charsmap": "A"})"}}),
       "normalizer.precompiled_charsmap is no base64"},
      {tokenizer_json({{"model", model_json(kPieces)},
                       {"normalizer", R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": " "})"}}),
       "of regular expressions ' {2,}' alone is supported"},
  };
  for (const auto& [json, message] : cases) EXPECT_THAT(tokenizer_refusal(json), HasSubstr(message)) << json;
}

TEST(UnigramModel, FilesOf2020DoNotNameTheKind) {
  const auto tokenizer = tokenizer_of(R"({"model": {"unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]}})");
  EXPECT_THAT(encode(*tokenizer, "aab"), ElementsAre(1, 1, 0));
}

TEST(UnigramModel, WhatDecidesIdsIsInTheHash) {
  const auto hash = [](const std::string& json) { return tokenizer_of(json)->vocabulary_hash(); };
  const std::string vocab = R"([["<unk>", 0], ["a", -1.0], ["b", -1.0], ["ab", -2.0]])";
  EXPECT_EQ(hash(unigram(vocab)), hash(unigram(vocab, "0", R"(, "byte_fallback": false)")));
  EXPECT_NE(hash(unigram(vocab)), hash(unigram(vocab, "1")));
  EXPECT_NE(hash(unigram(vocab)), hash(unigram(R"([["<unk>", 0], ["a", -1.0], ["b", -1.0], ["ab", -2.5]])")));
}

/// A word of a megabyte: no time that grows with its square, no recursion.
TEST(UnigramModel, LongWordsTakeLinearTime) {
  const auto tokenizer = tokenizer_of(unigram(kPieces));
  std::string text;
  while (text.size() < 1'000'000) text += "abcd";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(encode(*tokenizer, text).size(), text.size() / 4);
  EXPECT_EQ(encode(*tokenizer, std::string(1'000'000, 'x')).size(), 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  EXPECT_EQ(tokenizer->last_safe_cut(text.substr(0, 5000)), 0u) << "a word is never cut";
}

/// Between pieces cut at spaces nothing changes, where blanks are stripped and joined too.
TEST(UnigramModel, TextsAreCutAtSpaces) {
  const auto tokenizer = tokenizer_of(
      tokenizer_json({{"model", model_json(kPieces)},
                      {"normalizer", R"({"type": "Sequence", "normalizers": [
            {"type": "Strip", "strip_left": false, "strip_right": true},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "\u2581"}]})"},
                      {"pre_tokenizer", R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": true}]})"}}));
  EXPECT_EQ(tokenizer->last_safe_cut("abcd abcd abc"), 9u);
  EXPECT_EQ(tokenizer->last_safe_cut("abcd   abc"), 4u) << "not within a run of blanks";
  EXPECT_EQ(tokenizer->last_safe_cut("abcdabcd"), 0u);
}

}  // namespace
}  // namespace plimsoll::tokenizers
