// Trees: printing that reads back, merging, scalars of YAML's core schema, JSON and YAML within their limits.
#include "io/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "io/json.h"
#include "io/scalar.h"
#include "io/yaml.h"

namespace plimsoll::io {
namespace {

using Kind = Tree::Kind;
using testing::HasSubstr;

TEST(Scalar, FollowsTheCoreSchema) {
  struct Row {
    const char* text;
    Kind kind;
    double number;
  };
  const Row rows[] = {
      {"", Kind::kNull, 0},
      {"~", Kind::kNull, 0},
      {"null", Kind::kNull, 0},
      {"true", Kind::kBool, 0},
      {"False", Kind::kBool, 0},
      {"no", Kind::kString, 0},
      {"12", Kind::kInteger, 12},
      {"-7", Kind::kInteger, -7},
      {"+7", Kind::kInteger, 7},
      {"0x1f", Kind::kInteger, 31},
      {"0o17", Kind::kInteger, 15},
      {"0x-1", Kind::kString, 0},
      {"007", Kind::kInteger, 7},
      {"1e-4", Kind::kNumber, 1e-4},
      {"1.", Kind::kNumber, 1},
      {".5", Kind::kNumber, 0.5},
      {"-.5e2", Kind::kNumber, -50},
      {".", Kind::kString, 0},
      {"1e", Kind::kString, 0},
      {"1_000", Kind::kString, 0},
      {"-", Kind::kString, 0},
      {"1e999", Kind::kNumber, INFINITY},
      {"-1e999", Kind::kNumber, -INFINITY},
      {"1e-999", Kind::kNumber, 0},
      {".inf", Kind::kNumber, INFINITY},
      {"-.inf", Kind::kNumber, -INFINITY},
      {"9223372036854775807", Kind::kInteger, 9223372036854775807.0},
      {"9223372036854775808", Kind::kNumber, 9223372036854775808.0},
  };
  for (const Row& row : rows) {
    const Tree tree = resolve_plain_scalar(row.text);
    EXPECT_EQ(tree.kind, row.kind) << row.text;
    if (row.kind == Kind::kInteger || row.kind == Kind::kNumber) {
      EXPECT_EQ(tree.number, row.number) << row.text;
    }
  }
  EXPECT_TRUE(std::isnan(resolve_plain_scalar(".nan").number));
}

TEST(Tree, PrintsWhatReadsBack) {
  const char* texts[] = {"{a: 1, b: [x, 2.5, null, true], c: {d: \"no: yes\"}}",
                         "[]",
                         "{}",
                         "\"true\"",
                         "\"12\"",
                         "\"\"",
                         "\"-x\"",
                         "\"a\\nb\\tc\\\"d\\\\e\"",
                         "0.0003",
                         "-1e-08",
                         "-0.0",
                         "\"~\"",
                         "{\"a b\": \"#x\"}"};
  for (const char* text : texts) {
    const auto tree = parse_yaml(text);
    ASSERT_TRUE(tree) << text << ": " << tree.error().message();
    EXPECT_EQ(to_yaml_flow(*tree), text);
    const auto json = parse_json(to_json(*tree));
    ASSERT_TRUE(json) << to_json(*tree);
    EXPECT_EQ(to_yaml_flow(*json), text);
  }
}

TEST(Tree, MergesMapsMemberByMember) {
  Tree tree = *parse_yaml("{a: {x: 1, y: 2}, b: 3}");
  tree.merge(*parse_yaml("{a: {y: [5]}, c: 4}"));
  EXPECT_EQ(to_yaml_flow(tree), "{a: {x: 1, y: [5]}, b: 3, c: 4}");
}

TEST(Yaml, AliasesAreCopies) {
  const auto tree = parse_yaml("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n");
  ASSERT_TRUE(tree);
  EXPECT_EQ(to_yaml_flow(*tree), "{a: {k: 1}, b: {k: 1}, c: [{k: 1}, {k: 1}]}");
}

TEST(Yaml, KnowsItsLines) {
  const auto tree = parse_yaml("a: 1\n\nb:\n  c: 2\n");
  ASSERT_TRUE(tree);
  EXPECT_EQ(tree->find("a")->line, 1);
  EXPECT_EQ(tree->find("b")->find("c")->line, 4);
}

/// An alias bomb of `levels` levels, each nine times the one before.
std::string alias_bomb(int levels) {
  std::string text = "a0: &a0 [x, x, x]\n";
  for (int i = 1; i < levels; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 9; ++j) text += ", " + before;
    text += "]\n";
  }
  return text;
}

TEST(Yaml, RefusesBrokenText) {
  struct Row {
    std::string text;
    const char* what;
  };
  const Row rows[] = {
      {"a: [1, 2", "line"},
      {"a: 1\na: 2\n", "'a' stands twice"},
      {std::string(100'000, '['), "broken YAML"},
      {std::string(100'000, '{'), "broken YAML"},
      {"a: " + std::string(100'000, '[') + std::string(100'000, ']'), "nested deeper than 64 levels"},
      {"a: " + std::string(100, '[') + std::string(100, ']'), "nested deeper than 64 levels"},
      {alias_bomb(20), "too many values"},
      {"a: &x [*x]", "broken YAML"},
      {"a: *nothing", "broken YAML"},
      {"a: !!python/object 1", "means nothing here"},
      {"a: !!map {}", "means nothing here"},
      {"? [a]\n: 1", "stands where a key should"},
      {"? {a: 1}\n: 1", "stands where a key should"},
      {": 1", "a key must be a word"},
      {"a: 1\n---\nb: 2\n", "more than one document"},
      {"a: \"\\q\"", "broken YAML"},
      {"\tb: 1", "broken YAML"},
      {std::string(2 << 20, 'x'), "more than the"},
  };
  for (const Row& row : rows) {
    const auto tree = parse_yaml(row.text);
    ASSERT_FALSE(tree) << row.text.substr(0, 60);
    EXPECT_EQ(tree.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(tree.error().what, HasSubstr(row.what)) << row.text.substr(0, 60);
  }
}

TEST(Yaml, SurvivesNestedBlocks) {
  std::string sequences, keys;
  for (int i = 0; i < 50'000; ++i) sequences += "- ";
  for (int i = 0; i < 700; ++i) keys += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  EXPECT_FALSE(parse_yaml(sequences));
  EXPECT_FALSE(parse_yaml(keys));
  EXPECT_TRUE(parse_yaml(""));
}

TEST(Json, ReadsNumbersExactly) {
  const auto tree =
      parse_json(R"({"a": 9223372036854775807, "b": 18446744073709551615, "c": 1e-05, "d": -3})");
  ASSERT_TRUE(tree) << tree.error().message();
  EXPECT_EQ(tree->find("a")->integer, 9223372036854775807);
  EXPECT_EQ(tree->find("b")->kind, Kind::kNumber);
  EXPECT_EQ(tree->find("c")->number, 1e-5);
  EXPECT_EQ(tree->find("d")->integer, -3);
}

TEST(Json, RefusesBrokenText) {
  struct Row {
    std::string text;
    const char* what;
  };
  const Row rows[] = {
      {"", "broken JSON"},
      {"{\"a\": 1", "broken JSON"},
      {"{\"a\": 1} x", "broken JSON"},
      {"{\"a\": NaN}", "broken JSON"},
      {"{\"a\": 1e999}", "broken JSON"},
      {"{\"a\": 1, \"a\": 2}", "stands twice"},
      {"\"\xff\"", "broken JSON"},
      {std::string("{\"a\": 1}\0 x", 11), "zero byte"},
      {std::string(100'000, '['), "nested deeper"},
      {"[" + std::string(400'000, '0').replace(1, 0, ""), "broken JSON"},
      {std::string(2 << 20, ' '), "more than the"},
  };
  for (const Row& row : rows) {
    const auto tree = parse_json(row.text);
    ASSERT_FALSE(tree) << row.text.substr(0, 60);
    EXPECT_EQ(tree.error().code, ErrorCode::kBadData);
    EXPECT_THAT(tree.error().what, HasSubstr(row.what));
  }
}

TEST(Json, CountsValues) {
  std::string text = "[0";
  for (int i = 0; i < 300'000; ++i) text += ",0";
  const auto tree = parse_json(text + "]");
  ASSERT_FALSE(tree);
  EXPECT_THAT(tree.error().what, HasSubstr("too many values"));
}

}  // namespace
}  // namespace plimsoll::io
