// The rules' corner cases, by hand from the regular expressions; recorded_test holds whole texts against the
// package.
#include "tokenizers/split_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plimsoll::tokenizers {
namespace {

using testing::ElementsAre;

template <SplitRule R>
std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> out;
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const char* const after = piece_end<R>(p, text.data() + text.size(), properties());
    out.emplace_back(p, after);
    p = after;
  }
  return out;
}

TEST(SplitRules, Gpt2) {
  const auto cut = pieces<SplitRule::kGpt2>;
  EXPECT_THAT(cut("don't 'sup DON'T"), ElementsAre("don", "'t", " '", "sup", " DON", "'", "T"));
  EXPECT_THAT(cut("a  b   "), ElementsAre("a", " ", " b", "   "));
  EXPECT_THAT(cut("a\n\nb 12345x"), ElementsAre("a", "\n", "\n", "b", " 12345", "x"));
  EXPECT_THAT(cut(" ... \t!"), ElementsAre(" ...", " ", "\t", "!"));
}

TEST(SplitRules, Llama3AndQwen2) {
  EXPECT_THAT(pieces<SplitRule::kLlama3>("It'S 12345 (ok)\n\n  x"),
              ElementsAre("It", "'S", " ", "123", "45", " (", "ok", ")\n\n", " ", " x"));
  EXPECT_THAT(pieces<SplitRule::kQwen2>("a12\tb \n \nc"), ElementsAre("a", "1", "2", "\tb", " \n \n", "c"));
  EXPECT_THAT(pieces<SplitRule::kLongDigits>("a12345"), ElementsAre("a", "12345"));
  EXPECT_THAT(pieces<SplitRule::kQwen2>("a\u0301b"), ElementsAre("a", "\u0301b"));
  EXPECT_THAT(pieces<SplitRule::kQwenMarks>("a\u0301b"), ElementsAre("a\u0301b"));
  EXPECT_THAT(pieces<SplitRule::kLlama3>("'\u017fx"), ElementsAre("'\u017f", "x"));
}

TEST(SplitRules, Gpt4o) {
  const auto cut = pieces<SplitRule::kGpt4o>;
  EXPECT_THAT(cut("helloWorld HTTPServer don't"), ElementsAre("hello", "World", " HTTPServer", " don't"));
  EXPECT_THAT(cut("AB\u4f60CD"), ElementsAre("AB\u4f60", "CD"));
  EXPECT_THAT(cut("x //\n/y"), ElementsAre("x", " //\n/", "y"));
}

TEST(SplitRules, Tekken) {
  const auto cut = pieces<SplitRule::kTekken>;
  EXPECT_THAT(cut("helloWorld HTTPServer don't"), ElementsAre("hello", "World", " HTTPServer", " don", "'t"));
  EXPECT_THAT(cut("in 2026!"), ElementsAre("in", " ", "2", "0", "2", "6", "!"));
  EXPECT_THAT(cut("x //\n/y"), ElementsAre("x", " //\n/", "y"));
}

TEST(SplitRules, AreRecognisedByTheirText) {
  EXPECT_EQ(
      recognise_split_rule(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
      SplitRule::kGpt2);
  EXPECT_EQ(recognise_split_rule(R"(\s+)"), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::tokenizers
