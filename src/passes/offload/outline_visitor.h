// The visitor of the offload walk that counts: storages instead of ops, when each is made and last read,
// which queue waits for which.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/at.h"
#include "ir/op_query.h"
#include "passes/memory/memory_plan.h"
#include "passes/offload/offload_outline.h"
#include "passes/offload/offload_walk.h"

namespace plimsoll::passes {

/// A value stands where its storage does.
class OutlineVisitor {
 public:
  using enum Moment;
  using ValueId = ir::ValueId;
  using Step = OffloadOutliner::Step;
  using Handle = int32_t;
  static constexpr int32_t kNone = -1;

  OutlineVisitor(const OffloadOutliner& facts, const OffloadOptions& options, const OffloadItems& items)
      : facts_(facts),
        graph_(facts.graph_),
        uses_(facts.uses_),
        items_(items),
        num_places_(static_cast<int32_t>(facts.steps_.size())),
        places_(items, num_places_),
        now_(graph_.num_values(), -1),
        shown_(graph_.num_ops(), -1),
        ranges_(items.loads.size()),
        reads_(graph_.states().size()) {
    for (size_t i = 0; i < graph_.states().size(); ++i) {
      const ir::StateDecl& decl = graph_.states()[i];
      spaces_.push_back(decl.space == ir::MemorySpace::kDevice
                            ? offloaded_space(options, decl, uses_.state_blocks[i])
                            : decl.space);
    }
    result_.queues.needs.resize(at(num_places_) + 1);
    storages_.reserve(graph_.num_values());
  }

  OffloadOutline run() {
    OffloadWalk(graph_, places_, *this).run();
    for (const ValueId v : facts_.keep_)
      if (v.valid() && now_[at(uses_.roots[at(v)])] >= 0)
        storage(now_[at(uses_.roots[at(v)])]).last = num_places_ * kMoments - 1;
    join_in_place();
    put_in_states();
    sum_up();
    return std::move(result_);
  }

  void go_to(int32_t place) { place_ = place; }
  [[nodiscard]] const ir::OpDef& def() const { return *facts_.steps_[at(place_)].def; }
  [[nodiscard]] std::span<const ValueId> inputs() const {
    const Step& step = facts_.steps_[at(place_)];
    return std::span(facts_.inputs_).subspan(at(step.first_input), at(step.num_inputs));
  }
  [[nodiscard]] std::span<const ValueId> outputs() const {
    const Step& step = facts_.steps_[at(place_)];
    return std::span(facts_.outputs_).subspan(at(step.first_output), at(step.num_outputs));
  }
  [[nodiscard]] int32_t made(ValueId v) const { return now_[at(uses_.roots[at(v)])]; }

  // ---- loads

  int32_t read_offloaded(const OffloadItem& item, Moment when) {
    return read_state(state_of(item.value), moment(when));
  }
  int32_t part(int32_t l, int32_t source, bool is_first) {
    ranges_[at(l)] = range_of(items_.loads[at(l)].part);
    if (is_first) result_.num_ops += 2;  // the views that show all windows
    return source;
  }
  int32_t start_load(int32_t l, int32_t source) {
    const OffloadLoad& load = items_.loads[at(l)];
    const int32_t there = make(load.bytes, load.to, moment(kLoadsStart));
    touch_source(l, source, moment(kLoadsStart));
    copy(source, there, load.bytes);
    return there;
  }
  int32_t end_load(int32_t l, int32_t source, int32_t there) {
    touch(there, moment(kLoadsArrive));
    touch_source(l, source, moment(kLoadsArrive));
    copied(source, there);
    return there;
  }
  int32_t loaded(ValueId v, int32_t l, int32_t there, bool on_host) {
    if (!on_host) show_loaded(v, l);
    return there;
  }
  int32_t offloaded(ValueId, int32_t item, int32_t source) {
    const OffloadItem& i = items_.items[at(item)];
    if (i.is_state) note_read(state_of(i.value), {}, moment(kOpRuns));
    return source;
  }

  // ---- stores

  int32_t start_store(int32_t s, int32_t source) {
    const OffloadStore& store = items_.stores[at(s)];
    const ir::MemorySpace to =
        store.item >= 0 ? items_.items[at(store.item)].space : spaces_[at(uses_.state[at(place_)])];
    const int32_t there = make(store.bytes, to, moment(kStoresStart));
    touch(source, moment(kStoresStart));
    copy(source, there, store.bytes);
    return there;
  }
  int32_t end_store(int32_t s, int32_t source, int32_t there, Moment when) {
    touch(there, moment(when));
    touch(source, moment(when));
    copied(source, there);
    const OffloadStore& ended = items_.stores[at(s)];
    if (ended.item < 0) note_assigned(graph_.op(ended.assign), uses_.state[at(ended.at)], there, true);
    return there;
  }

  // ---- ops

  void show(int32_t operand) {
    touch(operand, moment(kOpRuns));
    ++result_.num_ops;
  }
  void read() {
    const int32_t state = uses_.state[at(place_)];
    const ValueId v = outputs()[0];
    now_[at(v)] = read_state(state, moment(kOpRuns));
    direct_reads_.emplace_back(state, now_[at(v)]);
  }
  void assign(int32_t operand) {
    touch(operand, moment(kOpRuns));
    note_assigned(graph_.op(graph_.order()[at(place_)]), uses_.state[at(place_)], operand,
                  facts_.whole_[at(inputs()[0])]);
  }
  void compute(std::span<const int32_t> operands) {
    const Step& step = facts_.steps_[at(place_)];
    const bool on_host = items_.on_host[at(place_)];
    const size_t first = read_storages_.size();
    QueuesEnded after = {};
    int32_t source_place = 0;
    for (const int32_t s : operands) {
      read_storages_.push_back(s);
      if (s < 0) continue;
      touch(s, moment(kOpRuns));
      after = later(after, storage(s).after);
      source_place = std::max(source_place, storage(s).source_place);
    }
    if (on_host) {
      result_.queues.add(kQueueHost, after, {.op_place = place_, .place = source_place});
    } else {
      needs() = later(needs(), after);
      after = {}, source_place = place_ + 1;
    }
    const std::span<const ValueId> results = outputs();
    for (size_t i = 0; i < results.size(); ++i) {
      const int32_t consumed = facts_.consumed_[at(step.first_output) + i];
      const int32_t s = consumed >= 0
                            ? read_storages_[first + at(consumed)]
                            : make(facts_.bytes_[at(results[i])],
                                   on_host ? ir::MemorySpace::kHostPinned : graph_.value(results[i]).space,
                                   moment(kOpRuns));
      now_[at(results[i])] = s;
      storage(s).after = after, storage(s).source_place = source_place;
      storage(s).lasts = false;
      read_storages_.push_back(s);
    }
    ++result_.num_ops;
    if (step.def->in_place.empty())
      read_storages_.resize(first);
    else
      candidates_.push_back({place_, first});
    if (const int64_t bytes = on_host ? step.host_scratch : step.device_scratch; bytes > 0)
      scratch_.push_back({place_, on_host, bytes});
  }

 private:
  /// Bytes of a state.
  struct Range {
    int64_t begin = 0, end = std::numeric_limits<int64_t>::max();
  };
  struct Storage {
    int64_t bytes = 0;
    ir::MemorySpace space = ir::MemorySpace::kDevice;
    bool is_state = false;
    bool assigned = false;       // a state is assigned it
    bool in_state = false;       // it is written where that state lies
    bool lasts = false;          // what is in it is a state's
    int32_t made = 0, last = 0;  // moments
    int32_t joined = -1;         // the storage whose place it takes
    QueuesEnded after = {};      // before it is there
    int32_t source_place = 0;    // when kernels have come so far, it is there
  };
  struct Read {
    Range range;
    int32_t last = 0;
  };
  struct Assigned {
    int32_t storage = -1, state = -1;
    Range range;
    bool whole = true;
  };
  /// An op whose results may take an operand's storage.
  struct Candidate {
    int32_t place = 0;
    size_t first = 0;  // into read_storages_: operands, then results
  };

  [[nodiscard]] int32_t moment(Moment when) const { return place_ * kMoments + static_cast<int32_t>(when); }
  Storage& storage(int32_t s) { return storages_[at(s)]; }
  int32_t make(int64_t bytes, ir::MemorySpace space, int32_t when) {
    storages_.push_back({.bytes = bytes, .space = space, .made = when, .last = when});
    return static_cast<int32_t>(storages_.size()) - 1;
  }
  void touch(int32_t s, int32_t when) { storage(s).last = std::max(storage(s).last, when); }
  QueuesEnded& needs() { return result_.queues.needs[at(place_)]; }

  // ---- states

  [[nodiscard]] int32_t state_of(ValueId read) const { return uses_.state[at(uses_.made[at(read)])]; }
  int32_t read_state(int32_t state, int32_t when) {
    const int32_t s = make(0, spaces_[at(state)], when);
    storage(s).is_state = storage(s).lasts = true;
    ++result_.num_ops;
    return s;
  }
  void note_read(int32_t state, const Range& range, int32_t when) {
    std::vector<Read>& reads = reads_[at(state)];
    const auto known = std::ranges::find_if(
        reads, [&](const Read& r) { return r.range.begin == range.begin && r.range.end == range.end; });
    if (known == reads.end())
      reads.push_back({range, when});
    else
      known->last = std::max(known->last, when);
  }
  /// Of a window that a split shows.
  [[nodiscard]] Range range_of(ValueId part) const {
    const ir::Op& split = graph_.op(graph_.value(part).producer);
    Range range{0, 0};
    for (const ValueId v : split.outputs) {
      range.end = range.begin + facts_.bytes_[at(v)];
      if (v == part) break;
      range.begin = range.end;
    }
    return range;
  }
  void touch_source(int32_t l, int32_t source, int32_t when) {
    touch(source, when);
    const OffloadItem& i = items_.items[at(items_.loads[at(l)].item)];
    if (i.is_state) note_read(state_of(i.value), ranges_[at(l)], when);
  }
  void note_assigned(const ir::Op& assign, int32_t state, int32_t s, bool whole) {
    ++result_.num_ops;
    storage(s).assigned = true;
    const ir::TensorType& type = graph_.type(assign.inputs[0]);
    const int64_t begin = ir::assigned_elements(graph_, assign).begin * ir::bits(type.dtype) / 8;
    assigned_.push_back({s, state, {begin, begin + type.bytes().count}, whole});
  }

  // ---- queues

  void copy(int32_t source, int32_t there, int64_t bytes) {
    const Storage& from = storage(source);
    Storage& to = storage(there);
    const bool in = to.space == ir::MemorySpace::kDevice;
    // Its bytes are free when what stands before it has ended.
    QueuesEnded inputs = in ? later(from.after, needs()) : from.after;
    result_.queues.add(
        in ? kQueueIn : kQueueOut, inputs,
        {.bytes = bytes, .from = from.space, .to = to.space, .place = in ? place_ : from.source_place});
    to.after = inputs;
    to.source_place = from.source_place;
    ++result_.num_ops;
  }
  /// Behind it the source's bytes go on to others; what is read by the host alone keeps no kernel waiting.
  void copied(int32_t source, int32_t there) {
    const Storage& from = storage(source);
    Storage& to = storage(there);
    to.after = later(to.after, from.after);
    to.source_place = std::max(to.source_place, from.source_place);
    if (from.space == ir::MemorySpace::kDevice && !from.lasts) needs() = later(needs(), to.after);
    ++result_.num_ops;
  }

  // ---- ops

  /// Views of what was loaded are made once for each load.
  void show_loaded(ValueId v, int32_t l) {
    while (v != uses_.roots[at(v)] && v != items_.loads[at(l)].part) {
      const ir::OpId view = graph_.value(v).producer;
      if (shown_[at(view)] == l) return;
      shown_[at(view)] = l;
      ++result_.num_ops;
      v = graph_.op(view).inputs[0];
    }
  }
  /// A load of the window alone, or all of the storage.
  [[nodiscard]] bool is_whole(ValueId v) const {
    const int32_t item = items_.item_of[at(v)];
    if (item >= 0 && !items_.on_host[at(place_)] && places_.is_back(item, place_)) {
      const OffloadLoad& load = items_.loads[at(places_.load_of(item, place_))];
      if (load.part.valid()) return load.part == v;
    }
    return facts_.whole_[at(v)];
  }

  // ---- behind the walk (offload_outline.cpp)

  /// As the in_place pass decides.
  void join_in_place();
  [[nodiscard]] bool joins(const Step& step, const Candidate& c, const ir::Alias& alias) const;
  /// What is assigned to a state of its space that is not read once the value is there.
  void put_in_states();
  void sum_up();

  struct Scratch {
    int32_t place = 0;
    bool on_host = false;
    int64_t bytes = 0;
  };

  const OffloadOutliner& facts_;
  const ir::Graph& graph_;
  const OffloadUses& uses_;
  const OffloadItems& items_;
  const int32_t num_places_;
  const OffloadPlaces places_;
  int32_t place_ = 0;
  std::vector<ir::MemorySpace> spaces_;  // by state
  std::vector<Storage> storages_;
  std::vector<int32_t> now_;                               // by value: its storage, as the program makes it
  std::vector<int32_t> shown_;                             // by view: the load of which it was made last
  std::vector<Range> ranges_;                              // by load: of the state that it loads
  std::vector<std::vector<Read>> reads_;                   // by state
  std::vector<std::pair<int32_t, int32_t>> direct_reads_;  // state, storage
  std::vector<Assigned> assigned_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> read_storages_;
  std::vector<Scratch> scratch_;
  OffloadOutline result_;
};

}  // namespace plimsoll::passes
