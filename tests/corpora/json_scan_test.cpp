// The scanner against the project's other JSON reader, and what it does on purpose otherwise.
#include "corpora/json_scan.h"

#include <gtest/gtest.h>

#include <random>

#include "io/json.h"
#include "io/json_cursor.h"

namespace plimsoll::corpora {
namespace {

bool accepts(std::string_view text) {
  JsonScanner scanner(text);
  std::string_view value;
  return scanner.value(value) && scanner.expect_end();
}

/// Random text that is often JSON.
std::string random_json(std::mt19937& random) {
  static constexpr std::string_view kParts[] = {"{",     "}",       "[",      "]",      ",",    ":",
                                                "\"a\"", "\"\\n\"", "1",      "-0.5",   "1e+3", "true",
                                                "false", "null",    "\"b\":", "\"c\":", " ",    "\"\\u00e9\"",
                                                "01",    "\"x",     "\\",     "-",      ".5",   "\t"};
  std::string text;
  const size_t count = 1 + random() % 9;
  for (size_t i = 0; i < count; ++i) text += kParts[random() % std::size(kParts)];
  return text;
}

TEST(JsonScanner, AcceptsWhatTheOtherReaderAccepts) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 60000; ++i) {
    const std::string text = random_json(random);
    io::JsonCursor cursor(text);
    const bool expected = cursor.skip() && cursor.at_end();
    ASSERT_EQ(accepts(text), expected) << text;
    accepted += expected;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(JsonScanner, DiffersWherePythonDoes) {
  EXPECT_TRUE(accepts("[NaN, Infinity, -Infinity]"));
  EXPECT_TRUE(accepts("\"\\ud83d\""));
  EXPECT_TRUE(accepts("\"\xff\""));
  EXPECT_FALSE(accepts("\"a\nb\""));
  EXPECT_FALSE(accepts("\"a\tb and more than eight bytes\""));
  EXPECT_TRUE(accepts(std::string(200, '[') + std::string(200, ']')));
  EXPECT_FALSE(accepts(std::string(300, '[') + std::string(300, ']')));
}

TEST(JsonScanner, StringsMeanWhatTheOtherReaderSays) {
  std::mt19937 random(2);
  static constexpr std::string_view kParts[] = {"a",
                                                "\\\"",
                                                "\\\\",
                                                "\\/",
                                                "\\b\\f\\n\\r\\t",
                                                "\\u0041",
                                                "\xc3\xa9",
                                                "\\u20AC",
                                                "\\ud83d\\ude00",
                                                "long stretch of plain text",
                                                "\\u0000"};
  for (int i = 0; i < 5000; ++i) {
    std::string text = "\"";
    for (size_t n = random() % 7; n > 0; --n) text += kParts[random() % std::size(kParts)];
    text += '"';
    std::string expected, unescaped, quoted;
    ASSERT_TRUE(io::JsonCursor(text).string(expected)) << text;
    append_unescaped(text, unescaped);
    ASSERT_EQ(unescaped, expected) << text;
    append_quoted(unescaped, quoted);
    std::string again;
    ASSERT_TRUE(io::JsonCursor(quoted).string(again)) << quoted;
    ASSERT_EQ(again, unescaped);
  }
}

TEST(JsonScanner, HalvesOfPairsBecomeReplacements) {
  const std::string text = R"("a\ud83d\u0041\ude00b\ud83d\ud83d\ude00\ud800")";
  std::string out;
  append_unescaped(text, out);
  EXPECT_EQ(out,
            "a\xEF\xBF\xBD"
            "A\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xF0\x9F\x98\x80\xEF\xBF\xBD");
  JsonScanner scanner(text);
  std::string_view value;
  ASSERT_TRUE(scanner.string(value));
  EXPECT_EQ(scanner.lone_surrogates(), (std::vector<size_t>{2, 14, 21, 39}));
}

}  // namespace
}  // namespace plimsoll::corpora
