// The oracle's own rules: states in program order, rounding, what it refuses. Its arithmetic is the ops'
// (tests/ops).
#include "backends/reference/interpreter.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ops/op_list.h"

namespace plimsoll::reference {
namespace {

ir::Graph parsed(const std::string& text) {
  auto graph = ir::parse(text, ops::find_op);
  EXPECT_TRUE(graph.ok()) << graph.error().message();
  return std::move(*graph);
}

const ir::TensorType kPair{ir::DType::kF32, {2}};

TEST(Interpreter, ReadsAndAssignsStatesInProgramOrder) {
  const ir::Graph graph = parsed(R"(graph "g"
state "w" : f32[2] parameter
state "before" : f32[2] output
state "after" : f32[2] output
%0 = state {name="w"} : f32[2]
%1 = add(%0, %0) : f32[2]
state_assign(%0) {name="before"}
state_assign(%1) {name="w"}
%2 = state {name="w"} : f32[2]
state_assign(%2) {name="after"}
)");
  Interpreter interpreter;
  interpreter.set("w", tensor(kPair, {1, -3}));
  ASSERT_TRUE(interpreter.run(graph).ok());
  ASSERT_TRUE(interpreter.run(graph).ok());
  EXPECT_EQ(interpreter.find("before")->data, (std::vector<double>{2, -6}));
  EXPECT_EQ(interpreter.find("after")->data, (std::vector<double>{4, -12}));
  EXPECT_EQ(interpreter.find("w")->data, (std::vector<double>{4, -12}));
  EXPECT_EQ(interpreter.find("nothing"), nullptr);
}

TEST(Interpreter, AssignsWindowsOfStates) {
  const ir::Graph graph = parsed(R"(graph "g"
state "w" : f32[2,2] parameter
state "x" : f32[2] input
%0 = state {name="x"} : f32[2]
state_assign(%0) {begin=1, name="w"}
)");
  Interpreter interpreter;
  interpreter.set("x", tensor(kPair, {7, 8}));
  const Status before = interpreter.run(graph);
  ASSERT_FALSE(before.ok());
  EXPECT_NE(before.error().message().find("window of state \"w\" is assigned before"), std::string::npos);
  interpreter.set("w", tensor({ir::DType::kF32, {2, 2}}, {1, 2, 3, 4}));
  ASSERT_TRUE(interpreter.run(graph).ok());
  EXPECT_EQ(interpreter.find("w")->data, (std::vector<double>{1, 7, 8, 4}));
}

TEST(Interpreter, RoundsResultsToSinglePrecisionWhereAsked) {
  const ir::Graph graph = parsed(R"(graph "g"
state "x" : f32[2] input
state "y" : f32[2] output
%0 = state {name="x"} : f32[2]
%1 = mul(%0, %0) : f32[2]
state_assign(%1) {name="y"}
)");
  for (const Precision precision : {Precision::kF64, Precision::kStored}) {
    Interpreter interpreter(precision);
    interpreter.set("x", tensor(kPair, {0.1, 1 + 0x1p-13}));
    ASSERT_TRUE(interpreter.run(graph).ok());
    const auto& y = interpreter.find("y")->data;
    const double tenth = precision == Precision::kStored ? static_cast<double>(0.1F * 0.1F) : 0.1 * 0.1;
    EXPECT_EQ(y[0], tenth);
    EXPECT_EQ(y[1], precision == Precision::kStored ? 1 + 0x1p-12 : 1 + 0x1p-12 + 0x1p-26);
  }
}

TEST(Interpreter, KeepsIntegersExact) {
  Interpreter interpreter(Precision::kStored);
  interpreter.set("i", tensor({ir::DType::kI32, {1}}, {2147483647}));
  EXPECT_EQ(interpreter.find("i")->data[0], 2147483647);
}

TEST(Interpreter, SaysWhichStateIsMissingOrMistyped) {
  const ir::Graph graph =
      parsed("graph \"g\"\nstate \"w\" : f32[2] parameter\n%0 = state {name=\"w\"} : f32[2] @layers.0\n");
  Interpreter interpreter;
  EXPECT_EQ(interpreter.run(graph).error().message(), "state \"w\" is read before it has a value: layers.0");
  interpreter.set("w", constant({ir::DType::kF32, {3}}, 0));
  EXPECT_EQ(interpreter.run(graph).error().message(),
            "state \"w\" holds f32[3], the program declares f32[2]: layers.0");
}

}  // namespace
}  // namespace plimsoll::reference
