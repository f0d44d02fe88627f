// Planned programs with one fault each: events, copies' ends, dependencies and places, removed or moved in
// turn.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "planned.h"

namespace plimsoll::fixtures {

struct Mutant {
  const char* kind;
  const passes::Binding& binding;
  const passes::MemoryPlan& plan;
  const passes::IssueOrder& order;
};

class Mutations {
 public:
  using Visit = std::function<void(const Mutant&)>;
  Mutations(const PlannedStep& program, uint64_t seed, Visit visit)
      : p_(program), dice_(seed), visit_(std::move(visit)) {}

  /// Every record and wait left out.
  void without_events() {
    for (size_t i = 0; i < issues().size(); ++i) {
      if (is_work(i)) continue;
      passes::IssueOrder order = p_.order;
      order.issues.erase(order.issues.begin() + static_cast<int64_t>(i));
      visit(kind(i) == Kind::kWait ? "wait removed" : "record removed", order);
    }
  }

  /// Every record and wait past the work of its queue before it or behind it; waits for other events.
  void moved_events() {
    for (size_t i = 0; i < issues().size(); ++i) {
      if (is_work(i)) continue;
      const bool is_wait = kind(i) == Kind::kWait;
      for (size_t j = i; j-- > 0;)
        if (is_work(j) && queue(j) == queue(i)) {
          visit(is_wait ? "wait earlier" : "record earlier", moved(i, j));
          break;
        }
      for (size_t j = i + 1; j < issues().size(); ++j)
        if (is_work(j) && queue(j) == queue(i)) {
          visit(is_wait ? "wait later" : "record later", moved(i, j));
          break;
        }
      if (!is_wait || p_.order.num_events < 2) continue;
      passes::IssueOrder order = p_.order;
      order.issues[i].event = static_cast<int32_t>(
          (issues()[i].event + dice_.range(1, p_.order.num_events - 1)) % p_.order.num_events);
      visit("wait for another event", order);
    }
  }

  /// Work issued earlier or later than planned, or not at all; copies on the other copy queue.
  void moved_work() {
    for (size_t i = 0; i < issues().size(); ++i) {
      if (!is_work(i) || (queue(i) == ir::Queue::kCompute && dice_.chance(80))) continue;
      const auto last = static_cast<int64_t>(issues().size()) - 1;
      visit("work moved",
            moved(i, static_cast<size_t>(std::min(
                         last, std::max<int64_t>(0, static_cast<int64_t>(i) + dice_.range(-6, 6))))));
      passes::IssueOrder order = p_.order;
      order.issues.erase(order.issues.begin() + static_cast<int64_t>(i));
      visit("work removed", order);
      if (queue(i) == ir::Queue::kCompute) continue;
      order = p_.order;
      order.issues[i].queue = queue(i) == ir::Queue::kCopyIn ? ir::Queue::kCopyOut : ir::Queue::kCopyIn;
      visit("another queue", order);
    }
  }

  /// Each copy_done forgotten when lifetimes are taken: planned and issued as if its source and its
  /// destination were free once the copy has begun.
  void forgotten_dones() {
    for (size_t p = 0; p < p_.graph.order().size(); ++p) {
      if (op(p).def->name != "copy_done") continue;
      passes::Binding binding = p_.binding;
      take_lifetimes(binding, p);
      const passes::MemoryPlan plan = passes::plan_memory(p_.graph, binding);
      const passes::IssueOrder order = passes::issue_order(p_.graph, binding, plan);
      visit_({"done forgotten", binding, plan, order});
      visit_({"done forgotten, issued as before", binding, plan, p_.order});
    }
  }

  /// Each operand that another queue makes, and each one of a copy, forgotten when events are made.
  void forgotten_dependencies() {
    for (size_t p = 0; p < p_.graph.order().size(); ++p)
      for (size_t i = 0; i < op(p).inputs.size(); ++i) {
        const ir::ValueId v = op(p).inputs[i];
        if (!v.valid() || op(p).def->is_view) continue;
        if (!op(p).def->is_copy && !is_copied(v)) continue;
        Graph graph = p_.graph;
        graph.op(graph.order()[p]).inputs[i] = {};
        visit("dependency forgotten", passes::issue_order(graph, p_.binding, p_.plan));
      }
  }

  /// Storages put where others lie.
  void moved_storages(int64_t count) {
    std::vector<size_t> storages;
    for (size_t s = 0; s < p_.plan.offsets.size(); ++s)
      if (p_.plan.offsets[s] >= 0) storages.push_back(s);
    for (int64_t i = 0; i < count && storages.size() > 1; ++i) {
      passes::MemoryPlan plan = p_.plan;
      plan.offsets[pick(storages)] = p_.plan.offsets[pick(storages)];
      visit_({"offset moved", p_.binding, plan, p_.order});
      visit_(
          {"offset moved, issued anew", p_.binding, plan, passes::issue_order(p_.graph, p_.binding, plan)});
      passes::Binding binding = p_.binding;
      const auto v = static_cast<size_t>(dice_.range(0, static_cast<int64_t>(p_.graph.num_values()) - 1));
      if (binding.places[v].storage < 0) continue;
      binding.places[v].storage = static_cast<int32_t>(pick(storages));
      visit_({"value moved", binding, p_.plan, p_.order});
    }
  }

 private:
  using Kind = passes::Issue::Kind;

  [[nodiscard]] const std::vector<passes::Issue>& issues() const { return p_.order.issues; }
  [[nodiscard]] Kind kind(size_t i) const { return issues()[i].kind; }
  [[nodiscard]] ir::Queue queue(size_t i) const { return issues()[i].queue; }
  [[nodiscard]] bool is_work(size_t i) const { return issues()[i].position >= 0; }
  [[nodiscard]] const ir::Op& op(size_t p) const { return p_.graph.op(p_.graph.order()[p]); }
  size_t pick(const std::vector<size_t>& from) {
    return from[static_cast<size_t>(dice_.range(0, static_cast<int64_t>(from.size()) - 1))];
  }

  /// Whether a view of a copy that is done, or it itself.
  [[nodiscard]] bool is_copied(ir::ValueId v) const {
    const ir::Op* maker = &p_.graph.op(p_.graph.value(v).producer);
    while (maker->def->is_view && maker->def->name != "copy_done")
      maker = &p_.graph.op(p_.graph.value(maker->inputs[0]).producer);
    return maker->def->name == "copy_done";
  }

  void visit(const char* what, const passes::IssueOrder& order) {
    visit_({what, p_.binding, p_.plan, order});
  }

  [[nodiscard]] passes::IssueOrder moved(size_t from, size_t to) const {
    passes::IssueOrder order = p_.order;
    const passes::Issue issue = order.issues[from];
    order.issues.erase(order.issues.begin() + static_cast<int64_t>(from));
    order.issues.insert(order.issues.begin() + static_cast<int64_t>(to), issue);
    return order;
  }

  /// From the first to the last op that touches each storage, the one at `without` left out.
  void take_lifetimes(passes::Binding& binding, size_t without) const {
    for (size_t s = 0; s < binding.storages.size(); ++s)
      if (binding.storages[s].category != passes::Category::kWorkspace)
        binding.storages[s].first = binding.storages[s].last = -1;
    for (size_t p = 0; p < p_.graph.order().size(); ++p) {
      if (p == without) continue;
      for (const auto* values : {&op(p).inputs, &op(p).outputs})
        for (const ir::ValueId v : *values) {
          if (!v.valid()) continue;
          auto& s =
              binding.storages[static_cast<size_t>(binding.places[static_cast<size_t>(v.index)].storage)];
          if (s.first < 0) s.first = static_cast<int32_t>(p);
          s.last = static_cast<int32_t>(p);
        }
    }
  }

  const PlannedStep& p_;
  Dice dice_;
  Visit visit_;
};

}  // namespace plimsoll::fixtures
