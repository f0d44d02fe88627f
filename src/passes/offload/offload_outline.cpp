// One walk along the order, as offload_emit's, over storages instead of ops. At each place there are five
// moments, in which what happens together may be counted together.
#include "passes/offload/offload_outline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "base/lists.h"
#include "ir/op_query.h"
#include "passes/memory/memory_plan.h"

namespace plimsoll::passes {
namespace {

using ir::MemorySpace;
using ir::ValueId;

/// Moments of a place.
constexpr int32_t kStoresEnd = 0, kLoadsStart = 1, kLoadsArrive = 2, kOpRuns = 3, kStoresStart = 4,
                  kMoments = 5;

}  // namespace

class OutlineWalk {
 public:
  using Step = OffloadOutliner::Step;

  OutlineWalk(const OffloadOutliner& facts, const OffloadOptions& options, const OffloadItems& items)
      : facts_(facts),
        graph_(facts.graph_),
        uses_(facts.uses_),
        items_(items),
        num_places_(static_cast<int32_t>(facts.steps_.size())),
        now_(graph_.num_values(), -1),
        shown_(graph_.num_ops(), -1),
        read_(items.items.size(), -1),
        loads_(items.loads.size()),
        stores_(items.stores.size()),
        reads_(graph_.states().size()) {
    for (size_t i = 0; i < graph_.states().size(); ++i) {
      const ir::StateDecl& decl = graph_.states()[i];
      spaces_.push_back(decl.space == MemorySpace::kDevice
                            ? offloaded_space(options, decl, uses_.state_blocks[i])
                            : decl.space);
    }
    const auto list = [](size_t count, const auto& all, const auto& number_of) {
      return Lists<int32_t>(count, [&](const auto& add) {
        for (size_t i = 0; i < all.size(); ++i) add(at(number_of(all[i])), static_cast<int32_t>(i));
      });
    };
    const size_t n = at(num_places_) + 1;
    loads_of_ = list(items.items.size(), items.loads, [](const OffloadLoad& l) { return l.item; });
    starting_ = list(n, items.loads, [](const OffloadLoad& l) { return l.start; });
    arriving_ = list(n, items.loads, [](const OffloadLoad& l) { return l.first; });
    leaving_ = list(n, items.stores, [](const OffloadStore& s) { return s.at; });
    ending_ = list(n, items.stores, [&](const OffloadStore& s) { return std::min(s.done, num_places_); });
    result_.queues.needs.resize(n);
    storages_.reserve(graph_.num_values());
  }

  OffloadOutline run() {
    for (place_ = 0; place_ < num_places_; ++place_) {
      for (const int32_t s : ending_[at(place_)]) end_store(s, kStoresEnd);
      for (const int32_t l : starting_[at(place_)]) start_load(l);
      for (const int32_t l : arriving_[at(place_)]) arrive(l);
      run_op(facts_.steps_[at(place_)]);
      for (const int32_t s : leaving_[at(place_)]) start_store(s);
    }
    for (size_t s = 0; s < stores_.size(); ++s) end_store(static_cast<int32_t>(s), kStoresEnd);
    for (const ValueId v : facts_.keep_)
      if (v.valid() && now_[at(uses_.roots[at(v)])] >= 0)
        storage(now_[at(uses_.roots[at(v)])]).last = num_places_ * kMoments - 1;
    join_in_place();
    put_in_states();
    sum_up();
    return std::move(result_);
  }

 private:
  /// Bytes of a state.
  struct Range {
    int64_t begin = 0, end = std::numeric_limits<int64_t>::max();
  };
  struct Storage {
    int64_t bytes = 0;
    MemorySpace space = MemorySpace::kDevice;
    bool is_state = false;
    bool assigned = false;       // a state is assigned it
    bool in_state = false;       // it is written where that state lies
    bool lasts = false;          // what is in it is a state's
    int32_t made = 0, last = 0;  // moments
    int32_t joined = -1;         // the storage whose place it takes
    QueuesEnded after = {};      // before it is there
    int32_t source_place = 0;    // when kernels have come so far, it is there
  };
  struct Load {
    int32_t source = -1, there = -1;
    Range range = {};
  };
  struct Store {
    int32_t source = -1, there = -1;
    bool done = false;
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

  [[nodiscard]] int32_t moment(int32_t of_place) const { return place_ * kMoments + of_place; }
  Storage& storage(int32_t s) { return storages_[at(s)]; }
  int32_t make(int64_t bytes, MemorySpace space, int32_t when) {
    storages_.push_back({.bytes = bytes, .space = space, .made = when, .last = when});
    return static_cast<int32_t>(storages_.size()) - 1;
  }
  void touch(int32_t s, int32_t when) { storage(s).last = std::max(storage(s).last, when); }
  QueuesEnded& needs() { return result_.queues.needs[at(place_)]; }

  // ---- loads

  /// Where the item lies elsewhere; a store of it that is under way ends at that moment.
  int32_t source_of(int32_t item, int32_t of_place) {
    const OffloadItem& i = items_.items[at(item)];
    if (i.stays && !i.is_state) return now_[at(i.value)];
    if (!i.is_state) {
      end_store(i.store, of_place);
      return stores_[at(i.store)].there;
    }
    if (read_[at(item)] < 0) read_[at(item)] = read_state(state_of(i.value), moment(of_place));
    return read_[at(item)];
  }
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
  void touch_source(Load& load, int32_t item, int32_t when) {
    touch(load.source, when);
    const OffloadItem& i = items_.items[at(item)];
    if (i.is_state) note_read(state_of(i.value), load.range, when);
  }
  void start_load(int32_t l) {
    const OffloadLoad& load = items_.loads[at(l)];
    Load& started = loads_[at(l)];
    const bool is_first = read_[at(load.item)] < 0;
    started.source = source_of(load.item, kStoresEnd);
    if (load.part.valid()) {
      started.range = range_of(load.part);
      if (is_first) result_.num_ops += 2;  // the views that show all windows
    }
    started.there = make(load.bytes, load.to, moment(kLoadsStart));
    touch_source(started, load.item, moment(kLoadsStart));
    copy(started.source, started.there, load.bytes);
  }
  void arrive(int32_t l) {
    Load& load = loads_[at(l)];
    touch(load.there, moment(kLoadsArrive));
    touch_source(load, items_.loads[at(l)].item, moment(kLoadsArrive));
    copied(load.source, load.there);
  }
  /// The load that serves the op at hand.
  [[nodiscard]] int32_t load_of(int32_t item) const {
    for (const int32_t l : loads_of_[at(item)])
      if (items_.loads[at(l)].first <= place_ && place_ <= items_.loads[at(l)].last) return l;
    PLIMSOLL_FAIL("an operand that is not loaded");
  }

  // ---- stores

  void start_store(int32_t s) {
    const OffloadStore& store = items_.stores[at(s)];
    const bool is_value = store.item >= 0;
    const ValueId v = is_value ? items_.items[at(store.item)].value : graph_.op(store.assign).inputs[0];
    const int32_t source = is_value ? now_[at(v)] : operand(v, kStoresStart);
    const MemorySpace to =
        is_value ? items_.items[at(store.item)].space : spaces_[at(uses_.state[at(place_)])];
    const int32_t there = make(store.bytes, to, moment(kStoresStart));
    touch(source, moment(kStoresStart));
    stores_[at(s)] = {source, there, false};
    copy(source, there, store.bytes);
  }
  void end_store(int32_t s, int32_t of_place) {
    Store& store = stores_[at(s)];
    if (store.done || store.there < 0) return;
    store.done = true;
    touch(store.there, moment(of_place));
    touch(store.source, moment(of_place));
    copied(store.source, store.there);
    const OffloadStore& ended = items_.stores[at(s)];
    if (ended.item < 0) note_assigned(graph_.op(ended.assign), uses_.state[at(ended.at)], store.there, true);
  }

  // ---- queues

  void copy(int32_t source, int32_t there, int64_t bytes) {
    const Storage& from = storage(source);
    Storage& to = storage(there);
    const bool in = to.space == MemorySpace::kDevice;
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
    if (from.space == MemorySpace::kDevice && !from.lasts) needs() = later(needs(), to.after);
    ++result_.num_ops;
  }

  // ---- ops

  [[nodiscard]] bool is_back(int32_t item) const {
    const OffloadItem& i = items_.items[at(item)];
    if (i.stays) return false;
    return i.is_state || place_ > items_.stores[at(i.store)].at;
  }
  int32_t operand(ValueId v, int32_t of_place) {
    const int32_t item = items_.item_of[at(v)];
    const ValueId root = uses_.roots[at(v)];
    if (of_place == kOpRuns && items_.on_host[at(place_)]) {
      PLIMSOLL_CHECK(item >= 0, "an operand that the host does not reach");
      if (items_.items[at(item)].stays) return loads_[at(load_of(item))].there;
      const int32_t source = source_of(item, kLoadsArrive);
      if (items_.items[at(item)].is_state)
        note_read(state_of(items_.items[at(item)].value), {}, moment(of_place));
      return source;
    }
    if (item < 0 || !is_back(item)) return now_[at(root)];
    const int32_t l = load_of(item);
    show_loaded(v, l);
    return loads_[at(l)].there;
  }
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
    if (item >= 0 && !items_.on_host[at(place_)] && is_back(item)) {
      const OffloadLoad& load = items_.loads[at(load_of(item))];
      if (load.part.valid()) return load.part == v;
    }
    return facts_.whole_[at(v)];
  }

  void run_op(const Step& step) {
    const auto inputs = std::span(facts_.inputs_).subspan(at(step.first_input), at(step.num_inputs));
    const auto outputs = std::span(facts_.outputs_).subspan(at(step.first_output), at(step.num_outputs));
    if (step.def->is_view)
      show(inputs[0]);
    else if (step.def->state == ir::StateAccess::kRead)
      read(outputs[0]);
    else if (step.def->state == ir::StateAccess::kAssign)
      assign(inputs[0]);
    else
      compute(step, inputs, outputs);
  }
  void show(ValueId of) {
    const int32_t item = items_.item_of[at(of)];
    if (item >= 0 && is_back(item)) return;  // shown anew of each load
    touch(now_[at(uses_.roots[at(of)])], moment(kOpRuns));
    ++result_.num_ops;
  }
  void read(ValueId v) {
    const int32_t item = items_.item_of[at(v)];
    if (item >= 0 && !items_.items[at(item)].stays) return;  // where it is loaded
    const int32_t state = uses_.state[at(place_)];
    now_[at(v)] = read_state(state, moment(kOpRuns));
    direct_reads_.emplace_back(state, now_[at(v)]);
  }
  void assign(ValueId v) {
    const auto is_assignment = [&](int32_t s) { return items_.stores[at(s)].item < 0; };
    if (std::ranges::any_of(leaving_[at(place_)], is_assignment)) return;  // by its store
    const int32_t s = now_[at(uses_.roots[at(v)])];
    touch(s, moment(kOpRuns));
    note_assigned(graph_.op(graph_.order()[at(place_)]), uses_.state[at(place_)], s, facts_.whole_[at(v)]);
  }
  void compute(const Step& step, std::span<const ValueId> inputs, std::span<const ValueId> outputs) {
    const bool on_host = items_.on_host[at(place_)];
    const size_t first = read_storages_.size();
    QueuesEnded after = {};
    int32_t source_place = 0;
    for (const ValueId v : inputs) {
      const int32_t s = v.valid() ? operand(v, kOpRuns) : -1;
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
    for (size_t i = 0; i < outputs.size(); ++i) {
      const int32_t consumed = facts_.consumed_[at(step.first_output) + i];
      const int32_t s =
          consumed >= 0
              ? read_storages_[first + at(consumed)]
              : make(facts_.bytes_[at(outputs[i])],
                     on_host ? MemorySpace::kHostPinned : graph_.value(outputs[i]).space, moment(kOpRuns));
      now_[at(outputs[i])] = s;
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
  void note_assigned(const ir::Op& assign, int32_t state, int32_t s, bool whole) {
    ++result_.num_ops;
    storage(s).assigned = true;
    const ir::TensorType& type = graph_.type(assign.inputs[0]);
    const int64_t begin = ir::assigned_elements(graph_, assign).begin * ir::bits(type.dtype) / 8;
    assigned_.push_back({s, state, {begin, begin + type.bytes().count}, whole});
  }

  // ---- behind the walk

  /// As the in_place pass decides.
  void join_in_place() {
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
  [[nodiscard]] bool joins(const Step& step, const Candidate& c, const ir::Alias& alias) const {
    if (alias.output >= step.num_outputs || alias.input >= step.num_inputs) return false;
    const auto operands = std::span(read_storages_).subspan(c.first, at(step.num_inputs));
    const int32_t from = operands[at(alias.input)];
    const int32_t to = read_storages_[c.first + at(step.num_inputs) + at(alias.output)];
    if (from < 0 || facts_.consumed_[at(step.first_output) + at(alias.output)] >= 0) return false;
    const Storage &a = storages_[at(from)], &b = storages_[at(to)];
    const ValueId in = facts_.inputs_[at(step.first_input) + at(alias.input)];
    const ValueId out = facts_.outputs_[at(step.first_output) + at(alias.output)];
    if (a.is_state || a.assigned || b.assigned || a.last != moment(kOpRuns) || a.space != b.space)
      return false;
    return is_whole(in) && facts_.bytes_[at(in)] == facts_.bytes_[at(out)] &&
           std::ranges::count(operands, from) == 1;
  }

  /// What is assigned to a state of its space that is not read once the value is there.
  void put_in_states() {
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

  void sum_up() {
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
      auto& change =
          changes[static_cast<size_t>(s.on_host ? MemorySpace::kHostPinned : MemorySpace::kDevice)];
      const size_t when = at(s.place * kMoments + kOpRuns);
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
  int32_t place_ = 0;
  std::vector<MemorySpace> spaces_;  // by state
  std::vector<Storage> storages_;
  std::vector<int32_t> now_;    // by value: its storage, as the program makes it
  std::vector<int32_t> shown_;  // by view: the load of which it was made last
  Lists<int32_t> loads_of_;     // by item
  std::vector<int32_t> read_;   // by item: the storage of the state that it is
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<std::vector<Read>> reads_;                   // by state
  std::vector<std::pair<int32_t, int32_t>> direct_reads_;  // state, storage
  std::vector<Assigned> assigned_;
  std::vector<Candidate> candidates_;
  std::vector<int32_t> read_storages_;
  std::vector<Scratch> scratch_;
  Lists<int32_t> starting_, arriving_, ending_, leaving_;  // by place
  OffloadOutline result_;
};

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
  return OutlineWalk(*this, options, items).run();
}

}  // namespace plimsoll::passes
