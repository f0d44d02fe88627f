// Puts round trips of random values through other memory into a program: out after a use, back before a later
// one, at random places between, over one space or two, now and then through a state.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "ops/ops.h"
#include "random_program.h"

namespace plimsoll::fixtures {

class RandomOffload {
 public:
  RandomOffload(Graph& graph, uint64_t seed) : graph_(graph), dice_(seed) {}

  /// Inserts up to `count`; returns how many there were places for.
  int64_t insert(int64_t count) {
    int64_t inserted = 0;
    for (int64_t tries = 0; tries < 20 * count && inserted < count; ++tries) inserted += try_one() ? 1 : 0;
    return inserted;
  }

 private:
  bool try_one() {
    const ValueId v{static_cast<int32_t>(dice_.range(0, static_cast<int64_t>(graph_.num_values()) - 1))};
    std::vector<int64_t> uses;  // places in the order
    int64_t made = -1;
    for (int64_t p = 0; p < size(); ++p) {
      const ir::Op& op = at(p);
      if (std::count(op.outputs.begin(), op.outputs.end(), v) > 0) made = p;
      if (std::count(op.inputs.begin(), op.inputs.end(), v) > 0) uses.push_back(p);
    }
    const bool is_input = made >= 0 && at(made).def->name == "state";
    const bool fits = made >= 0 && !uses.empty() && graph_.value(v).space == ir::MemorySpace::kDevice &&
                      !at(made).def->is_copy && !(is_input && dice_.chance(70));
    if (!fits) return false;
    // Back before a random use; all uses from there on see what came back.
    const size_t use = static_cast<size_t>(dice_.range(0, static_cast<int64_t>(uses.size()) - 1));
    if (uses[use] - made < 2) return false;
    return round_trip(v, made, uses[use]);
  }

  bool round_trip(ValueId v, int64_t made, int64_t use) {
    for (int64_t p = use; p < size(); ++p)  // a copy keeps its source, which is no use of the value
      if (at(p).def->name == "copy_done" && at(p).inputs[1] == v) return false;
    const auto before = static_cast<size_t>(size());
    const std::vector<OpPart> parts = make_trip(v);
    const ValueId back = graph_.op(parts.back().ops.back()).outputs[0];
    std::vector<ir::OpId> order = graph_.order();
    order.resize(before);
    for (size_t p = static_cast<size_t>(use); p < before; ++p)
      for (ValueId& in : graph_.op(order[p]).inputs)
        if (in == v) in = back;
    std::vector<int64_t> places;
    for (size_t i = 0; i < parts.size(); ++i) places.push_back(dice_.range(made + 1, use));
    std::sort(places.begin(), places.end());
    for (size_t i = parts.size(); i-- > 0;)
      order.insert(order.begin() + places[i], parts[i].ops.begin(), parts[i].ops.end());
    graph_.set_order(std::move(order));
    return true;
  }

  /// Ops that stay together.
  struct OpPart {
    std::vector<ir::OpId> ops;
  };

  /// Starts and dones, appended to the order.
  std::vector<OpPart> make_trip(ValueId v) {
    Builder b(graph_, ops::find_op);
    b.set_layer("trip." + std::to_string(num_trips_++));
    std::vector<OpPart> parts;
    const auto part = [&] {
      parts.push_back({{graph_.order().begin() + static_cast<int64_t>(taken_), graph_.order().end()}});
      taken_ = graph_.order().size();
    };
    taken_ = graph_.order().size();
    std::vector<ir::MemorySpace> way = {ir::MemorySpace::kHostPinned, ir::MemorySpace::kHostPageable,
                                        ir::MemorySpace::kDisk};
    std::rotate(way.begin(), way.begin() + dice_.range(0, 2), way.end());
    way.resize(dice_.chance(25) ? 2 : 1);
    way.push_back(ir::MemorySpace::kDevice);
    for (const ir::MemorySpace to : way) {
      const ValueId copy = ops::copy_start(b, v, to);
      part();
      v = ops::copy_done(b, copy);
      if (to != ir::MemorySpace::kDevice && dice_.chance(25)) v = through_state(b, v, to);
      part();
    }
    PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
    return parts;
  }

  ValueId through_state(Builder& b, ValueId v, ir::MemorySpace space) {
    const std::string name = b.layer() + "." + std::string(ir::name(space));
    graph_.declare_state(
        {.name = name, .type = graph_.type(v), .state_class = StateClass::kCache, .space = space});
    b.assign(name, v);
    return b.read(name);
  }

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(graph_.order().size()); }
  [[nodiscard]] const ir::Op& at(int64_t p) const {
    return graph_.op(graph_.order()[static_cast<size_t>(p)]);
  }

  Graph& graph_;
  Dice dice_;
  int64_t num_trips_ = 0;
  size_t taken_ = 0;
};

}  // namespace plimsoll::fixtures
