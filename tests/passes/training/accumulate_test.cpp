// A batch at once or a micro-batch at a time: the same bits of every gradient.
#include "passes/training/accumulate.h"

#include <gtest/gtest.h>

#include "passes/on_cpu.h"

namespace plimsoll::passes {
namespace {

using fixtures::Bits;
using fixtures::Tail;

/// Sequence `index` of a state whose first axis is the batch.
ir::RefTensor sequence(const ir::RefTensor& batch, int64_t index) {
  const int64_t tokens = batch.type.shape.dim(1);
  const auto begin = batch.data.begin() + index * tokens;
  return reference::tensor({batch.type.dtype, ir::Shape{1, tokens}}, {begin, begin + tokens});
}

/// Gradients of the batch from micro-batches of one sequence.
Result<fixtures::Bits> one_by_one(uint64_t seed, const passes::PipelineOptions& options,
                                  const fixtures::Trained& whole, int64_t batch) {
  cpu::CpuDevice device(2);
  PLIMSOLL_ASSIGN(auto first, fixtures::train_program(seed, options, fixtures::Tail::kFirst, 1));
  PLIMSOLL_ASSIGN(auto next, fixtures::train_program(seed, options, fixtures::Tail::kAccumulate, 1));
  std::vector<passes::Program> programs;
  PLIMSOLL_ASSIGN(auto first_program, fixtures::bind_program(first, device, false));
  programs.push_back(std::move(first_program));
  PLIMSOLL_ASSIGN(auto next_program, fixtures::bind_program(next, device, false));
  programs.push_back(std::move(next_program));
  programs[0].graph.name = "first";
  programs[1].graph.name = "next";
  PLIMSOLL_ASSIGN(passes::SessionPlan plan, passes::plan_session(std::move(programs)));
  PLIMSOLL_ASSIGN(auto session, runtime::Session::create(device, std::move(plan), {.poison = true}));
  std::map<std::string, ir::RefTensor> states = whole.states;
  for (int64_t i = 0; i < batch; ++i) {
    for (const char* name : {"ids", "targets", "doc_start"})
      states[name] = sequence(whole.states.at(name), i);
    states["random"].data[3] = whole.states.at("random").data[3] + static_cast<double>(i);
    fixtures::write_states(*session, states);
    PLIMSOLL_TRY(session->run(i == 0 ? 0 : 1));
    std::erase_if(states,
                  [](const auto& entry) { return entry.first.starts_with("grad."); });  // go on from these
  }
  return fixtures::read_states(*session, whole.states);
}

TEST(Accumulate, TheSplitIntoMicroBatchesDoesNotChangeABit) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    constexpr int64_t kBatch = 3;
    const passes::PipelineOptions options = seed % 2 == 0 ? passes::PipelineOptions{} : fixtures::no_passes();
    const auto whole = fixtures::train_program(seed, options, fixtures::Tail::kFirst, kBatch);
    ASSERT_TRUE(whole) << whole.error().message();
    const auto expected = fixtures::run_on_cpu(*whole, {.threads = 3});
    ASSERT_TRUE(expected) << expected.error().message();
    const auto found = one_by_one(seed, options, *whole, kBatch);
    ASSERT_TRUE(found) << found.error().message();
    for (const auto& [name, words] : *expected)
      if (name.starts_with("grad.")) {
        EXPECT_EQ(words, found->at(name)) << "seed " << seed << ": " << name;
      }
  }
}

/// The gradient of an op that nothing could be added to, into an accumulator of bf16: right behind the op,
/// and from the second micro-batch on onto what is there.
TEST(Accumulate, AnAccumulatorOfBf16TakesARoundedSumBehindTheOp) {
  for (const bool first : {true, false}) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ir::Shape shape{4};
    const auto x = b.state({.name = "x", .type = {ir::DType::kF32, shape}});
    const auto y = ops::silu(b, x);
    b.assign("x", ops::silu(b, y));
    graph.declare_state({.name = "acc", .type = {ir::DType::kBf16, shape}});
    graph.declare_state({.name = "random", .type = {ir::DType::kI32, ir::Shape{4}}});
    const passes::Accumulation a{y, "acc", first, "random", 7};
    const Status status = passes::accumulate(graph, {&a, 1});
    ASSERT_TRUE(status) << status.error().message();
    std::vector<std::string> order;
    for (const ir::OpId id : graph.order()) {
      const ir::Op& op = graph.op(id);
      const bool of_state = op.def->state != ir::StateAccess::kNone;
      order.push_back(std::string(op.def->name) + (of_state ? " " + op.attrs.str("name") : ""));
    }
    std::vector<std::string> expected = {"state x",          "silu", "state random",  "accumulate",
                                         "state_assign acc", "silu", "state_assign x"};
    if (!first) expected.insert(expected.begin() + 3, "state acc");
    EXPECT_EQ(order, expected);
  }
}

TEST(Accumulate, NamesAccumulatorsThatDoNotFit) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.set_layer("layers.0");
  const ir::TensorType type{ir::DType::kF32, ir::Shape{4}};
  const auto x = b.state({.name = "x", .type = type});
  const auto y = ops::silu(b, x);
  graph.declare_state({.name = "acc", .type = type});
  graph.declare_state({.name = "narrow", .type = {ir::DType::kF32, ir::Shape{3}}});
  const auto refuse = [&](const passes::Accumulation& a) {
    const Status status = passes::accumulate(graph, {&a, 1});
    return status ? "" : status.error().message();
  };
  EXPECT_EQ(refuse({y, "narrow", true}), "accumulator 'narrow' is not declared as f32[4]: layers.0");
  EXPECT_EQ(refuse({y, "none", true}), "accumulator 'none' is not declared as f32[4]: layers.0");
  EXPECT_EQ(refuse({y, "acc", true}), "");
}

/// The names of the ops in order, states left out, and what the accumulation of `list` adds to them.
std::string ops_after(ir::Graph& graph, std::span<const passes::Accumulation> list) {
  const Status status = passes::accumulate(graph, list);
  std::string text = status ? "" : status.error().message();
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->state != ir::StateAccess::kRead)
      text += std::string(graph.op(id).def->name) + "/" + std::to_string(graph.op(id).inputs.size()) + " ";
  return text;
}

/// Where an op cannot go on from an accumulator, or others need what it gave, the sum is an op of its own.
TEST(Accumulate, AddsWhatNoOpGoesOnFrom) {
  const ir::TensorType type{ir::DType::kF32, ir::Shape{4}};
  const auto with = [&](auto build, size_t uses) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const auto x = b.state({.name = "x", .type = {ir::DType::kF32, ir::Shape{3, 4}}});
    graph.declare_state({.name = "out", .type = type});
    std::vector<passes::Accumulation> list;
    const ir::ValueId g = build(b, x);
    for (size_t i = 0; i < uses; ++i) {
      list.push_back({g, "acc" + std::to_string(i), false});
      graph.declare_state(
          {.name = list.back().state, .type = type, .state_class = ir::StateClass::kGradient});
    }
    return ops_after(graph, list);
  };
  const auto rows = [](ir::Builder& b, ir::ValueId x) { return b.op("sum_rows", {x}); };
  EXPECT_EQ(with(rows, 1), "sum_rows/2 state_assign/1 ");
  EXPECT_EQ(with(rows, 2), "sum_rows/1 reduce/2 state_assign/1 reduce/2 state_assign/1 ");
  const auto view = [&](ir::Builder& b, ir::ValueId x) { return ops::reshape(b, rows(b, x), {4}); };
  EXPECT_EQ(with(view, 1), "sum_rows/1 reshape/1 reduce/2 state_assign/1 ");
  const auto read_on = [&](ir::Builder& b, ir::ValueId x) {
    const ir::ValueId g = rows(b, x);
    b.assign("out", ops::silu(b, g));
    return g;
  };
  EXPECT_EQ(with(read_on, 1), "sum_rows/1 reduce/2 state_assign/1 silu/1 state_assign/1 ");
}

}  // namespace
}  // namespace plimsoll::passes
