// BERT's normalizer by hand; tests/interop/tokenizers_compare.py holds every code point against the package.
#include "tokenizers/bert_normalizer.h"

#include <gtest/gtest.h>

#include <string>

#include "io/json.h"

namespace plimsoll::tokenizers {
namespace {

BertNormalizer normalizer(const std::string& rules) {
  const auto tree = io::parse_json("{" + rules + "}");
  EXPECT_TRUE(tree);
  auto made = BertNormalizer::build(Field(&*tree, "normalizer", "t.json"));
  EXPECT_TRUE(made) << made.error().message();
  return made ? *made : BertNormalizer();
}

/// As BertNormalizer(clean_text, handle_chinese_chars, strip_accents, lowercase) of the package takes them.
std::string normalized(bool clean, bool han, const char* accents, bool lower, const std::string& text) {
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  const BertNormalizer made =
      normalizer(R"("clean_text": )" + flag(clean) + R"(, "handle_chinese_chars": )" + flag(han) +
                 R"(, "strip_accents": )" + accents + R"(, "lowercase": )" + flag(lower));
  std::string out;
  return made.apply(text, out) ? out : text;
}

// By the tokenizers package (0.23.3).
TEST(BertNormalizer, EachRuleAlone) {
  const std::string text = std::string("A\0b\tC\u00e9 \u4f60\u597d", 14) + "\u200d\u3000\ufffd.";
  EXPECT_EQ(normalized(false, false, "false", false, text), text);
  EXPECT_EQ(normalized(true, false, "false", false, text), "Ab C\u00e9 \u4f60\u597d .");
  EXPECT_EQ(normalized(false, true, "false", false, "a\u4f60\u597db"), "a \u4f60  \u597d b");
  EXPECT_EQ(normalized(false, false, "true", false, "\u00c9e\u0301\u1ec7"), "Eee");
  EXPECT_EQ(normalized(false, false, "false", true, "\u00c9\u0130\u03a3"), "\u00e9i\u0307\u03c3");
}

TEST(BertNormalizer, AccentsFollowTheCaseWhereNothingIsSaid) {
  EXPECT_EQ(normalized(true, true, "null", true, "\u00c9\u0130\u212b"), "eia");
  EXPECT_EQ(normalized(true, true, "null", false, "\u00c9"), "\u00c9");
  EXPECT_EQ(normalized(true, true, "false", true, "\u00c9"), "\u00e9");
  EXPECT_EQ(normalized(true, true, "null", true, "\uac01\uf900"), "\u1100\u1161\u11a8 \u8c48 ");
}

// U+302E and U+1D165 are marks that stay: NFD sorts them by their classes, 224 and 216.
TEST(BertNormalizer, MarksThatStayAreSorted) {
  EXPECT_EQ(normalized(true, true, "null", true, "A\u302e\U0001D165\u0301b"), "a\U0001D165\u302eb");
  EXPECT_EQ(normalized(true, true, "false", true, "A\u302e\U0001D165"), "a\u302e\U0001D165");
  EXPECT_EQ(normalized(true, true, "null", true, "A\u302e\x0b\t\u4f60"), "a\u302e  \u4f60 ");
}

TEST(BertNormalizer, RefusesWhatIsNoRule) {
  const auto tree = io::parse_json(R"({"clean_text": true, "handle_chinese_chars": true, "lowercase": 1})");
  ASSERT_TRUE(tree);
  const auto made = BertNormalizer::build(Field(&*tree, "normalizer", "t.json"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(), "normalizer.lowercase is 1, expected true or false: t.json");
}

}  // namespace
}  // namespace plimsoll::tokenizers
