#include "runtime/executable.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "base/process.h"
#include "base/process_memory.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "ir/op_query.h"

namespace plimsoll::runtime {
namespace {

using Kind = passes::Issue::Kind;

std::byte* address(const Location& place) { return place.memory->address() + place.offset; }

}  // namespace

Executable::Executable(Device& device, const passes::SessionPlan& session, size_t program,
                       const SessionMemory& memory)
    : device_(device), session_(session), program_(session.programs[program]), memory_(memory) {}

Result<std::unique_ptr<Executable>> Executable::create(Device& device, const passes::SessionPlan& session,
                                                       size_t program, const SessionMemory& memory,
                                                       bool poison) {
  std::unique_ptr<Executable> executable(new Executable(device, session, program, memory));
  executable->bind();
  if (poison) executable->bind_poison();
  PLIMSOLL_TRY(executable->capture());
  return executable;
}

Status Executable::capture() {
  before_.reset(), update_.reset();  // which wait for their replays
  const size_t cut = first_update(), end = instructions_.size();
  PLIMSOLL_ASSIGN(before_, capture(0, cut));
  if (cut < end) {
    PLIMSOLL_ASSIGN(update_, capture(cut, end));
  }
  return Ok{};
}

// ---- addresses

Location Executable::place_of_state(std::string_view name) const {
  const passes::SessionState* s = session_.find_state(name);
  PLIMSOLL_CHECK(s != nullptr, std::string(name));
  return {memory_.persistent[static_cast<size_t>(s->decl.space)].get(), s->offset};
}

Location Executable::place_assigned(const ir::Op& assign) const {
  Location place = place_of_state(assign.attrs.str("name"));
  const int64_t begin = ir::assigned_elements(program_.graph, assign).begin;
  place.offset += begin * ir::bits(program_.graph.type(assign.inputs[0]).dtype) / 8;
  return place;
}

Location Executable::place_of_storage(int32_t storage) const {
  const passes::Storage& s = program_.binding.storages[at(storage)];
  if (s.state >= 0) {
    const Location& place = state_places_[at(s.state)];
    PLIMSOLL_CHECK(place.memory != nullptr, program_.graph.states()[at(s.state)].name);
    return place;
  }
  return {memory_.arena[static_cast<size_t>(s.space)].get(), program_.plan.offsets[at(storage)]};
}

Location Executable::place_of(ir::ValueId v) const {
  const passes::Place& place = program_.binding.places[at(v.index)];
  Location location = place_of_storage(place.storage);
  location.offset += place.offset_bytes;
  return location;
}

TensorRef Executable::ref(ir::ValueId v) const {
  if (!v.valid()) return {};
  return {address(place_of(v)), program_.graph.type(v), program_.binding.places[at(v.index)].strides};
}

void Executable::bind() {
  const ir::Graph& graph = program_.graph;
  for (const ir::StateDecl& state : graph.states())
    state_places_.push_back(session_.find_state(state.name) != nullptr ? place_of_state(state.name)
                                                                       : Location{});
  size_t count = 0;
  for (const passes::Issue& issue : program_.issue.issues)
    if (issue.kind == Kind::kLaunch) {
      const ir::Op& op = graph.op(graph.order()[at(issue.position)]);
      count += op.inputs.size() + op.outputs.size();
    }
  operands_.reserve(count);  // instructions point into it
  for (const passes::Issue& issue : program_.issue.issues) {
    Instruction& instruction = instructions_.emplace_back();
    instruction.issue = issue;
    if (issue.position < 0) continue;
    const ir::Op& op = graph.op(graph.order()[at(issue.position)]);
    if (issue.kind == Kind::kCopy) {
      const auto& source = program_.binding.places[at(op.inputs[0].index)];
      PLIMSOLL_CHECK(source.strides == ir::dense_strides(graph.type(op.inputs[0]).shape),
                     "a copy of a strided view: " + op.layer);
      instruction.from = place_of(op.inputs[0]);
      instruction.to = op.outputs.empty() ? place_assigned(op) : place_of(op.outputs[0]);
      instruction.bytes = graph.type(op.inputs[0]).bytes();
      continue;
    }
    const size_t begin = operands_.size();
    for (const ir::ValueId v : op.inputs) operands_.push_back(ref(v));
    for (const ir::ValueId v : op.outputs) operands_.push_back(ref(v));
    const std::span<const TensorRef> all(operands_.data() + begin, op.inputs.size() + op.outputs.size());
    instruction.call = {&op, all.first(op.inputs.size()), all.subspan(op.inputs.size()), {}};
    if (const int32_t w =
            program_.binding.workspaces.empty() ? -1 : program_.binding.workspaces[at(issue.position)];
        w >= 0)
      instruction.call.workspace = {address(place_of_storage(w)),
                                    static_cast<size_t>(program_.binding.storages[at(w)].bytes)};
  }
  for (int32_t e = 0; e < program_.issue.num_events + static_cast<int32_t>(ir::kNumAllQueues); ++e)
    events_.push_back(device_.make_event());
}

/// What is dead is poisoned where the order of queues says for sure that it is: always in front of a
/// storage's first use, behind its last one where there is one queue.
void Executable::bind_poison() {
  const bool one_queue = program_.issue.num_events == 0;
  born_.resize(program_.graph.order().size());
  dead_.resize(program_.graph.order().size());
  for (size_t s = 0; s < program_.binding.storages.size(); ++s) {
    const passes::Storage& storage = program_.binding.storages[s];
    if (program_.plan.offsets[s] < 0) continue;
    const Fill fill{place_of_storage(static_cast<int32_t>(s)),
                    round_up(storage.bytes, passes::kStorageAlignment)};
    born_[at(storage.first)].push_back(fill);
    if (one_queue) dead_[at(storage.last)].push_back(fill);
  }
}

// ---- issue

size_t Executable::first_update() const {
  const auto updates = [&](int32_t storage) {
    const int state = program_.binding.storages[at(storage)].state;
    return state >= 0 && ir::is_saved(program_.graph.states()[at(state)].state_class);
  };
  for (size_t i = 0; i < instructions_.size(); ++i) {
    if (instructions_[i].issue.position < 0) continue;
    const ir::Op& op = program_.graph.op(program_.graph.order()[at(instructions_[i].issue.position)]);
    for (const ir::ValueId v : op.outputs)
      if (updates(program_.binding.places[at(v.index)].storage)) return i;
    if (op.def->state == ir::StateAccess::kAssign &&
        ir::is_saved(session_.find_state(op.attrs.str("name"))->decl.state_class))
      return i;
  }
  return instructions_.size();
}

Status Executable::poison(const std::vector<Fill>& fills, ir::Queue queue) {
  for (const Fill& fill : fills) PLIMSOLL_TRY(device_.fill(fill.at, Bytes(fill.bytes), kPoison, queue));
  return Ok{};
}

Status Executable::issue_one(const Instruction& instruction) {
  const passes::Issue& issue = instruction.issue;
  switch (issue.kind) {
    case Kind::kLaunch:
      return device_.launch(instruction.call, issue.queue);
    case Kind::kCopy:
      return device_.copy(instruction.to, instruction.from, instruction.bytes, issue.queue,
                          &program_.graph.op(program_.graph.order()[at(issue.position)]));
    case Kind::kRecord:
      return device_.record(events_[at(issue.event)], issue.queue);
    case Kind::kWait:
      return device_.wait(issue.queue, events_[at(issue.event)]);
  }
  return Ok{};
}

size_t Executable::next_position(size_t from) const {
  const auto found = std::find_if(instructions_.begin() + static_cast<std::ptrdiff_t>(from),
                                  instructions_.end(), [](const auto& i) { return i.issue.position >= 0; });
  return found == instructions_.end() ? program_.graph.order().size() : at(found->issue.position);
}

Status Executable::issue(size_t begin, size_t end, Pace pace) {
  size_t poisoned = begin == 0 ? 0 : next_position(begin);
  for (size_t i = begin; i < end; ++i) {
    const Instruction& instruction = instructions_[i];
    const int32_t position = instruction.issue.position;
    const double start = pace == Pace::kTimed ? now_seconds() : 0;
    if (!born_.empty() && position >= 0) PLIMSOLL_TRY(poison(born_[at(position)], instruction.issue.queue));
    const bool twice = pace == Pace::kTwice && position >= 0;
    PLIMSOLL_TRY(twice ? issue_twice(instruction) : issue_one(instruction));
    if (!dead_.empty() && position >= 0) {
      // Positions without an instruction (views, reads) end lifetimes too.
      for (const size_t stop = next_position(i + 1); poisoned < stop; ++poisoned)
        PLIMSOLL_TRY(poison(dead_[poisoned], ir::Queue::kCompute));
    }
    if (pace != Pace::kTimed || position < 0) continue;
    PLIMSOLL_TRY(device_.synchronize(instruction.issue.queue));
    TimedOp& timed = timed_.emplace_back();
    timed = {&program_.graph.op(program_.graph.order()[at(position)]), start, now_seconds() - start};
    if (measures_memory_) {
      const int64_t own = device_.peak_memory().count;
      timed.measured_bytes = own > 0 ? own : resident_bytes();
    }
    const std::span<const double> threads = device_.take_thread_seconds();
    if (threads.empty()) continue;
    timed.busiest_seconds = std::ranges::max(threads);
    timed.mean_seconds =
        std::accumulate(threads.begin(), threads.end(), 0.0) / static_cast<double>(threads.size());
  }
  return Ok{};
}

/// A part ends joined, so that the next one may begin anywhere: behind the cut nothing waits for events of
/// before.
Status Executable::issue_joined(size_t begin, size_t end) {
  PLIMSOLL_TRY(issue(begin, end, Pace::kQueued));
  for (size_t q = 1; q < ir::kNumAllQueues && end < instructions_.size(); ++q) {
    const auto queue = static_cast<ir::Queue>(q);
    const bool used =
        std::any_of(instructions_.begin() + static_cast<std::ptrdiff_t>(begin),
                    instructions_.begin() + static_cast<std::ptrdiff_t>(end),
                    [&](const Instruction& i) { return i.issue.queue == queue && i.issue.position >= 0; });
    if (!used) continue;
    const EventId join = events_[at(program_.issue.num_events) + q];
    PLIMSOLL_TRY(device_.record(join, queue));
    PLIMSOLL_TRY(device_.wait(ir::Queue::kCompute, join));
  }
  return Ok{};
}

/// A capture is ended whatever its calls return: an error of earlier work may come with any of them, and who
/// cleans up behind it waits for the queues.
Result<std::unique_ptr<CapturedGraph>> Executable::capture(size_t begin, size_t end) {
  PLIMSOLL_TRY(device_.begin_capture());
  Status issued = issue_joined(begin, end);
  auto graph = device_.end_capture();
  PLIMSOLL_TRY(std::move(issued));
  return graph;
}

Status Executable::run_to_update() { return device_.replay(*before_); }

Status Executable::run_update() { return update_ ? device_.replay(*update_) : Status(Ok{}); }

Status Executable::join() {
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) PLIMSOLL_TRY(device_.synchronize(static_cast<ir::Queue>(q)));
  return Ok{};
}

Status Executable::run_timed(bool memory, const std::function<void()>& gate) {
  PLIMSOLL_TRY(join());
  measures_memory_ = memory;
  timed_.clear();
  timed_.reserve(instructions_.size());
  if (device_.logs_what_it_captures()) return run_logged(gate);
  (void)device_.take_thread_seconds();  // what ran before
  const size_t cut = first_update();
  PLIMSOLL_TRY(issue(0, cut, Pace::kTimed));
  if (cut < instructions_.size() && gate) gate();
  return issue(cut, instructions_.size(), Pace::kTimed);
}

Status Executable::run_logged(const std::function<void()>& gate) {
  (void)device_.take_queue_log();  // what ran before
  PLIMSOLL_TRY(run_to_update());
  if (updates() && gate) gate();
  PLIMSOLL_TRY(run_update());
  PLIMSOLL_TRY(join());
  std::map<const ir::Op*, QueueWork> by_op;
  for (const QueueWork& work : device_.take_queue_log())
    if (work.op != nullptr) by_op[work.op] = work;
  const int64_t memory = measures_memory_ ? device_.peak_memory().count : 0;
  for (const Instruction& instruction : instructions_) {
    if (instruction.issue.position < 0) continue;
    const ir::Op* op = &program_.graph.op(program_.graph.order()[at(instruction.issue.position)]);
    const auto found = by_op.find(op);
    if (found == by_op.end()) continue;
    TimedOp& timed = timed_.emplace_back();
    timed = {op, found->second.start, found->second.seconds};
    timed.measured_bytes = memory;
  }
  return Ok{};
}

}  // namespace plimsoll::runtime
