// What the parser takes and what it refuses, by place and text; and that no prefix or mutation of a program
// hurts it.
#include "ir/parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph_testing.h"

namespace plimsoll::ir_testing {
namespace {

TEST(Parser, PassesOverBlanksAndComments) {
  const Graph g = parsed(
      "// a golden test\n\n  graph   \"g\"\r\n\n\t%7=fill{value=2.0,shape=[ 1 , 2 ]}:f32[1,2]@a.b\n// end\n");
  EXPECT_EQ(ir::print(g), "graph \"g\"\n%0 = fill {shape=[1,2], value=2.0} : f32[1,2] @a.b\n");
}

TEST(Parser, TakesATextWithoutALastLineBreak) { EXPECT_EQ(parsed("graph \"g\"").order().size(), 0U); }

struct Reject {
  std::string line;  ///< second line of the program
  std::string message;
};

TEST(Parser, SaysWhatAndWhere) {
  const std::vector<Reject> rows = {
      {"%0 = nothing : f32[1]", "unknown op 'nothing': 2:1"},
      {"%0 fill", "expected '=': 2:4"},
      {"%x = fill", "expected a value's number in 0..2147483647: 2:2"},
      {"%99999999999999999999 = fill", "expected a value's number in 0..2147483647: 2:2"},
      {"%0 = fill {shape=[1]} : f32[1]", "fill: attribute value is missing: 2:1"},
      {"%0 = fill {shape=[1], value=1} : f32[1]", "fill: attribute value must be a float, is 1: 2:1"},
      {"%0 = fill {shape=[1], value=1.0, colour=2} : f32[1]", "fill: unknown attribute colour: 2:1"},
      {"%0 = fill {shape=[1], shape=[2], value=1.0} : f32[1]", "attribute shape stands twice: 2:28"},
      {"%0 = fill {shape=[1.5], value=1.0} : f32[1]", "expected an integer: 2:22"},
      {"%0 = fill {shape=[[1]], value=1.0} : f32[1]", "expected an integer: 2:19"},
      {"%0 = fill {shape=[], value=1.0} : f32[1]", "fill: shape must be of 1 to 6 positive extents: 2:1"},
      {"%0 = fill {shape=[1], value=1e999} : f32[1]", "expected a value: 2:34"},
      {"%0 = fill {shape=[1], value=--1} : f32[1]", "expected a value: 2:32"},
      {"%0 = fill {shape=[1], value=} : f32[1]", "expected a value: 2:29"},
      {"%0 = fill {shape=[1], value=1.0} : f32[2]", "fill: types as written differ from (f32[1]): 2:1"},
      {"%0 = fill {shape=[1], value=1.0}", "fill: types as written differ from (f32[1]): 2:1"},
      {"%0, %1 = fill {shape=[1], value=1.0} : f32[1]", "2 results, 1 types: 2:1"},
      {"%0 = fill {shape=[1], value=1.0} : f31[1]", "unknown element type 'f31': 2:39"},
      {"%0 = fill {shape=[1], value=1.0} : f32[0]", "impossible shape [0]: 2:42"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1,1,1,1,1,1,1]", "too many axes: 2:53"},
      {"%0 = fill {shape=[1], value=1.0} : f32[281474976710656,2]",
       "impossible shape [281474976710656,2]: 2:58"},
      {"%0 = fill {shape=[1], value=1.0} : f32[-1]", "expected an extent in 0..281474976710656: 2:40"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1] dusk", "unknown memory space 'dusk': 2:47"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1] queue=slow", "unknown queue: 2:53"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1] twice",
       "expected 'recomputed', 'queue=', 'block=', '@<layer>' or the line's end: 2:48"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1] block=last",
       "expected a block's number in 0..2147483647: 2:49"},
      {"%0 = fill {shape=[1], value=1.0} : f32[1] @a b", "unexpected text: 2:46"},
      {"%0 = silu(%0) : f32[1]", "%0 is used before it is made: 2:13"},
      {"%0 = silu(3) : f32[1]", "expected '%': 2:11"},
      {"%0 = silu(_) : f32[1]", "silu: x is absent: 2:1"},
      {"%0 = state {name=\"w\"} : f32[1]", "state \"w\" is not declared: 2:1"},
      {"state \"w\" : f32[1] useful", "unknown class 'useful': 2:26"},
      {"state \"w : f32[1] parameter", "a text is not closed: 2:28"},
      {"state \"\\q\" : f32[1] parameter", "unknown escape: 2:10"},
      {"state \"\\xg0\" : f32[1] parameter", "expected two hexadecimal digits: 2:10"},
      {"state_assign(_) {name=\"w\"}", "state_assign: value is absent: 2:1"},
      {"graph \"again\"", "unknown op 'graph': 2:1"},
  };
  for (const auto& row : rows) {
    const auto graph = ir::parse("graph \"g\"\n" + row.line + "\n", ops::find_op);
    ASSERT_FALSE(graph.ok()) << row.line;
    EXPECT_EQ(graph.error().code, ErrorCode::kBadData);
    EXPECT_EQ(graph.error().message(), row.message) << row.line;
  }
}

TEST(Parser, RefusesWhatSpansLines) {
  const auto message = [](const std::string& text) {
    const auto graph = ir::parse(text, ops::find_op);
    return graph ? std::string() : graph.error().message();
  };
  EXPECT_EQ(message(""), "expected 'graph \"<name>\"': 1:1");
  EXPECT_EQ(message("%0 = fill"), "expected 'graph \"<name>\"': 1:1");
  EXPECT_EQ(message("graph \"g\"\nstate \"w\" : f32[1] input\nstate \"w\" : f32[2] input\n"),
            "state \"w\" is declared twice: 3:25");
  EXPECT_EQ(message("graph \"g\"\n%0 = fill {shape=[1], value=1.0} : f32[1]\n%0 = silu(%0) : f32[1]\n"),
            "%0 is made twice: 3:1");
  EXPECT_EQ(message(std::string(ir::kMaxTextBytes + 1, ' ')),
            "the text has 67108865 bytes, at most 67108864 are read");
  std::string many = "graph \"g\"\n";
  for (size_t i = 0; i <= ir::kMaxStates; ++i) many += fmt::format("state \"{}\" : f32[1] input\n", i);
  EXPECT_EQ(message(many), "more than 16384 states: 16386:29");
}

TEST(Parser, SurvivesEveryPrefixAndManyMutations) {
  const std::string text = kSampleText;
  for (size_t n = 0; n < text.size(); ++n) (void)ir::parse(text.substr(0, n), ops::find_op);
  uint32_t random = 1;
  const std::string alphabet = "%_(){}[]=:,@\"\\ \n0123456789-.efnxstate";
  for (int round = 0; round < 3000; ++round) {
    std::string mutant = text;
    for (int k = 0; k < 3; ++k) {
      random = random * 1664525 + 1013904223;
      mutant[(random >> 8) % mutant.size()] = alphabet[(random >> 3) % alphabet.size()];
    }
    const auto graph = ir::parse(mutant, ops::find_op);
    if (graph) {
      EXPECT_EQ(ir::print(parsed(ir::print(*graph))), ir::print(*graph));
    }
  }
}

}  // namespace
}  // namespace plimsoll::ir_testing
