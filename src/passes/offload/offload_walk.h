// The one walk that decides where copies stand and what each op then reads. A visitor is told of each
// decision and does with it what it is for: offload_emit writes the program, offload_outline counts its bytes
// and work.
//
//   in front of each op     stores that end there, loads that begin there, loads that its operands wait for
//   the op
//   behind it               stores of what is not read on the device for a while, and of assigned states
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/at.h"
#include "base/check.h"
#include "base/lists.h"
#include "ir/graph.h"
#include "ir/op_def.h"
#include "passes/offload/offload_items.h"

namespace plimsoll::passes {

/// The moments of a place in the order: what happens in one may be counted together.
enum class Moment : uint8_t { kStoresEnd, kLoadsStart, kLoadsArrive, kOpRuns, kStoresStart };
inline constexpr int32_t kMoments = 5;

/// Loads and stores by the places that they have in the order.
struct OffloadPlaces {
  OffloadPlaces(const OffloadItems& all, int32_t places) : items(all), num_places(places) {
    const auto list = [](size_t count, const auto& of, const auto& number_of) {
      return Lists<int32_t>(count, [&](const auto& add) {
        for (size_t i = 0; i < of.size(); ++i) add(at(number_of(of[i])), static_cast<int32_t>(i));
      });
    };
    const size_t n = at(places) + 1;
    loads_of = list(all.items.size(), all.loads, [](const OffloadLoad& l) { return l.item; });
    starting = list(n, all.loads, [](const OffloadLoad& l) { return l.start; });
    arriving = list(n, all.loads, [](const OffloadLoad& l) { return l.first; });
    leaving = list(n, all.stores, [](const OffloadStore& s) { return s.at; });
    ending = list(n, all.stores, [&](const OffloadStore& s) { return std::min(s.done, places); });
  }

  /// Whether ops at `place` read the item where it was brought back to, and not where it was made.
  [[nodiscard]] bool is_back(int32_t item, int32_t place) const {
    const OffloadItem& i = items.items[at(item)];
    if (i.stays) return false;
    return i.is_state || place > items.stores[at(i.store)].at;
  }
  /// The load of the item that serves the op at `place`.
  [[nodiscard]] int32_t load_of(int32_t item, int32_t place) const {
    for (const int32_t l : loads_of[at(item)])
      if (items.loads[at(l)].first <= place && place <= items.loads[at(l)].last) return l;
    PLIMSOLL_FAIL("an operand that is not loaded");
  }

  const OffloadItems& items;
  int32_t num_places = 0;
  Lists<int32_t> loads_of;                             ///< by item
  Lists<int32_t> starting, arriving, ending, leaving;  ///< by place
};

/// `Visitor` has a Handle, which stands for a value of the program, kNone for none, and
///   go_to(place)                                   all that follows happens there
///   def(), inputs(), outputs()                     of the op there
///   made(v)                                        what the program itself has made of a value
///   read_offloaded(item, moment)                   reads a state where it lies for good
///   part(load, source, is_first)                   the window of `source` that is loaded alone
///   start_load(load, source), end_load(load, source, copy)
///   start_store(store, source), end_store(store, source, copy, moment)
///   loaded(v, load, copy, on_host)                 a value, or a view of it, as it was loaded
///   offloaded(v, item, source)                     the same where it lies, for a kernel of the host
///   show(operand), read(), assign(operand), compute(operands)  the op there: a view, of a state, a kernel
/// Copies that end are replaced by what end_load and end_store give.
template <class Visitor>
class OffloadWalk {
 public:
  using Handle = typename Visitor::Handle;
  using ValueId = ir::ValueId;

  OffloadWalk(const ir::Graph& graph, const OffloadPlaces& places, Visitor& visitor)
      : graph_(graph),
        places_(places),
        items_(places.items),
        visitor_(visitor),
        read_(items_.items.size(), Visitor::kNone),
        loads_(items_.loads.size()),
        stores_(items_.stores.size()) {}

  void run() {
    for (place_ = 0; place_ < places_.num_places; ++place_) {
      visitor_.go_to(place_);
      for (const int32_t s : places_.ending[at(place_)]) end_store(s, Moment::kStoresEnd);
      for (const int32_t l : places_.starting[at(place_)]) start_load(l);
      for (const int32_t l : places_.arriving[at(place_)])
        loads_[at(l)].copy = visitor_.end_load(l, loads_[at(l)].source, loads_[at(l)].copy);
      run_op();
      for (const int32_t s : places_.leaving[at(place_)]) start_store(s);
    }
    visitor_.go_to(place_);
    for (size_t s = 0; s < stores_.size(); ++s) end_store(static_cast<int32_t>(s), Moment::kStoresEnd);
  }

 private:
  struct Copy {
    Handle source = Visitor::kNone, copy = Visitor::kNone;
    bool has_started = false, has_ended = false;
  };

  /// Where the item lies elsewhere; a store of it that is under way ends at that moment.
  Handle source_of(int32_t item, Moment moment) {
    const OffloadItem& i = items_.items[at(item)];
    if (i.stays && !i.is_state) return visitor_.made(i.value);
    if (!i.is_state) {
      end_store(i.store, moment);
      return stores_[at(i.store)].copy;
    }
    if (read_[at(item)] == Visitor::kNone) read_[at(item)] = visitor_.read_offloaded(i, moment);
    return read_[at(item)];
  }
  void start_load(int32_t l) {
    const OffloadLoad& load = items_.loads[at(l)];
    const bool is_first = read_[at(load.item)] == Visitor::kNone;
    Handle source = source_of(load.item, Moment::kStoresEnd);
    if (load.part.valid()) source = visitor_.part(l, source, is_first);
    loads_[at(l)] = {source, visitor_.start_load(l, source)};
  }
  void start_store(int32_t s) {
    const OffloadStore& store = items_.stores[at(s)];
    const Handle source = store.item >= 0 ? visitor_.made(items_.items[at(store.item)].value)
                                          : operand(graph_.op(store.assign).inputs[0], Moment::kStoresStart);
    stores_[at(s)] = {source, visitor_.start_store(s, source), true};
  }
  void end_store(int32_t s, Moment moment) {
    Copy& store = stores_[at(s)];
    if (store.has_ended || !store.has_started) return;
    store.has_ended = true;
    store.copy = visitor_.end_store(s, store.source, store.copy, moment);
  }

  [[nodiscard]] bool is_back(int32_t item) const { return places_.is_back(item, place_); }
  [[nodiscard]] bool is_on_host() const { return items_.on_host[at(place_)]; }
  Handle operand(ValueId v, Moment moment) {
    const int32_t item = items_.item_of[at(v)];
    if (moment == Moment::kOpRuns && is_on_host()) return host_operand(v, item);
    if (item < 0 || !is_back(item)) return visitor_.made(v);
    const int32_t l = places_.load_of(item, place_);
    return visitor_.loaded(v, l, loads_[at(l)].copy, false);
  }
  /// Of a kernel of the host: where it lies for good, or what was brought there.
  Handle host_operand(ValueId v, int32_t item) {
    PLIMSOLL_CHECK(item >= 0, "an operand that the host does not reach");
    if (!items_.items[at(item)].stays)
      return visitor_.offloaded(v, item, source_of(item, Moment::kLoadsArrive));
    const int32_t l = places_.load_of(item, place_);
    return visitor_.loaded(v, l, loads_[at(l)].copy, true);
  }

  /// Views are made for each load, states are read where their loads begin and assigned where their stores
  /// end: those ops are left out.
  void run_op() {
    const ir::OpDef& def = visitor_.def();
    const std::span<const ValueId> inputs = visitor_.inputs();
    if (def.is_view) {
      const int32_t item = items_.item_of[at(inputs[0])];
      if (item < 0 || !is_back(item)) visitor_.show(visitor_.made(inputs[0]));
    } else if (def.state == ir::StateAccess::kRead) {
      const int32_t item = items_.item_of[at(visitor_.outputs()[0])];
      if (item < 0 || items_.items[at(item)].stays) visitor_.read();
    } else if (def.state == ir::StateAccess::kAssign) {
      const auto is_assignment = [&](int32_t s) { return items_.stores[at(s)].item < 0; };
      if (std::ranges::none_of(places_.leaving[at(place_)], is_assignment))
        visitor_.assign(operand(inputs[0], Moment::kOpRuns));
    } else {
      operands_.clear();
      for (const ValueId v : inputs)
        operands_.push_back(v.valid() ? operand(v, Moment::kOpRuns) : Visitor::kNone);
      visitor_.compute(operands_);
    }
  }

  const ir::Graph& graph_;
  const OffloadPlaces& places_;
  const OffloadItems& items_;
  Visitor& visitor_;
  int32_t place_ = 0;
  std::vector<Handle> read_;          // by item: the state that it is, once it was read
  std::vector<Copy> loads_, stores_;  // by number
  std::vector<Handle> operands_;      // of the op at hand
};

}  // namespace plimsoll::passes
