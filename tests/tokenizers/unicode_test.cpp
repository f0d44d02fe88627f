// UTF-8: broken text repaired, code points there and back.
#include "tokenizers/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plimsoll::tokenizers {
namespace {

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

}  // namespace
}  // namespace plimsoll::tokenizers
