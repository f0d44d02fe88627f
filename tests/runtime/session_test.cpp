// The backend interface as a device will have to serve it - memory, kernels, copies, events, capture - and
// sessions on it.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::runtime {
namespace {

using ir::DType;
using ir::StateClass;
using ir::ValueId;

ir::StateDecl decl(const std::string& name, ir::Shape shape, StateClass c = StateClass::kInput) {
  return {name, {DType::kF32, shape}, c};
}

passes::Program plan(ir::Graph graph, const Backend& backend,
                     std::vector<std::pair<ir::OpId, ir::Alias>> in_place = {}) {
  passes::BindOptions options;
  options.in_place = std::move(in_place);
  options.accepts_strided = [&](std::string_view op, size_t i) { return backend.accepts_strided(op, i); };
  options.workspace_bytes = [&](const ir::OpTypes& types) { return backend.workspace_bytes(types); };
  auto binding = passes::bind_storage(graph, options, ops::find_op);
  EXPECT_TRUE(binding.ok());
  auto memory = passes::plan_memory(graph, *binding);
  return {std::move(graph), std::move(*binding), std::move(memory)};
}

/// y = silu(x · w) + x, then y over x: an arena value, a workspace, an assignment in place.
ir::Graph small_program() {
  ir::Graph graph;
  graph.name = "small";
  ir::Builder b(graph, ops::find_op);
  const ValueId x = b.state(decl("x", {3, 8})), w = b.state(decl("w", {8, 8}, StateClass::kParameter));
  const ValueId y = ops::add(b, ops::silu(b, ops::linear(b, x, w, {})), x);
  graph.declare_state(decl("y", {3, 8}, StateClass::kOutput));
  b.assign("y", y);
  EXPECT_TRUE(b.status().ok());
  return graph;
}

void fill(const TensorRef& t) {
  for (int64_t i = 0; i < t.num_elements(); ++i) t.as<float>()[i] = std::sin(static_cast<float>(3 * i + 1));
}

std::vector<float> run_small(int threads, const SessionOptions& options) {
  cpu::CpuBackend backend(threads);
  std::vector<passes::Program> programs;
  programs.push_back(plan(small_program(), backend));
  auto session = Session::create(backend, *passes::plan_session(std::move(programs)), options);
  EXPECT_TRUE(session.ok());
  fill((*session)->state("x"));
  fill((*session)->state("w"));
  (*session)->run(0);
  const TensorRef y = (*session)->state("y");
  return {y.as<float>(), y.as<float>() + y.num_elements()};
}

TEST(SessionTest, RunsAProgramAndKeepsItsBitsUnderPoisonAndThreads) {
  const std::vector<float> plain = run_small(1, {});
  double sum = 0;
  for (int64_t k = 0; k < 8; ++k)
    sum += std::sin(3.0 * static_cast<double>(k) + 1) * std::sin(3.0 * static_cast<double>(k) + 1);
  EXPECT_NEAR(plain[0], sum / (1 + std::exp(-sum)) + std::sin(1.0), 1e-5);
  EXPECT_EQ(run_small(3, {}), plain);
  EXPECT_EQ(run_small(2, {.poison = true}), plain);
}

TEST(SessionTest, PoisonShowsAReadOfDeadMemory) {
  cpu::CpuBackend backend(1);
  passes::Program program = plan(small_program(), backend);
  // A wrong plan: every arena value dies where it is born.
  for (auto& s : program.binding.storages)
    if (s.state < 0) s.last = s.first;
  std::vector<passes::Program> programs;
  programs.push_back(std::move(program));
  auto session = Session::create(backend, *passes::plan_session(std::move(programs)), {.poison = true});
  ASSERT_TRUE(session.ok());
  fill((*session)->state("x"));
  fill((*session)->state("w"));
  (*session)->run(0);
  EXPECT_TRUE(std::isnan((*session)->state("y").as<float>()[0]));
}

TEST(SessionTest, ProgramsShareStatesByName) {
  cpu::CpuBackend backend(1);
  std::vector<passes::Program> programs;
  programs.push_back(plan(small_program(), backend));
  ir::Graph second;
  second.name = "second";
  ir::Builder b(second, ops::find_op);
  const ValueId y = b.state(decl("y", {3, 8}, StateClass::kOutput));
  b.assign("y", ops::add(b, y, y));
  programs.push_back(plan(std::move(second), backend));
  auto session = Session::create(backend, *passes::plan_session(std::move(programs)));
  ASSERT_TRUE(session.ok());
  fill((*session)->state("x"));
  fill((*session)->state("w"));
  (*session)->run(0);
  const float once = (*session)->state("y").as<float>()[5];
  (*session)->run((*session)->plan().find_program("second"));
  EXPECT_EQ((*session)->state("y").as<float>()[5], 2 * once);
}

TEST(SessionPlanTest, RefusesAStateDeclaredDifferently) {
  std::vector<passes::Program> programs(2);
  programs[0].graph.declare_state(decl("x", {2}));
  programs[1].graph.declare_state(decl("x", {3}));
  const auto session = passes::plan_session(std::move(programs));
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().where, "x");
}

// The smoke test of a backend: what a CUDA one must pass unchanged.
TEST(BackendTest, ArenaGemmGraphReplayAndCopiesBesideCompute) {
  cpu::CpuBackend backend(2);
  constexpr int64_t kM = 64, kK = 48, kN = 32;
  auto memory = backend.allocate(ir::MemorySpace::kDevice, Bytes(1 << 20));
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ((*memory)->resident_bytes().count, 1 << 20);
  std::byte* const base = (*memory)->bytes().data();
  const auto tensor = [&](int64_t offset, ir::Shape shape) {
    return TensorRef{base + offset, {DType::kF32, shape}, ir::dense_strides(shape)};
  };
  const TensorRef inputs[] = {tensor(0, {1, kM, kK}), tensor(1 << 16, {kN, kK})};
  const TensorRef outputs[] = {tensor(2 << 16, {1, kM, kN})};
  fill(inputs[0]);
  fill(inputs[1]);
  ir::Op op{ops::find_op("linear"), {{0}, {1}}, {{2}}, {{"transposed", false}}, "smoke"};
  const ir::OpTypes types{"linear", {inputs[0].type, inputs[1].type}, {outputs[0].type}, op.attrs};
  const int64_t scratch = backend.workspace_bytes(types);
  ASSERT_LE(scratch, 1 << 19);
  const KernelCall call{&op, inputs, outputs, {base + (1 << 19), static_cast<size_t>(scratch)}};

  backend.begin_capture();
  backend.launch(call, ir::Queue::kCompute);
  const EventId done = backend.record(ir::Queue::kCompute);
  backend.wait(ir::Queue::kCopyOut, done);
  backend.copy(base + (3 << 16), outputs[0].data, outputs[0].type.bytes(), ir::Queue::kCopyOut);
  const auto graph = backend.end_capture();
  for (int replay = 0; replay < 3; ++replay) {
    inputs[0].as<float>()[0] = static_cast<float>(replay);
    backend.replay(*graph);
    backend.synchronize(ir::Queue::kCopyOut);
    double expected = 0;
    for (int64_t k = 0; k < kK; ++k)
      expected +=
          static_cast<double>(inputs[0].as<float>()[k]) * static_cast<double>(inputs[1].as<float>()[k]);
    EXPECT_NEAR(tensor(3 << 16, {1}).as<float>()[0], expected, 1e-4) << replay;
  }
}

TEST(BackendTest, RefusesMoreMemoryThanThereIs) {
  cpu::CpuBackend backend(1);
  const auto memory = backend.allocate(ir::MemorySpace::kDevice, Bytes(int64_t{1} << 60));
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace plimsoll::runtime
