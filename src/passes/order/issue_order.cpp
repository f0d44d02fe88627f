// One walk along the order. Each queue has a clock: up to which position the work of every other queue is
// known to be done before the queue's next op. An op that needs more than its queue knows waits for an event,
// and from then on its queue knows what the event's maker knew.
#include "passes/order/issue_order.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>

#include "base/at.h"
#include "base/check.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"
#include "ir/op_query.h"
#include "passes/recompute/overwritten.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::ValueId;

/// By queue a position in the order; -1: nothing of it.
using Clock = std::array<int32_t, ir::kNumAllQueues>;

Clock nothing() {
  Clock clock;
  clock.fill(-1);
  return clock;
}

void raise(Clock& clock, const Clock& other) {
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) clock[q] = std::max(clock[q], other[q]);
}

/// The last uses of a cell of a storage, by queue.
struct Uses {
  Clock write = nothing();  ///< the last one alone: writes are ordered among each other
  Clock reads = nothing();  ///< since that
  [[nodiscard]] Clock all() const {
    Clock both = write;
    raise(both, reads);
    return both;
  }
};

class Issuer {
 public:
  Issuer(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan)
      : graph_(graph), binding_(binding), plan_(plan) {
    for (Clock& clock : known_) clock = nothing();
    for (size_t s = 0; s < binding.storages.size(); ++s)
      if (const int state = binding.storages[s].state; state >= 0)
        states_.emplace(graph.states()[static_cast<size_t>(state)].name, s);
  }

  IssueOrder run() {
    for (size_t p = 0; p < graph_.order().size(); ++p) {
      const Op& op = graph_.op(graph_.order()[p]);
      several_ = several_ || op.queue != ir::Queue::kCompute;
    }
    if (several_) {
      cut_cells();
      find_heirs();
    }
    for (size_t p = 0; p < graph_.order().size(); ++p) visit(static_cast<int32_t>(p));
    for (size_t q = 0; q < ir::kNumAllQueues; ++q)  // the end waits for all
      if (last_[q] >= 0) need(static_cast<ir::Queue>(q), last_[q]);
    wait(ir::Queue::kCompute);
    place_records();
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_copied(ir::OpId id) const {
    const auto& copied = binding_.copied_assigns;
    return std::find(copied.begin(), copied.end(), id) != copied.end();
  }

  void visit(int32_t position) {
    const ir::OpId id = graph_.order()[static_cast<size_t>(position)];
    const Op& op = graph_.op(id);
    const bool is_assign = op.def->state == ir::StateAccess::kAssign;
    if (op.def->is_view || op.def->state == ir::StateAccess::kRead || (is_assign && !is_copied(id))) return;
    if (several_) {
      order_behind(op, position);
      note_uses(op, position);
    }
    last_[static_cast<size_t>(op.queue)] = position;
    result_.issues.push_back(
        {op.def->is_copy || is_assign ? Issue::Kind::kCopy : Issue::Kind::kLaunch, op.queue, position, -1});
  }

  // ---- cells

  /// A storage is one cell, or several where copies move parts of it: what is done with one part does not
  /// wait for what is done with another.
  void cut_cells() {
    std::vector<std::vector<int64_t>> cuts(binding_.storages.size());
    const auto cut = [&](const StorageRange& range) {
      for (const int64_t byte : {range.begin, range.end})
        if (byte > 0 && byte < binding_.storages[at(range.storage)].bytes)
          cuts[at(range.storage)].push_back(byte);
    };
    for (const ir::OpId id : graph_.order()) {
      const Op& op = graph_.op(id);
      if (op.def->state == ir::StateAccess::kAssign && is_copied(id)) cut(assigned(op));
      if (!op.def->is_copy) continue;
      if (op.inputs[0].valid()) cut(range_of(graph_, binding_, op.inputs[0]));
      cut(range_of(graph_, binding_, op.outputs[0]));
    }
    for (size_t s = 0; s < cuts.size(); ++s) {
      cells_of_.push_back(uses_.size());
      std::ranges::sort(cuts[s]);
      cuts[s].erase(std::unique(cuts[s].begin(), cuts[s].end()), cuts[s].end());
      ends_.insert(ends_.end(), cuts[s].begin(), cuts[s].end());
      ends_.push_back(std::numeric_limits<int64_t>::max());
      uses_.resize(ends_.size());
    }
    cells_of_.push_back(uses_.size());
  }

  /// The cells in which any byte of the range lies: from the first to before the second.
  struct Cells {
    size_t begin = 0, end = 0;
  };
  [[nodiscard]] Cells all_cells(int32_t storage) const {
    return {cells_of_[at(storage)], cells_of_[at(storage) + 1]};
  }
  [[nodiscard]] Cells cells(const StorageRange& range) const {
    const Cells all = all_cells(range.storage);
    const auto end_of = [&](size_t cell) { return ends_.begin() + static_cast<std::ptrdiff_t>(cell); };
    const auto first = std::upper_bound(end_of(all.begin), end_of(all.end), range.begin);
    const auto last = std::lower_bound(first, end_of(all.end), range.end);
    return {static_cast<size_t>(first - ends_.begin()), static_cast<size_t>(last - ends_.begin()) + 1};
  }
  [[nodiscard]] Cells cells(ValueId v) const { return cells(range_of(graph_, binding_, v)); }

  /// What the op writes: its results, its workspace, what a first run of it leaves, what of a state it
  /// assigns.
  [[nodiscard]] std::vector<StorageRange> written(const Op& op, int32_t position) const {
    std::vector<StorageRange> ranges;
    for (const ValueId v : op.outputs) ranges.push_back(range_of(graph_, binding_, v));
    if (op.def->state == ir::StateAccess::kAssign) ranges.push_back(assigned(op));
    for (const auto* beside : {&binding_.workspaces, &binding_.double_runs}) {
      const auto p = static_cast<size_t>(position);
      if (p >= beside->size() || (*beside)[p] < 0) continue;
      const int32_t storage = (*beside)[p];
      ranges.push_back({storage, 0, binding_.storages[at(storage)].bytes});
    }
    return ranges;
  }
  [[nodiscard]] StorageRange assigned(const Op& op) const {
    const auto found = states_.find(op.attrs.str("name"));
    PLIMSOLL_CHECK(found != states_.end(), "a state without a storage");
    const auto storage = static_cast<int32_t>(found->second);
    if (!op.inputs[0].valid()) return {storage, 0, binding_.storages[found->second].bytes};
    const ir::TensorType& type = graph_.type(op.inputs[0]);
    const int64_t begin = ir::assigned_elements(graph_, op).begin * ir::bits(type.dtype) / 8;
    return {storage, begin, begin + type.bytes().count};
  }
  /// Of a storage's cells together.
  [[nodiscard]] Clock all_uses(size_t storage) const {
    Clock all = nothing();
    const Cells cells = all_cells(static_cast<int32_t>(storage));
    for (size_t c = cells.begin; c < cells.end; ++c) raise(all, uses_[c].all());
    return all;
  }

  // ---- what an op needs

  /// Of a storage of the arena those that lay in its bytes just before it, to whose last uses its first one
  /// comes behind: what lay there earlier those came behind in their turn.
  void find_heirs() {
    former_.resize(binding_.storages.size());
    std::vector<size_t> alive;  // of the arenas, by birth
    for (size_t s = 0; s < binding_.storages.size(); ++s)
      if (plan_.offsets[s] >= 0 && binding_.storages[s].bytes > 0) alive.push_back(s);
    const auto first = [&](size_t s) { return binding_.storages[s].first; };
    std::stable_sort(alive.begin(), alive.end(), [&](size_t a, size_t b) { return first(a) < first(b); });
    for (const size_t s : alive) {
      std::map<int64_t, Lying>& lying = lying_[static_cast<size_t>(binding_.storages[s].space)];
      const int64_t begin = plan_.offsets[s], end = begin + binding_.storages[s].bytes;
      split(lying, begin);
      split(lying, end);
      const auto from = lying.lower_bound(begin), to = lying.lower_bound(end);
      for (auto it = from; it != to; ++it) former_[s].push_back(it->second.storage);
      lying.erase(from, to);
      lying[begin] = {end, s};
    }
  }

  /// The storage that came last to the bytes from a key to `end`.
  struct Lying {
    int64_t end = 0;
    size_t storage = 0;
  };
  /// No range of bytes goes over `at`.
  static void split(std::map<int64_t, Lying>& lying, int64_t at) {
    auto it = lying.lower_bound(at);
    if (it == lying.begin() || std::prev(it)->second.end <= at) return;
    --it;
    const Lying behind = it->second;
    it->second.end = at;
    lying[at] = behind;
  }

  void need(ir::Queue queue, int32_t position) {
    int32_t& needed = needed_[static_cast<size_t>(queue)];
    needed = std::max(needed, position);
  }
  void need(const Clock& clock) { raise(needed_, clock); }

  void order_behind(const Op& op, int32_t position) {
    for (const ValueId v : op.inputs) {
      const Cells read = v.valid() ? cells(v) : Cells{};
      for (size_t c = read.begin; c < read.end; ++c) need(uses_[c].write);
    }
    for (const StorageRange& range : written(op, position)) {
      const Cells over = cells(range);
      for (size_t c = over.begin; c < over.end; ++c) need(uses_[c].all());
      const size_t s = at(range.storage);
      if (binding_.storages[s].state < 0 && all_uses(s) == nothing())
        for (const size_t f : former_[s]) need(all_uses(f));
    }
    wait(op.queue);
    clocks_.try_emplace(position, known_[static_cast<size_t>(op.queue)])
        .first->second[static_cast<size_t>(op.queue)] = position;
    known_[static_cast<size_t>(op.queue)][static_cast<size_t>(op.queue)] = position;
  }

  void note_uses(const Op& op, int32_t position) {
    const auto q = static_cast<size_t>(op.queue);
    for (const ValueId v : op.inputs) {
      const Cells read = v.valid() ? cells(v) : Cells{};
      for (size_t c = read.begin; c < read.end; ++c) uses_[c].reads[q] = position;
    }
    for (const StorageRange& range : written(op, position)) {
      const Cells over = cells(range);
      for (size_t c = over.begin; c < over.end; ++c) {
        uses_[c] = {};
        uses_[c].write[q] = position;
      }
    }
  }

  // ---- events

  /// Makes `queue` wait for what is needed and not known; what another needed op knows need not be asked for.
  void wait(ir::Queue queue) {
    Clock& known = known_[static_cast<size_t>(queue)];
    Clock asked = needed_;
    needed_ = nothing();
    for (size_t r = 0; r < ir::kNumAllQueues; ++r) {
      if (r == static_cast<size_t>(queue) || asked[r] <= known[r]) asked[r] = -1;
    }
    for (size_t r = 0; r < ir::kNumAllQueues; ++r)
      for (size_t other = 0; other < ir::kNumAllQueues && asked[r] >= 0; ++other)
        if (other != r && asked[other] >= 0 && clocks_.at(asked[other])[r] >= asked[r]) asked[r] = -1;
    for (size_t r = 0; r < ir::kNumAllQueues; ++r) {
      if (asked[r] < 0) continue;
      const auto [event, made] = events_.try_emplace(asked[r], result_.num_events);
      if (made) ++result_.num_events;
      result_.issues.push_back({Issue::Kind::kWait, queue, -1, event->second});
      raise(known, clocks_.at(asked[r]));
    }
  }

  /// Each event behind its op.
  void place_records() {
    if (events_.empty()) return;
    std::vector<Issue> issues;
    for (const Issue& issue : result_.issues) {
      issues.push_back(issue);
      const auto event = issue.position < 0 ? events_.end() : events_.find(issue.position);
      if (event != events_.end()) issues.push_back({Issue::Kind::kRecord, issue.queue, -1, event->second});
    }
    result_.issues = std::move(issues);
  }

  const ir::Graph& graph_;
  const Binding& binding_;
  const MemoryPlan& plan_;
  bool several_ = false;                                    ///< queues
  std::map<std::string_view, size_t, std::less<>> states_;  ///< by name the storage
  std::array<std::map<int64_t, Lying>, ir::kNumSpaces> lying_;
  std::vector<Uses> uses_;        ///< by cell
  std::vector<int64_t> ends_;     ///< by cell: the byte behind it
  std::vector<size_t> cells_of_;  ///< by storage: its first cell
  std::vector<std::vector<size_t>> former_;
  std::array<Clock, ir::kNumAllQueues> known_;
  Clock needed_ = nothing();
  Clock last_ = nothing();             ///< issued
  std::map<int32_t, Clock> clocks_;    ///< by position: what is done when that op is
  std::map<int32_t, int32_t> events_;  ///< by position: the event recorded behind it
  IssueOrder result_;
};

}  // namespace

IssueOrder issue_order(const ir::Graph& graph, const Binding& binding, const MemoryPlan& plan) {
  return Issuer(graph, binding, plan).run();
}

}  // namespace plimsoll::passes
