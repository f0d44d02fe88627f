// The rules' corner cases, by hand from the regular expressions; recorded_test holds whole texts against the
// package.
#include "data/tokenizer/split_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/tokenizer/merges.h"
#include "data/tokenizer/unicode.h"
#include "data/tokenizer/unicode_forms.h"

namespace plimsoll::tokenizer {
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

TEST(SplitRules, AreRecognisedByTheirText) {
  EXPECT_EQ(
      recognise_split_rule(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
      SplitRule::kGpt2);
  EXPECT_EQ(recognise_split_rule(R"(\s+)"), std::nullopt);
}

TEST(Unicode, RepairsBrokenUtf8AsPythonDoes) {
  const auto repaired = [](std::string_view text) {
    std::string out;
    append_repaired(text, out);
    return out;
  };
  EXPECT_EQ(repaired("a\xFF"
                     "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(repaired("\xE4\xBD|\xF0\x9F\x98|\xC0\x80|\xED\xA0\x80|\xF4\x90\x80\x80"),
            "\uFFFD|\uFFFD|\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(repaired("plain ASCII, \xC3\xA9"), "plain ASCII, \u00e9");
  EXPECT_EQ(valid_utf8_prefix("0123456789\xE4"), 10u);
}

TEST(Unicode, CodePointsThereAndBack) {
  std::string text;
  for (const uint32_t c : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    text.clear();
    append_utf8(c, text);
    EXPECT_EQ(decode(text.data()).value, c);
    EXPECT_EQ(decode_before(text.data() + text.size()).value, c);
    EXPECT_EQ(valid_utf8_prefix(text), text.size());
  }
}

TEST(UnicodeForms, AreThoseOfTheOlderTables) {
  std::string out;
  EXPECT_FALSE(to_unicode_form(UnicodeForm::kNfc, "caf\u00e9 \u4f60", out));
  ASSERT_TRUE(to_unicode_form(UnicodeForm::kNfc, "cafe\u0301 \u212b", out));
  EXPECT_EQ(out, "caf\u00e9 \u00c5");
  ASSERT_TRUE(to_unicode_form(UnicodeForm::kNfkd, "\uFB01 \u32FF", out));  // U+32FF is of Unicode 12.1
  EXPECT_EQ(out, "fi \u32FF");
  out.clear();
  append_lowercase(0x130, out);
  append_lowercase(0x16EA0, out);  // of Unicode 17
  EXPECT_EQ(out, "i\u0307\U00016EBB");
}

TEST(UnicodeForms, LongRunsOfMarksTakeTimeInProportion) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i) text += "\u0301\u0316";
  std::string out;
  ASSERT_TRUE(to_unicode_form(UnicodeForm::kNfc, text, out));  // quadratic, it would take minutes
  EXPECT_EQ(out.size(), text.size() - 1);  // the first U+0301 makes one character with the letter
  EXPECT_TRUE(out.starts_with("\u00e1\u0316\u0316"));
}

/// The definition, quadratic.
void merge_plainly(const MergeTable& merges, std::vector<int32_t>& symbols) {
  while (true) {
    size_t best = symbols.size();
    uint64_t least = MergeTable::kNone;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      if (merges.find(symbols[i], symbols[i + 1]) >> 32 < least >> 32) {
        least = merges.find(symbols[i], symbols[i + 1]);
        best = i;
      }
    if (best == symbols.size()) return;
    symbols[best] = static_cast<int32_t>(least & 0xFFFFFFFF);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Merges, ShortAndLongLoopsFollowTheDefinition) {
  uint32_t state = 1;
  const auto draw = [&state](uint32_t below) {
    return (state = state * 1664525u + 1013904223u) / 65536 % below;
  };
  MergeScratch scratch;
  for (int round = 0; round < 300; ++round) {
    MergeTable merges(40);
    for (uint32_t rank = 0; rank < 40; ++rank)
      merges.set(static_cast<int32_t>(draw(8)), static_cast<int32_t>(draw(8)), rank,
                 static_cast<int32_t>(draw(12)));
    for (const uint32_t size : {1u, 2u, 5u, 63u, 64u, 65u, 200u}) {
      std::vector<int32_t> symbols;
      for (uint32_t i = 0; i < size; ++i) symbols.push_back(static_cast<int32_t>(draw(4)));
      std::vector<int32_t> expected = symbols;
      merge_plainly(merges, expected);
      merge_symbols(merges, symbols, scratch);
      ASSERT_EQ(symbols, expected) << round << " " << size;
    }
  }
}

TEST(Merges, RunsAndRepetitionsFollowTheDefinition) {
  // a, b, c; aa, aaaa, aaaaaaaa; ab, abab; (abab, c) goes before its parts, (aa, b) before what makes aa.
  MergeTable merges(8);
  const int32_t pairs[][3] = {{9, 2, 10}, {5, 1, 11}, {0, 0, 5}, {5, 5, 6}, {6, 6, 7}, {0, 1, 8}, {8, 8, 9}};
  for (uint32_t rank = 0; rank < std::size(pairs); ++rank)
    merges.set(pairs[rank][0], pairs[rank][1], rank, pairs[rank][2]);
  MergeScratch scratch;
  for (const std::string_view unit : {"a", "ab", "aab", "ababc", "aaaaaaaaaaaaaaaaab", "cab"})
    for (const size_t size : {65u, 256u, 257u, 700u}) {
      std::vector<int32_t> symbols;
      for (size_t i = 0; i < size; ++i) symbols.push_back(unit[i % unit.size()] - 'a');
      std::vector<int32_t> expected = symbols;
      merge_plainly(merges, expected);
      merge_symbols(merges, symbols, scratch);
      ASSERT_EQ(symbols, expected) << unit << " " << size;
    }
}

}  // namespace
}  // namespace plimsoll::tokenizer
