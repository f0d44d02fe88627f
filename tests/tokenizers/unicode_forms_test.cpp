// Unicode's normal forms.
#include "tokenizers/unicode_forms.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

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

}  // namespace
}  // namespace plimsoll::tokenizers
