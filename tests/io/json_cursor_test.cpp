// The cursor against the grammar: what it takes, where it stops.
#include "io/json_cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::io {
namespace {

using testing::HasSubstr;

TEST(JsonCursor, ReadsStrings) {
  const std::pair<const char*, std::string> rows[] = {
      {R"("")", ""},
      {R"( "a b" )", "a b"},
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("\u0041\u00e9\u20AC")", "A\u00e9\u20ac"},
      {R"("\ud83d\ude00")", "\U0001f600"},
      {"\"\\u0000\"", std::string(1, '\0')},
      {"\"\u00e9\"", "\u00e9"},
  };
  for (const auto& [text, expected] : rows) {
    JsonCursor json(text);
    std::string value = "before";
    EXPECT_TRUE(json.string(value) && json.at_end()) << text << ": " << json.error();
    EXPECT_EQ(value, expected) << text;
  }
}

TEST(JsonCursor, RefusesBrokenStrings) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "expected a string"},      {"12", "expected a string"},    {"\"abc", "breaks off"},
      {"\"abc\\", "breaks off"},      {"\"\\x\"", "unknown escape"},  {"\"\\u12", "breaks off"},
      {"\"\\u12g4\"", "hexadecimal"}, {"\"\\ud83d\"", "half"},        {"\"\\ud83d\\n\"", "half"},
      {"\"\\ude00\"", "half"},        {"\"\\ud83d\\ud83d\"", "half"}, {"\"a\nb\"", "control character"},
  };
  for (const auto& [text, what] : rows) {
    JsonCursor json(text);
    std::string value;
    EXPECT_FALSE(json.string(value)) << text;
    EXPECT_THAT(json.error(), HasSubstr(what)) << text;
  }
}

TEST(JsonCursor, ReadsIntegers) {
  const std::pair<const char*, int64_t> good[] = {{"0", 0},
                                                  {"-0", 0},
                                                  {" 12 ", 12},
                                                  {"9223372036854775807", INT64_MAX},
                                                  {"-9223372036854775808", INT64_MIN}};
  for (const auto& [text, expected] : good) {
    JsonCursor json(text);
    int64_t value = 1;
    EXPECT_TRUE(json.integer(value) && json.at_end()) << text << ": " << json.error();
    EXPECT_EQ(value, expected);
  }
  for (const char* text : {"", "-", "01", "1.0", "1e3", "+1", "\"1\"", "null", "9223372036854775808",
                           "-9223372036854775809", "99999999999999999999999", "1.", "0x10"}) {
    JsonCursor json(text);
    int64_t value = 0;
    EXPECT_FALSE(json.integer(value) && json.at_end()) << text;
  }
}

TEST(JsonCursor, SkipsValues) {
  for (const char* text : {"{}", "[]", "[[],[]]", "{\"a\":{\"b\":[1,2,{}]},\"c\":null}", "-1.5e+10", "true",
                           "false", "\"x\"", "[ 1 , \"]\" , [ ] ]", "[{\"a\":[]},0]"}) {
    JsonCursor json(text);
    EXPECT_TRUE(json.skip() && json.at_end()) << text << ": " << json.error();
  }
  for (const char* text :
       {"",        "[",        "]",          "[1",    "[1,]", "[,1]", "[1 2]",
        "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{1:2}", "[}",   "{]",   "{\"a\":[}]",
        "tru",     "nul",      "1e",         "1.",    "-",    "[[]",  "{\"a\":1 \"b\":2}"}) {
    JsonCursor json(text);
    EXPECT_FALSE(json.skip() && json.at_end()) << text;
  }
}

TEST(JsonCursor, BoundsNesting) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  JsonCursor json(deep);
  EXPECT_FALSE(json.skip());
  EXPECT_THAT(json.error(), HasSubstr("nested deeper than 64"));
  const std::string fits = std::string(64, '[') + std::string(64, ']');
  JsonCursor shallow(fits);
  EXPECT_TRUE(shallow.skip() && shallow.at_end());
}

TEST(JsonCursor, KeepsTheFirstFailure) {
  JsonCursor json("  x");
  EXPECT_FALSE(json.expect('{'));
  EXPECT_FALSE(json.fail("another"));
  EXPECT_EQ(json.error(), "expected '{' (byte 2)");
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  const std::pair<std::string, int64_t> rows[] = {
      {"", -1},
      {"plain", -1},
      {"\u00e9\u20ac\U0001f600\U0010ffff", -1},
      {"ab\x80", 2},             // a tail without its lead
      {"a\xc3", 1},              // cut
      {"\xc0\xaf", 0},           // overlong
      {"\xe0\x9f\xbf", 0},       // overlong
      {"\xf0\x8f\xbf\xbf", 0},   // overlong
      {"\xed\xa0\x80", 0},       // a surrogate
      {"x\xf4\x90\x80\x80", 1},  // beyond U+10FFFF
      {"\xff", 0},
      {"\xe2\x28\xa1", 0},
  };
  for (const auto& [text, at] : rows) EXPECT_EQ(utf8_error_at(text), at) << testing::PrintToString(text);
}

}  // namespace
}  // namespace plimsoll::io
