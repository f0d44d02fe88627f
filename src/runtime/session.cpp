#include "runtime/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"

namespace plimsoll::runtime {

// A program with addresses: the operands of all instructions lie in one array, instructions point into it.
struct Session::Executable {
  struct Instruction {
    KernelCall call;
    ir::Queue queue = ir::Queue::kCompute;
    bool is_copy = false;  // a state_assign that moves bytes: inputs[0] -> outputs[0]
    int32_t position = 0;
  };
  struct Range {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };
  std::vector<TensorRef> operands;
  std::vector<Instruction> instructions;
  std::vector<double> seconds;
  size_t first_update = 0;  // where the update gate stands
  // For poison, by position in the order.
  std::vector<std::vector<Range>> born;
  std::vector<std::vector<Range>> dead;
};

namespace {

/// A signalling NaN of f32, repeated; as an i32 it is no token either.
constexpr uint32_t kPoison = 0x7fa5a5a5;

void fill_poison(std::byte* data, int64_t bytes) {
  for (int64_t i = 0; i + 4 <= bytes; i += 4) std::memcpy(data + i, &kPoison, 4);
}

}  // namespace

Session::Session(Backend& backend, passes::SessionPlan plan, const SessionOptions& options)
    : backend_(backend), plan_(std::move(plan)), options_(options) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::create(Backend& backend, passes::SessionPlan plan,
                                                 const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(backend, std::move(plan), options));
  PLIMSOLL_ASSIGN(session->persistent_,
                  backend.allocate(ir::MemorySpace::kDevice, Bytes(session->plan_.persistent_bytes)));
  PLIMSOLL_ASSIGN(session->arena_,
                  backend.allocate(ir::MemorySpace::kDevice, Bytes(session->plan_.arena_bytes)));
  if (options.poison) fill_poison(session->arena_->bytes().data(), session->plan_.arena_bytes);
  for (size_t p = 0; p < session->plan_.programs.size(); ++p) session->bind(p);
  return session;
}

void Session::bind(size_t index) {
  const passes::Program& program = plan_.programs[index];
  const ir::Graph& graph = program.graph;
  auto executable = std::make_unique<Executable>();
  std::byte* const arena = arena_->bytes().data();
  const auto base = [&](int32_t storage) -> std::byte* {
    const passes::Storage& s = program.binding.storages[static_cast<size_t>(storage)];
    if (s.state < 0) return arena + program.plan.offsets[static_cast<size_t>(storage)];
    return state(graph.states()[static_cast<size_t>(s.state)].name).data;
  };
  const auto ref = [&](ir::ValueId v) -> TensorRef {
    if (!v.valid()) return {};
    const passes::Place& place = program.binding.places[static_cast<size_t>(v.index)];
    return {base(place.storage) + place.offset_bytes, graph.type(v), place.strides};
  };
  struct Pending {
    size_t position, begin, inputs, outputs;
    bool is_copy;
  };
  std::vector<Pending> pending;
  for (size_t p = 0; p < graph.order().size(); ++p) {
    const ir::Op& op = graph.op(graph.order()[p]);
    const bool is_assign = op.def->name == "state_assign";
    if (op.def->is_view || op.def->name == "state") continue;
    const auto& copied = program.binding.copied_assigns;
    if (is_assign && std::find(copied.begin(), copied.end(), graph.order()[p]) == copied.end()) continue;
    pending.push_back(
        {p, executable->operands.size(), op.inputs.size(), is_assign ? 1 : op.outputs.size(), is_assign});
    for (const ir::ValueId v : op.inputs) executable->operands.push_back(ref(v));
    for (const ir::ValueId v : op.outputs) executable->operands.push_back(ref(v));
    if (is_assign) executable->operands.push_back(state(op.attrs.str("name")));
  }
  for (const Pending& p : pending) {
    const ir::Op& op = graph.op(graph.order()[p.position]);
    const std::span<const TensorRef> all(executable->operands.data() + p.begin, p.inputs + p.outputs);
    KernelCall call{&op, all.first(p.inputs), all.subspan(p.inputs), {}};
    if (const int32_t w = program.binding.workspaces.empty() ? -1 : program.binding.workspaces[p.position];
        w >= 0)
      call.workspace = {base(w), static_cast<size_t>(program.binding.storages[static_cast<size_t>(w)].bytes)};
    if (p.is_copy) PLIMSOLL_CHECK(all[0].is_dense(), "assignment of a strided view: " + op.layer);
    executable->instructions.push_back({call, op.queue, p.is_copy, static_cast<int32_t>(p.position)});
  }
  executable->seconds.resize(executable->instructions.size());
  executable->first_update = first_update(*executable);
  if (options_.poison) {
    executable->born.resize(graph.order().size());
    executable->dead.resize(graph.order().size());
    for (size_t s = 0; s < program.binding.storages.size(); ++s) {
      const passes::Storage& storage = program.binding.storages[s];
      if (program.plan.offsets[s] < 0) continue;
      const Executable::Range range{arena + program.plan.offsets[s],
                                    round_up(storage.bytes, passes::kStorageAlignment)};
      executable->born[static_cast<size_t>(storage.first)].push_back(range);
      executable->dead[static_cast<size_t>(storage.last)].push_back(range);
    }
  }
  executables_.push_back(std::move(executable));
}

size_t Session::first_update(const Executable& executable) const {
  const std::byte* const base = persistent_->bytes().data();
  const auto is_updated = [&](const TensorRef& output) {
    const int64_t at = output.data - base;
    if (at < 0 || at >= plan_.persistent_bytes) return false;  // of the arena
    return std::any_of(plan_.states.begin(), plan_.states.end(), [&](const passes::SessionState& s) {
      return ir::is_saved(s.decl.state_class) && at >= s.offset && at < s.offset + s.decl.type.bytes().count;
    });
  };
  const auto first = std::find_if(
      executable.instructions.begin(), executable.instructions.end(), [&](const auto& instruction) {
        return std::any_of(instruction.call.outputs.begin(), instruction.call.outputs.end(), is_updated);
      });
  return static_cast<size_t>(first - executable.instructions.begin());
}

void Session::run(int program) {
  Executable& executable = *executables_[static_cast<size_t>(program)];
  size_t poisoned = 0;
  for (size_t i = 0; i < executable.instructions.size(); ++i) {
    const auto& instruction = executable.instructions[i];
    const auto start = timing_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point{};
    if (i == executable.first_update && update_gate_) update_gate_();
    if (options_.poison) poison_before(executable, static_cast<size_t>(instruction.position));
    if (instruction.is_copy)
      backend_.copy(instruction.call.outputs[0].data, instruction.call.inputs[0].data,
                    instruction.call.inputs[0].type.bytes(), instruction.queue);
    else
      backend_.launch(instruction.call, instruction.queue);
    if (options_.poison)
      // Positions without an instruction (views, reads) end lifetimes too.
      for (const size_t end = i + 1 < executable.instructions.size()
                                  ? static_cast<size_t>(executable.instructions[i + 1].position)
                                  : executable.dead.size();
           poisoned < end; ++poisoned)
        poison_after(executable, poisoned);
    if (timing_)
      executable.seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  backend_.synchronize(ir::Queue::kCompute);
}

void Session::poison_before(const Executable& executable, size_t position) {
  for (const auto& range : executable.born[position]) fill_poison(range.data, range.bytes);
}

void Session::poison_after(const Executable& executable, size_t position) {
  for (const auto& range : executable.dead[position]) fill_poison(range.data, range.bytes);
}

TensorRef Session::state(std::string_view name) const {
  const passes::SessionState* s = plan_.find_state(name);
  PLIMSOLL_CHECK(s != nullptr, std::string(name));
  return {persistent_->bytes().data() + s->offset, s->decl.type, ir::dense_strides(s->decl.type.shape)};
}

std::vector<std::pair<const ir::Op*, double>> Session::timed_ops(int program) const {
  const Executable& executable = *executables_[static_cast<size_t>(program)];
  std::vector<std::pair<const ir::Op*, double>> result;
  for (size_t i = 0; i < executable.instructions.size(); ++i)
    result.emplace_back(executable.instructions[i].call.op, executable.seconds[i]);
  return result;
}

}  // namespace plimsoll::runtime
