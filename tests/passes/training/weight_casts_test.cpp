// Which weights the programs of a step share rounded, and that their results are those of programs whose
// products round for themselves.
#include "passes/training/weight_casts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/reference/interpreter.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "passes/training/autodiff.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;

/// A table that is embedding and head, with the gradients of its input and itself.
struct TiedTable {
  ir::Graph graph;

  explicit TiedTable(WeightCopies copies, const char* precision = "bf16", DType dtype = DType::kF32) {
    ir::Builder b(graph, ops::find_op);
    const ValueId ids = b.state({"ids", {DType::kI32, {2, 16}}, StateClass::kInput});
    const ValueId w = b.state({"w", {dtype, {80, 48}}, StateClass::kParameter});
    const ValueId x = ops::embedding(b, w, ids);
    const ValueId y = b.op("linear", {x, w}, {{"transposed", false}, {"precision", std::string(precision)}});
    const ValueId dy = b.state({"dy", {b.type(y).dtype, {2, 16, 80}}, StateClass::kInput});
    const std::vector<ValueId> wrt = {x};
    const auto derivative = autodiff(graph, {.loss = y, .wrt = wrt, .seed = dy});
    EXPECT_TRUE(derivative.ok());
    ir::Builder after(graph, ops::find_op);
    assign(after, "y", y);
    assign(after, "dx", derivative->cotangents[0]);
    const auto replaced = weight_casts(graph, {.copies = copies});
    EXPECT_TRUE(replaced.ok()) << replaced.error().message();
    const Status valid = ir::verify(graph);
    EXPECT_TRUE(valid.ok()) << valid.error().message() << ir::print(graph);
  }
  static void assign(ir::Builder& b, const char* name, ValueId v) {
    b.graph().declare_state({name, b.type(v), StateClass::kOutput});
    b.assign(name, v);
  }

  [[nodiscard]] int64_t count(std::string_view op) const {
    return std::ranges::count_if(graph.order(), [&](ir::OpId id) { return graph.op(id).def->name == op; });
  }
  [[nodiscard]] int64_t num_copies() const { return std::ranges::count_if(graph.states(), is_weight_cast); }
  [[nodiscard]] bool reads(std::string_view state) const {
    return std::ranges::any_of(graph.order(), [&](ir::OpId id) {
      const ir::Op& op = graph.op(id);
      return op.def->state == ir::StateAccess::kRead && op.attrs.str("name") == state;
    });
  }

  /// The program's results; states that it keeps stay in the interpreter.
  [[nodiscard]] std::vector<double> run(reference::Interpreter& interpreter) const {
    uint32_t seed = 1;
    for (const auto& state : graph.states()) {
      std::vector<double> data(static_cast<size_t>(state.type.num_elements()));
      for (double& value : data) {
        seed = seed * 1664525 + 1013904223;
        value =
            state.type.dtype == DType::kI32 ? (seed >> 8) % 80 : static_cast<double>(seed >> 8) / 0x1p23 - 1;
      }
      if (!is_weight_cast(state)) interpreter.set(state.name, reference::tensor(state.type, data));
    }
    EXPECT_TRUE(interpreter.run(graph).ok());
    std::vector<double> results;
    for (const char* name : {"y", "dx"})
      results.insert(results.end(), interpreter.find(name)->data.begin(), interpreter.find(name)->data.end());
    return results;
  }
};

/// Both products read one copy; the embedding's rows are the table's own.
TEST(WeightCasts, OneCopyOfEachWeight) {
  const TiedTable own(WeightCopies::kOwn), kept(WeightCopies::kKeep), read(WeightCopies::kRead);
  EXPECT_EQ(own.count("cast"), 0);
  EXPECT_EQ(own.num_copies(), 0);
  EXPECT_EQ(kept.count("cast"), 1);
  EXPECT_EQ(kept.num_copies(), 1);
  EXPECT_EQ(kept.graph.find_state("cast.weight.w.bf16")->type.dtype, DType::kBf16);
  EXPECT_TRUE(kept.reads("w"));
  EXPECT_EQ(read.count("cast"), 0);
  EXPECT_EQ(read.num_copies(), 1);
  EXPECT_TRUE(read.reads("cast.weight.w.bf16"));
  EXPECT_TRUE(read.reads("w"));
}

TEST(WeightCasts, OthersStayAsTheyAre) {
  EXPECT_EQ(TiedTable(WeightCopies::kKeep, "tf32").num_copies(), 0);
  EXPECT_EQ(TiedTable(WeightCopies::kKeep, "bf16", DType::kBf16).num_copies(), 0);
}

/// A program that reads a copy need not have the weight.
TEST(WeightCasts, WeightsThatNothingElseReadsAreNotRead) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ValueId x = b.state({"x", {DType::kF32, {2, 16, 48}}, StateClass::kInput});
  const ValueId w = b.state({"w", {DType::kF32, {80, 48}}, StateClass::kParameter});
  TiedTable::assign(b, "y",
                    b.op("linear", {x, w}, {{"transposed", false}, {"precision", std::string("f16")}}));
  ASSERT_TRUE(weight_casts(graph, {.copies = WeightCopies::kRead}));
  ASSERT_TRUE(ir::verify(graph));
  const bool reads_weight = std::ranges::any_of(graph.order(), [&](ir::OpId id) {
    const ir::Op& op = graph.op(id);
    return op.def->state == ir::StateAccess::kRead && op.attrs.str("name") == "w";
  });
  EXPECT_FALSE(reads_weight);
  EXPECT_EQ(graph.find_state("cast.weight.w.f16")->type.dtype, DType::kF16);
}

/// The first micro-batch's program keeps what the next one's reads.
TEST(WeightCasts, ResultsAreThoseOfOwnRounding) {
  for (const char* precision : {"bf16", "f16"}) {
    reference::Interpreter alone, session;
    const std::vector<double> own = TiedTable(WeightCopies::kOwn, precision).run(alone);
    EXPECT_EQ(TiedTable(WeightCopies::kKeep, precision).run(session), own) << precision;
    EXPECT_EQ(TiedTable(WeightCopies::kRead, precision).run(session), own) << precision;
  }
}

}  // namespace
}  // namespace plimsoll::passes
