// Grapheme clusters by hand; tests/interop/tokenizers_compare.py holds charsmaps against the package, and
// make_grapheme_tables.py the classes.
#include "tokenizers/graphemes.h"

#include <gtest/gtest.h>

#include <string>

namespace plimsoll::tokenizers {
namespace {

/// The text with a bar between clusters.
std::string parted(const std::string& text) {
  std::string out;
  GraphemeBreaks breaks;
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const CodePoint c = decode(p);
    if (breaks.next(c.value) && !out.empty()) out += '|';
    out.append(p, static_cast<size_t>(c.length));
    p += c.length;
  }
  return out;
}

TEST(Graphemes, LinesAndMarks) {
  EXPECT_EQ(parted("ab\r\n\r\rc\n"), "a|b|\r\n|\r|\r|c|\n");
  EXPECT_EQ(parted("e\u0301\u0323x\u200d\u0903"), "e\u0301\u0323|x\u200d\u0903");
  EXPECT_EQ(parted("\n\u0301a"), "\n|\u0301|a");
  EXPECT_EQ(parted("\u0600a\u0600\n"), "\u0600a|\u0600|\n");
}

TEST(Graphemes, Hangul) {
  EXPECT_EQ(parted("\u1100\u1161\u11a8\u1100"), "\u1100\u1161\u11a8|\u1100");
  EXPECT_EQ(parted("\uac00\u11a8\uac01\u1161"), "\uac00\u11a8|\uac01|\u1161");
  EXPECT_EQ(parted("\u1100\uac01\u11a8"), "\u1100\uac01\u11a8");
}

TEST(Graphemes, EmojiAndFlags) {
  EXPECT_EQ(parted("\U0001F468\u200d\U0001F469\U0001F44D\U0001F3FD"),
            "\U0001F468\u200d\U0001F469|\U0001F44D\U0001F3FD");
  EXPECT_EQ(parted("a\u200d\U0001F469"), "a\u200d|\U0001F469");
  EXPECT_EQ(parted("\u2764\ufe0f\u200d\U0001F525\u200d\u200d\U0001F525"),
            "\u2764\ufe0f\u200d\U0001F525\u200d\u200d|\U0001F525");
  EXPECT_EQ(parted("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7\U0001F1EC"),
            "\U0001F1E9\U0001F1EA|\U0001F1EB\U0001F1F7|\U0001F1EC");
}

TEST(Graphemes, IndicConjuncts) {
  EXPECT_EQ(parted("\u0915\u094d\u0915\u0915"), "\u0915\u094d\u0915|\u0915");
  EXPECT_EQ(parted("\u0915\u093c\u094d\u0301\u0915"), "\u0915\u093c\u094d\u0301\u0915");
  EXPECT_EQ(parted("a\u094d\u0915"), "a\u094d|\u0915");
}

TEST(Graphemes, WhatBeginsAClusterWhateverPrecedes) {
  EXPECT_TRUE(begins_grapheme('a'));
  EXPECT_TRUE(begins_grapheme(' '));
  EXPECT_TRUE(begins_grapheme('\r'));
  EXPECT_TRUE(begins_grapheme(0x4F60));
  for (const uint32_t c : {0x0Au, 0x301u, 0x200Du, 0x1161u, 0xAC00u, 0x915u, 0x1F468u, 0x1F1E9u})
    EXPECT_FALSE(begins_grapheme(c)) << c;
}

}  // namespace
}  // namespace plimsoll::tokenizers
