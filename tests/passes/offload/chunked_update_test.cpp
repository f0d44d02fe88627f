// An update cut into windows has the bits of the whole one and moves the same bytes: every rule that looks at
// elements or blocks, however its tensors are kept, wherever they lie, on queues that an adversary delays.
#include "passes/offload/chunked_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/cpu_device.h"
#include "backends/discrete/discrete_device.h"
#include "ir/verifier.h"
#include "ops/ops.h"
#include "ops/tensor_rules.h"
#include "passes/memory/in_place.h"
#include "passes/memory/live_bytes.h"
#include "passes/order/check_hazards.h"
#include "passes/random_program.h"
#include "runtime/session_testing.h"

namespace plimsoll::passes {
namespace {

using ir::DType;
using ir::MemorySpace;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;
using passes::OffloadClass;

/// Neither a multiple of a window nor of a vector.
const Shape kShape{45, 67};
constexpr int64_t kWindow = 512;

struct Form {
  std::string_view rule;
  DType param = DType::kF32, moments = DType::kF32, gradient = DType::kF32;
  bool stochastic = false;
  std::optional<DType> copy = {};  ///< the parameter is a master, this its copy's
  float clip = 0.5F;
};

using Contents = std::map<std::string, std::vector<std::byte>>;

std::vector<std::byte> random_bytes(const ir::TensorType& type, fixtures::Dice& dice) {
  std::vector<std::byte> bytes(static_cast<size_t>(type.bytes().count));
  const size_t size = bytes.size() / static_cast<size_t>(type.num_elements());
  for (size_t at = 0; at < bytes.size(); at += size) {
    const auto value = static_cast<float>(dice.uniform());
    uint32_t word = 0;
    std::memcpy(&word, &value, 4);
    if (size == 2) word >>= 16;
    if (size == 1 || !ir::is_floating(type.dtype)) word = static_cast<uint32_t>(dice.range(0, 255));
    std::memcpy(bytes.data() + at, &word, size);
  }
  return bytes;
}

/// The update of one parameter, which something reads before.
struct UpdateProgram {
  ir::Graph graph;
  Contents contents;

  explicit UpdateProgram(const Form& form) {
    ir::Builder b(graph, ops::find_op);
    const ops::UpdateRule* elementwise = ops::find_update_rule(form.rule);
    const ops::TensorRule* of_tensor = ops::find_tensor_rule(form.rule);
    const ValueId g = state(b, "g", {form.gradient, kShape}, StateClass::kGradient);
    const ValueId clip = state(b, "clip", {DType::kF32, Shape{1}}, StateClass::kScalars);
    std::memcpy(contents["clip"].data(), &form.clip, 4);
    const int64_t fields = elementwise != nullptr ? elementwise->num_fields : of_tensor->num_fields;
    const ValueId groups = state(b, "groups", {DType::kF32, Shape{2, fields}}, StateClass::kScalars);
    const ValueId random = state(b, "random", {DType::kI32, Shape{4}}, StateClass::kScalars);
    const StateClass kept = form.copy ? StateClass::kMasterWeight : StateClass::kParameter;
    const ValueId p = state(b, "p", {form.param, kShape}, kept);
    graph.declare_state({"seen", {form.param, kShape}, StateClass::kOutput});
    b.assign("seen", ops::scale(b, p, clip));
    const auto scope = b.block(ir::kUpdateBlock, "optimizer");
    std::vector<ValueId> states;
    std::vector<std::string> names = {"p"};
    const auto add = [&](std::string_view name, const ir::TensorType& type) {
      names.emplace_back(name);
      states.push_back(state(b, names.back(), type, StateClass::kOptimizerState));
    };
    if (elementwise != nullptr)
      for (const std::string_view name : elementwise->states) add(name, {form.moments, kShape});
    else
      for (const ops::RuleState& s : of_tensor->states)
        add(s.name, {s.dtype.value_or(form.moments), s.shape_of({kShape, {kShape.dim(0)}})});
    ops::UpdateStorage storage{.copy = form.copy};
    if (form.stochastic) storage.random = random, storage.key = 77;
    const auto next = elementwise != nullptr
                          ? ops::update(b, *elementwise, p, g, states, clip, groups, 1, storage)
                          : ops::update_tensor(b, *of_tensor, p, g, states, clip, groups, 1,
                                               {kShape, {kShape.dim(0)}}, storage);
    if (form.copy) {
      graph.declare_state({"copy", {*form.copy, kShape}, StateClass::kParameter});
      names.emplace_back("copy");
    }
    for (size_t r = 0; r < names.size(); ++r) b.assign(names[r], next[r]);
    PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
  }

 private:
  ValueId state(ir::Builder& b, const std::string& name, const ir::TensorType& type, StateClass c) {
    contents[name] = random_bytes(type, dice_);
    return b.state({name, type, c});
  }
  fixtures::Dice dice_{5};
};

/// States after two runs.
Result<Contents> run(ir::Graph graph, const Contents& contents, runtime::Device& device) {
  PLIMSOLL_TRY(ir::verify(graph));
  PLIMSOLL_ASSIGN(passes::InPlaceReport in_place, passes::in_place(graph));
  PLIMSOLL_ASSIGN(passes::Program program, session_testing::plan_program(std::move(graph), device.target(),
                                                                         std::move(in_place.aliases)));
  PLIMSOLL_TRY(passes::check_hazards(program.graph, program.binding, program.plan, program.issue));
  std::vector<std::string> names;
  for (const ir::StateDecl& decl : program.graph.states()) names.push_back(decl.name);
  std::vector<passes::Program> programs;
  programs.push_back(std::move(program));
  PLIMSOLL_ASSIGN(passes::SessionPlan plan,
                  passes::plan_session(std::move(programs), {.transfer_bytes = 4096}));
  PLIMSOLL_ASSIGN(auto session, runtime::Session::create(device, std::move(plan), {.poison = true}));
  for (const auto& [name, bytes] : contents) PLIMSOLL_TRY(session->write(name, bytes));
  for (int i = 0; i < 2; ++i) PLIMSOLL_TRY(session->run(0));
  Contents after;
  for (const std::string& name : names) after[name] = session_testing::read_state<std::byte>(*session, name);
  return after;
}

passes::OffloadOptions all_in(MemorySpace space) {
  passes::OffloadOptions options;
  options.spaces.fill(space);
  options.least_bytes = 1;
  options.window_elements = kWindow;
  return options;
}

Status apply(ir::Graph& graph, const passes::OffloadOptions& offload, bool windows) {
  if (windows) {
    PLIMSOLL_ASSIGN(const auto report, passes::chunked_update(graph, {.offload = offload}));
    EXPECT_EQ(report.cut, 1U);
    EXPECT_EQ(report.windows, 6U);
    PLIMSOLL_TRY(ir::verify(graph));
  }
  return passes::offload(graph, offload, {});
}

std::vector<Form> forms() {
  std::vector<Form> forms;
  for (const ops::UpdateRule& rule : ops::update_rules()) {
    forms.push_back({.rule = rule.name});
    forms.push_back({.rule = rule.name,
                     .param = DType::kBf16,
                     .moments = DType::kBf16,
                     .gradient = DType::kBf16,
                     .stochastic = true});
    forms.push_back({.rule = rule.name, .moments = DType::kBf16, .stochastic = true, .copy = DType::kBf16});
  }
  for (const ops::TensorRule& rule : ops::tensor_rules()) {
    if (rule.block_elements == 0) continue;
    forms.push_back({.rule = rule.name});
    forms.push_back({.rule = rule.name, .param = DType::kBf16, .stochastic = true});
  }
  forms.push_back({.rule = "adamw", .clip = std::numeric_limits<float>::quiet_NaN()});
  return forms;
}

std::string text_of(const Form& f) {
  return std::string(f.rule) + " " + std::string(ir::name(f.param)) + " " + std::string(ir::name(f.moments)) +
         (f.stochastic ? " stochastic" : "") + (f.copy ? " copied" : "");
}

/// The bits of the whole update, undisturbed.
Contents expected(const UpdateProgram& program) {
  cpu::CpuDevice device(1);
  auto after = run(program.graph, program.contents, device);
  EXPECT_TRUE(after) << after.error().message();
  return after ? std::move(*after) : Contents{};
}

void check(const Form& form, const passes::OffloadOptions& offload, uint64_t seed) {
  SCOPED_TRACE(text_of(form) + ", seed " + std::to_string(seed));
  const UpdateProgram program(form);
  ir::Graph cut = program.graph;
  const Status applied = apply(cut, offload, true);
  ASSERT_TRUE(applied) << applied.error().message();
  const auto device = discrete::DiscreteDevice::create({.num_threads = 2,
                                                        .seed = seed,
                                                        .check = seed % 2 == 0,
                                                        .shares_host = seed % 2 == 1,
                                                        .disk_folder = testing::TempDir()});
  ASSERT_TRUE(device);
  const auto found = run(std::move(cut), program.contents, **device);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(expected(program), *found);
}

TEST(UpdateWindows, HaveTheBitsOfTheWholeUpdate) {
  uint64_t seed = 1;
  for (const Form& form : forms())
    for (const MemorySpace space : {MemorySpace::kHostPinned, MemorySpace::kDisk})
      for (int i = 0; i < 2; ++i) check(form, all_in(space), seed++);
}

TEST(UpdateWindows, CutWhatStaysOnTheDeviceInPlace) {
  for (const Form& form : forms()) {
    passes::OffloadOptions offload = all_in(MemorySpace::kDevice);
    offload.spaces[static_cast<size_t>(OffloadClass::kOptimizer)] = MemorySpace::kDisk;
    const ops::UpdateRule* rule = ops::find_update_rule(form.rule);
    if (rule == nullptr || !rule->states.empty()) check(form, offload, 8);
  }
}

TEST(UpdateWindows, MoveTheSameBytesAndHoldLess) {
  for (const Form& form : forms()) {
    const UpdateProgram program(form);
    passes::OffloadOptions offload = all_in(MemorySpace::kDisk);
    offload.slack_part = -1;
    ir::Graph whole = program.graph, cut = program.graph;
    ASSERT_TRUE(apply(whole, offload, false));
    ASSERT_TRUE(apply(cut, offload, true));
    const auto a = passes::bytes_moved(whole), b = passes::bytes_moved(cut);
    EXPECT_EQ(a.out, b.out) << text_of(form);
    EXPECT_EQ(a.in, b.in) << text_of(form);
    const auto at_update = [](const ir::Graph& graph) {
      const passes::LiveBytes live = passes::live_bytes(graph, graph.order(), {});
      int64_t most = 0;
      for (size_t i = 0; i < live.at.size(); ++i)
        if (graph.op(graph.order()[i]).block == ir::kUpdateBlock) most = std::max(most, live.at[i]);
      return most;
    };
    EXPECT_LT(at_update(cut), at_update(whole)) << text_of(form);
  }
}

TEST(UpdateWindows, AreAsLargeAsTheLargestKernelAllows) {
  // A kernel of 64 KiB: two windows of an update that loads 16 bytes an element take an eighth of it.
  UpdateProgram program({.rule = "adamw"});
  ir::Builder b(program.graph, ops::find_op);
  const ValueId x = ops::fill(b, {8192}, 1.0);
  program.graph.declare_state({"large", {DType::kF32, Shape{8192}}, StateClass::kOutput});
  b.assign("large", ops::silu(b, x));
  ASSERT_TRUE(b.status());
  passes::OffloadOptions offload = all_in(MemorySpace::kDisk);
  offload.window_elements = 64;
  const auto report = passes::chunked_update(program.graph, {.offload = offload});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->windows, (static_cast<size_t>(kShape.num_elements()) + 255) / 256);
}

}  // namespace
}  // namespace plimsoll::passes
