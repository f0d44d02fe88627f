// Random programs with random classes elsewhere: the bits of the plain program, on queues that an adversary
// delays and splits, and no more memory of the device than on-demand copies take and an eighth.
#include "passes/offload/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "backends/discrete/discrete_device.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "ops/elementwise.h"
#include "ops/op_list.h"
#include "passes/memory/live_bytes.h"
#include "passes/offload/offload_items.h"
#include "passes/on_cpu.h"
#include "passes/order/check_hazards.h"

namespace plimsoll::passes {
namespace {

using fixtures::Bits;
using fixtures::Tail;
using ir::MemorySpace;
using passes::OffloadClass;

/// `updates`: of programs whose states lie with the host, more of them, and updated there.
passes::OffloadOptions some_offload(fixtures::Dice& dice, bool updates) {
  constexpr MemorySpace kSpaces[] = {MemorySpace::kDevice, MemorySpace::kHostPinned,
                                     MemorySpace::kHostPageable, MemorySpace::kDisk};
  passes::OffloadOptions options;
  for (MemorySpace& space : options.spaces) space = kSpaces[dice.range(0, 3)];
  options.slack_part = dice.range(0, 2) * 8;
  options.num_blocks = 2;
  for (int32_t& blocks : options.blocks) blocks = static_cast<int32_t>(dice.range(-1, 2));
  options.least_bytes = dice.chance(50) ? 1 : 64;
  options.window_elements = 4 * dice.range(1, 12);
  if (!updates) return options;
  options.updates_on_host = true;
  for (const OffloadClass c : {OffloadClass::kOptimizer, OffloadClass::kParameters, OffloadClass::kGradients})
    if (c == OffloadClass::kOptimizer || dice.chance(40))
      options.spaces[static_cast<size_t>(c)] = MemorySpace::kHostPinned;
  return options;
}

Result<fixtures::Bits> run_on(const fixtures::Trained& t, runtime::Device& device) {
  PLIMSOLL_ASSIGN(auto program, fixtures::bind_program(t, device, false));
  PLIMSOLL_TRY(passes::check_hazards(program.graph, program.binding, program.plan, program.issue));
  std::vector<passes::Program> programs;
  programs.push_back(std::move(program));
  PLIMSOLL_ASSIGN(passes::SessionPlan plan,
                  passes::plan_session(std::move(programs), {.transfer_bytes = 4096}));
  PLIMSOLL_ASSIGN(auto session, runtime::Session::create(device, std::move(plan), {}));
  for (int run = 0; run < 2; ++run) {
    fixtures::write_states(*session, t.states);
    PLIMSOLL_TRY(session->run(0));
  }
  return fixtures::read_states(*session, t.states);
}

size_t num_copies(const ir::Graph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.order(), [&](ir::OpId id) { return graph.op(id).def->is_copy; }));
}

size_t num_on_host(const ir::Graph& graph) {
  return static_cast<size_t>(std::ranges::count_if(
      graph.order(), [&](ir::OpId id) { return graph.op(id).queue == ir::Queue::kHost; }));
}

struct Found {
  size_t copies = 0, on_host = 0;
  Found& operator+=(const Found& other) {
    copies += other.copies, on_host += other.on_host;
    return *this;
  }
};

/// Returns how many copies and kernels of the host the program came to have.
Found check_seed(uint64_t seed, bool shares_host, bool updates = false) {
  fixtures::Dice dice(seed * 7919);
  const auto tail = updates ? fixtures::Tail::kOptimizer : static_cast<fixtures::Tail>(dice.range(0, 3));
  const auto mask = static_cast<uint64_t>(dice.range(0, (1 << 20) - 1));
  passes::PipelineOptions options = fixtures::some_passes(mask);
  const auto plain = fixtures::train_program(seed, options, tail);
  options.offload = some_offload(dice, updates);
  const auto offloaded = fixtures::train_program(seed, options, tail);
  EXPECT_TRUE(plain && offloaded) << seed << (offloaded ? "" : offloaded.error().message());
  if (!plain || !offloaded) return {};
  const auto expected = fixtures::run_on_cpu(*plain, {});
  const auto device = discrete::DiscreteDevice::create({.num_threads = 2,
                                                        .seed = seed,
                                                        .check = !shares_host,
                                                        .shares_host = shares_host,
                                                        .disk_folder = testing::TempDir()});
  EXPECT_TRUE(device);
  const auto found = run_on(*offloaded, **device);
  EXPECT_TRUE(found) << seed << ": " << (found ? "" : found.error().message());
  if (!found || !expected) return {};
  for (const auto& [name, words] : *expected) EXPECT_EQ(words, found->at(name)) << seed << ": " << name;
  return {num_copies(offloaded->graph), num_on_host(offloaded->graph)};
}

TEST(Offload, KeepsTheBitsOfRandomPrograms) {
  Found found;
  for (uint64_t seed = 1; seed <= 24; ++seed) found += check_seed(seed, /*shares_host=*/false);
  EXPECT_GT(found.copies, 100U);
  EXPECT_EQ(found.on_host, 0U);
}

TEST(Offload, KeepsTheBitsWhereTheHostUpdates) {
  Found found;
  for (uint64_t seed = 50; seed <= 80; ++seed)
    found += check_seed(seed, /*shares_host=*/false, /*updates=*/true);
  EXPECT_GT(found.on_host, 30U);
}

TEST(Offload, KeepsTheBitsOnTheProcessesOwnMemory) {
  Found found;
  for (uint64_t seed = 30; seed <= 40; ++seed) found += check_seed(seed, /*shares_host=*/true);
  EXPECT_GT(found.copies, 40U);
}

passes::PipelineOptions all_passes() { return fixtures::some_passes(~uint64_t{0}); }

TEST(Offload, LoadsEarlierOnlyWhereThereIsRoom) {
  for (const uint64_t seed : {3, 5, 9}) {
    passes::PipelineOptions options = all_passes();
    options.offload.least_bytes = 64;
    options.offload.spaces.fill(MemorySpace::kHostPinned);
    options.offload.slack_part = 1 << 30;  // none to speak of
    const auto none = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
    options.offload.slack_part = 8;
    const auto some = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
    ASSERT_TRUE(none && some);
    const auto peak = [](const ir::Graph& g) { return passes::live_bytes(g, g.order(), {}).peak_bytes; };
    EXPECT_LE(peak(some->graph), peak(none->graph) + peak(none->graph) / 8) << seed;
  }
}

/// Ops between the beginnings of loads and their ends.
int64_t ops_ahead(const ir::Graph& graph) {
  std::map<ir::ValueId, int64_t> begun;
  int64_t sum = 0, place = 0;
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.queue == ir::Queue::kCopyIn) begun[op.outputs[0]] = place;
    if (op.def->name == "copy_done" && begun.contains(op.inputs[0])) sum += place - begun[op.inputs[0]];
    ++place;
  }
  return sum;
}

TEST(Offload, LoadsAreNoEarlierThanItTakesToHideThem) {
  for (const uint64_t seed : {3, 5, 9}) {
    passes::PipelineOptions options = all_passes();
    options.offload.least_bytes = 64;
    options.offload.spaces.fill(MemorySpace::kHostPinned);
    options.offload.slack_part = 1;
    const auto as_there_is_room = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
    options.kernel_seconds = [](const ir::Graph& g) { return std::vector<double>(g.order().size(), 1.0); };
    const auto ahead_with = [&](double seconds) {
      options.copy_seconds = [=](int64_t, MemorySpace, MemorySpace) { return seconds; };
      const auto t = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
      return t ? ops_ahead(t->graph) : -1;
    };
    ASSERT_TRUE(as_there_is_room);
    const int64_t all = ops_ahead(as_there_is_room->graph), slow = ahead_with(1000), fast = ahead_with(0.1);
    EXPECT_EQ(slow, all) << seed << ": a slow link has all the room";
    EXPECT_GT(fast, 0) << seed;
    EXPECT_LT(fast, all / 2) << seed;
  }
}

/// As ranks draw the matrices that several of them own, one after the other.
TEST(Offload, AStateIsReadAgainBehindItsAssignment) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::StateDecl w{"w", {ir::DType::kF32, {4096}}, ir::StateClass::kParameter};
  const ir::ValueId other = b.state({"x", w.type, ir::StateClass::kInput});
  for (int i = 0; i < 3; ++i) {
    ir::ValueId value = ops::mul(b, b.state(w), other);
    for (int more = 0; more < 3; ++more) value = ops::mul(b, value, value);
    b.assign("w", value);
  }
  ASSERT_TRUE(b.status().ok());
  passes::OffloadOptions options;
  options.spaces[static_cast<size_t>(OffloadClass::kParameters)] = MemorySpace::kHostPinned;
  options.slack_part = 1;
  ASSERT_TRUE(passes::offload(graph, options, {}));
  const Status valid = ir::verify(graph);
  EXPECT_TRUE(valid.ok()) << (valid ? "" : valid.error().message());
  std::vector<std::string_view> states;
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->state != ir::StateAccess::kNone && graph.op(id).attrs.str("name") == "w")
      states.push_back(graph.op(id).def->name);
  EXPECT_THAT(states, testing::ElementsAre("state", "state_assign", "state", "state_assign", "state",
                                           "state_assign"));
}

TEST(Offload, CountsWhatItMoves) {
  passes::PipelineOptions options = all_passes();
  options.offload.least_bytes = 1;
  options.offload.spaces[static_cast<size_t>(OffloadClass::kOptimizer)] = MemorySpace::kDisk;
  const auto t = fixtures::train_program(4, options, fixtures::Tail::kOptimizer);
  ASSERT_TRUE(t);
  int64_t states = 0;
  for (const ir::StateDecl& s : t->graph.states())
    if (s.state_class == ir::StateClass::kOptimizerState) {
      EXPECT_EQ(s.space, MemorySpace::kDisk) << s.name;
      states += s.type.bytes().count;
    }
  const passes::BytesMoved moved = passes::bytes_moved(t->graph);
  EXPECT_EQ(moved.in, states);
  EXPECT_EQ(moved.out, states);
}

TEST(Offload, TheHostsUpdatesMoveGradientsAndWeightsAlone) {
  size_t updates = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    passes::PipelineOptions options = all_passes();
    options.offload.least_bytes = 100;  // the clipping's factor and the table of rates have less
    options.offload.spaces[static_cast<size_t>(OffloadClass::kOptimizer)] = MemorySpace::kHostPinned;
    options.offload.updates_on_host = true;
    const auto t = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
    ASSERT_TRUE(t) << seed;
    int64_t weights = 0, shared = 0;
    for (const ir::OpId id : t->graph.order()) {
      const ir::Op& op = t->graph.op(id);
      if (op.queue != ir::Queue::kHost) continue;
      ++updates;
      weights += t->graph.type(op.inputs[0]).bytes().count;
      shared = t->graph.type(op.inputs[op.inputs.size() - 2]).bytes().count +
               t->graph.type(op.inputs.back()).bytes().count;
    }
    const passes::BytesMoved moved = passes::bytes_moved(t->graph);
    EXPECT_EQ(moved.in, weights) << seed;
    EXPECT_EQ(moved.out, 2 * weights + shared) << seed;
  }
  EXPECT_GT(updates, 20U);
}

TEST(OffloadOptions, SpreadLayersEvenlyAndTakeTheFirstActivations) {
  passes::OffloadOptions options;
  options.spaces.fill(MemorySpace::kHostPinned);
  options.num_blocks = 6;
  const auto taken = [&](OffloadClass c) {
    std::string blocks;
    for (int32_t b = -1; b < 6; ++b)
      if (options.space(c, b) != MemorySpace::kDevice) blocks += std::to_string(b) + " ";
    return blocks;
  };
  EXPECT_EQ(taken(OffloadClass::kParameters), "-1 0 1 2 3 4 5 ");
  options.blocks.fill(2);
  EXPECT_EQ(taken(OffloadClass::kParameters), "2 5 ");
  EXPECT_EQ(taken(OffloadClass::kActivations), "0 1 ");
  options.blocks.fill(6);
  EXPECT_EQ(taken(OffloadClass::kOptimizer), "0 1 2 3 4 5 ") << "nothing outside of layers";
}

TEST(OffloadOptions, FindTheLayerOfAState) {
  EXPECT_EQ(passes::block_of_state("grad.layers.3.mlp.down_proj.weight#1"), 3);
  EXPECT_EQ(passes::block_of_state("layers.12"), 12);
  EXPECT_EQ(passes::block_of_state("embed_tokens.weight"), ir::kNoBlock);
  EXPECT_EQ(passes::block_of_state("conv1d.2x.weight"), ir::kNoBlock);
  EXPECT_EQ(passes::block_of_state(""), ir::kNoBlock);
}

TEST(Offload, LeavesWhatIsSmall) {
  passes::OffloadOptions options;
  options.spaces.fill(MemorySpace::kDisk);
  const auto space = [&](int64_t n, ir::StateClass c) {
    return passes::offloaded_space(options, {"s", {ir::DType::kF32, ir::Shape{n}}, c});
  };
  EXPECT_EQ(space(1023, ir::StateClass::kParameter), MemorySpace::kDevice);
  EXPECT_EQ(space(1024, ir::StateClass::kParameter), MemorySpace::kDisk);
  EXPECT_EQ(space(1024, ir::StateClass::kInput), MemorySpace::kDevice);
  EXPECT_EQ(space(1024, ir::StateClass::kScalars), MemorySpace::kDevice);
}

}  // namespace
}  // namespace plimsoll::passes
