// Patterns of whole texts: what matches, what is none, and that the worst take no time.
#include "base/pattern.h"

#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <string>

namespace plimsoll {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  const auto parsed = Pattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern << ": " << (parsed ? "" : parsed.error().what);
  return parsed && parsed->matches(text);
}

TEST(Pattern, MatchesWholeTexts) {
  const char* kQ = "model.layers.11.self_attn.q_proj";
  EXPECT_TRUE(matches(R"(.*\.(q|v)_proj)", kQ));
  EXPECT_FALSE(matches("q_proj", kQ));
  EXPECT_TRUE(matches(R"(model\.layers\.(?:1[0-5]|2\d)\..*)", kQ));
  EXPECT_FALSE(matches(R"(model\.layers\.\d\..*)", kQ));
  EXPECT_TRUE(matches(R"(^(?!.*vision).*[qkv]_proj$)", kQ));
  EXPECT_FALSE(matches(R"(^(?!.*self).*[qkv]_proj$)", kQ));
  EXPECT_TRUE(matches(R"((?=model)\w+(\.\w+){4})", kQ));
  EXPECT_TRUE(matches(R"((?P<all>.+?)\bq_proj\b)", kQ));
  EXPECT_TRUE(matches("a{2,3}b{0,}c{1}d?", "aaac"));
  EXPECT_FALSE(matches("a{2,3}", "aaaa"));
  EXPECT_TRUE(matches("[]a^-]+", "]a^-"));
  EXPECT_TRUE(matches("[^a-c]*", "xyz"));
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("(a*)*|b", "aaa"));
  EXPECT_TRUE(matches("a||b", ""));
}

/// Random patterns of few letters against the library's answer.
TEST(Pattern, AgreesWithTheLibrary) {
  uint32_t seed = 1;
  const auto roll = [&](uint32_t n) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % n;
  };
  const char* const pieces[] = {"a", "b", ".", "(a|b)", "(?:ab)", "[ab]", "(?=a)", "(?!b)", "a|b", "(b?a)"};
  const char* const counts[] = {"", "", "*", "+", "?", "{1,2}", "*?"};
  for (int turn = 0; turn < 2000; ++turn) {
    std::string pattern, text;
    for (uint32_t i = 0; i < 1 + roll(4); ++i) {
      const std::string piece = pieces[roll(10)];
      const bool looks = piece.starts_with("(?=") || piece.starts_with("(?!");
      pattern += piece + (looks ? "" : counts[roll(7)]);
    }
    for (uint32_t i = 0; i < roll(6); ++i) text += roll(2) == 0 ? 'a' : 'b';
    EXPECT_EQ(matches(pattern, text), std::regex_match(text, std::regex(pattern))) << pattern << " " << text;
  }
}

TEST(Pattern, SaysWhatIsNone) {
  const std::pair<std::string, const char*> rows[] = {
      {"(a", "'(' without ')'"},
      {"a)", "')' without '('"},
      {"*a", "nothing to repeat"},
      {"[a", "'[' without ']'"},
      {"a\\", "at the end"},
      {R"((a)\1)", "not available"},
      {"(?<=a)b", "look-behind"},
      {"a{3,2}", "that is none"},
      {"[b-a]", "that is none"},
      {"a**", "repeats"},
      {std::string(2001, 'a'), "2,000"},
      {"((a{999}){999}){9}", "too much"},
      {std::string(200, '('), "too deeply"},
  };
  for (const auto& [pattern, what] : rows) {
    const auto parsed = Pattern::parse(pattern);
    ASSERT_FALSE(parsed) << pattern;
    EXPECT_NE(parsed.error().what.find(what), std::string::npos) << parsed.error().what;
  }
}

/// What takes a backtracking matcher for ever, or its stack.
TEST(Pattern, TheWorstTakeNoTime) {
  const auto start = std::chrono::steady_clock::now();
  const std::string many(300, 'a');
  EXPECT_FALSE(matches("(a*)*b", many));
  EXPECT_FALSE(matches("(a|a)*b", many));
  EXPECT_FALSE(matches("(a?){90}a{90}b", many));
  EXPECT_FALSE(matches("(?:(?=(?:(?=(?:(?=a*).)*).)*).)*b", many));
  matches("(.*.*)*(.*.*)*(.*.*)*x", std::string(100000, 'a'));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace plimsoll
