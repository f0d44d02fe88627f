// Decisions and sums behind the walk: which results take an operand's storage, what is written where a state
// lies, the most that is alive.
#include "passes/offload/offload_outline.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "ir/op_query.h"
#include "passes/memory/memory_plan.h"
#include "passes/offload/outline_visitor.h"

namespace plimsoll::passes {

using ir::MemorySpace;
using ir::ValueId;

void OutlineVisitor::join_in_place() {
  for (size_t s = 0; s < storages_.size(); ++s) storages_[s].joined = static_cast<int32_t>(s);
  for (const Candidate& c : candidates_) {
    const Step& step = facts_.steps_[at(c.place)];
    place_ = c.place;
    std::vector<ir::Alias> taken;
    for (const ir::Alias& alias : step.def->in_place) {
      const bool clashes = std::ranges::any_of(
          taken, [&](const ir::Alias& t) { return t.output == alias.output || t.input == alias.input; });
      if (clashes || !joins(step, c, alias)) continue;
      taken.push_back(alias);
      const int32_t from = read_storages_[c.first + at(alias.input)],
                    to = read_storages_[c.first + at(step.num_inputs) + at(alias.output)];
      storage(to).joined = storage(from).joined;
    }
  }
  for (const Storage& s : storages_) {
    Storage& whole = storages_[at(s.joined)];
    whole.last = std::max(whole.last, s.last);
  }
}

bool OutlineVisitor::joins(const Step& step, const Candidate& c, const ir::Alias& alias) const {
  if (alias.output >= step.num_outputs || alias.input >= step.num_inputs) return false;
  const auto operands = std::span(read_storages_).subspan(c.first, at(step.num_inputs));
  const int32_t from = operands[at(alias.input)];
  const int32_t to = read_storages_[c.first + at(step.num_inputs) + at(alias.output)];
  if (from < 0 || facts_.consumed_[at(step.first_output) + at(alias.output)] >= 0) return false;
  const Storage &a = storages_[at(from)], &b = storages_[at(to)];
  const ValueId in = facts_.inputs_[at(step.first_input) + at(alias.input)];
  const ValueId out = facts_.outputs_[at(step.first_output) + at(alias.output)];
  if (a.is_state || a.assigned || b.assigned || a.last != moment(kOpRuns) || a.space != b.space) return false;
  return is_whole(in) && facts_.bytes_[at(in)] == facts_.bytes_[at(out)] &&
         std::ranges::count(operands, from) == 1;
}

void OutlineVisitor::put_in_states() {
  for (const auto& [state, s] : direct_reads_) note_read(state, {}, storage(s).last);
  for (const Assigned& a : assigned_) {
    Storage& s = storage(a.storage);
    if (s.is_state || !a.whole || s.space != spaces_[at(a.state)] || s.bytes != a.range.end - a.range.begin)
      continue;
    const bool is_read = std::ranges::any_of(reads_[at(a.state)], [&](const Read& r) {
      return r.range.begin < a.range.end && a.range.begin < r.range.end && r.last >= s.made;
    });
    s.in_state = s.in_state || !is_read;
  }
}

void OutlineVisitor::sum_up() {
  const size_t n = at(num_places_);
  std::array<std::vector<int64_t>, ir::kNumSpaces> changes;
  for (auto& change : changes) change.assign(n * at(kMoments) + 1, 0);
  for (size_t i = 0; i < storages_.size(); ++i) {
    const Storage& s = storages_[i];
    if (s.joined != static_cast<int32_t>(i) || s.is_state || s.in_state || s.bytes == 0) continue;
    const int64_t bytes = round_up(s.bytes, alignment_of(s.space));
    changes[static_cast<size_t>(s.space)][at(s.made)] += bytes;
    changes[static_cast<size_t>(s.space)][std::min(at(s.last), n * at(kMoments) - 1) + 1] -= bytes;
  }
  for (const Scratch& s : scratch_) {
    auto& change = changes[static_cast<size_t>(s.on_host ? MemorySpace::kHostPinned : MemorySpace::kDevice)];
    const size_t when = at(s.place * kMoments + static_cast<int32_t>(kOpRuns));
    const int64_t bytes = round_up(s.bytes, kStorageAlignment);
    change[when] += bytes, change[when + 1] -= bytes;
  }
  for (size_t space = 0; space < ir::kNumSpaces; ++space) {
    int64_t now = 0;
    result_.alive[space].assign(n, 0);
    for (size_t when = 0; when < n * at(kMoments); ++when) {
      now += changes[space][when];
      int64_t& most = result_.alive[space][when / at(kMoments)];
      most = std::max(most, now);
      result_.peak_bytes[space] = std::max(result_.peak_bytes[space], now);
    }
  }
}

OffloadOutliner::OffloadOutliner(const ir::Graph& graph, ir::OpId last_forward_op,
                                 const KernelScratch& scratch, std::span<const ir::ValueId> keep)
    : graph_(graph),
      uses_(graph, last_forward_op),
      whole_(graph.num_values(), true),
      keep_(keep.begin(), keep.end()) {
  bytes_.reserve(graph.num_values());
  for (size_t v = 0; v < graph.num_values(); ++v)
    bytes_.push_back(graph.type(ValueId{static_cast<int32_t>(v)}).bytes().count);
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    PLIMSOLL_CHECK(!op.def->is_copy, "copies before offload");
    Step step{.def = op.def,
              .first_input = static_cast<int32_t>(inputs_.size()),
              .num_inputs = static_cast<int32_t>(op.inputs.size()),
              .first_output = static_cast<int32_t>(outputs_.size()),
              .num_outputs = static_cast<int32_t>(op.outputs.size())};
    inputs_.insert(inputs_.end(), op.inputs.begin(), op.inputs.end());
    outputs_.insert(outputs_.end(), op.outputs.begin(), op.outputs.end());
    const std::vector<ir::Alias> consumes = op.def->is_view ? std::vector<ir::Alias>{} : ir::op_consumes(op);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto alias = std::ranges::find(consumes, static_cast<int32_t>(i), &ir::Alias::output);
      consumed_.push_back(alias == consumes.end() ? -1 : alias->input);
      if (op.def->is_view)
        whole_[at(op.outputs[i])] = whole_[at(op.inputs[0])] && op.outputs.size() == 1;
      else if (alias != consumes.end())
        whole_[at(op.outputs[i])] = whole_[at(op.inputs[at(alias->input)])];
    }
    if (!op.def->is_view && op.def->state == ir::StateAccess::kNone) {
      if (scratch.device) step.device_scratch = scratch.device(ir::op_types(graph, op));
      if (scratch.host && op.block == ir::kUpdateBlock)
        step.host_scratch = scratch.host(ir::op_types(graph, op));
    }
    steps_.push_back(step);
  }
}

OffloadOutline OffloadOutliner::outline(const OffloadOptions& options, const OffloadItems& items) const {
  return OutlineVisitor(*this, options, items).run();
}

}  // namespace plimsoll::passes
