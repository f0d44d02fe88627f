// Bookkeeping of edits; see the header.
#include "passes/rewriter.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ops/op_list.h"
#include "passes/slot.h"
#include "passes/storage_groups.h"

namespace plimsoll::passes {
namespace {

using ir::OpId;
using ir::ValueId;

}  // namespace

void follow(std::span<ValueId> values, const Replaced& replaced) {
  for (const auto& [from, to] : replaced) std::replace(values.begin(), values.end(), from, to);
}

Rewriter::Rewriter(ir::Graph& graph, std::span<const ValueId> wanted)
    : graph_(graph),
      order_(graph.order()),
      builder_(graph, ops::find_op),
      uses_(graph.uses()),
      wanted_(graph.num_values(), false),
      consumed_(graph.num_values()),
      position_(graph.num_ops(), 0),
      removed_(graph.num_ops(), true),
      before_(graph.num_ops()) {
  for (const ValueId v : wanted)
    if (v.valid()) wanted_[slot(v)] = true;
  for (size_t i = 0; i < order_.size(); ++i) {
    position_[slot(order_[i])] = i;
    removed_[slot(order_[i])] = false;
    for (const ir::Alias& a : ir::op_consumes(graph_.op(order_[i])))
      consumed_[slot(root(graph_.op(order_[i]).inputs[static_cast<size_t>(a.input)]))].push_back(i);
  }
}

ValueId Rewriter::root(ValueId v) const { return view_root(graph_, v); }

bool Rewriter::only_use(ValueId v, OpId user) const {
  return !wanted(v) && uses(v).size() == 1 && uses(v).front() == user;
}

bool Rewriter::used_only_after(ValueId v, size_t position, std::span<const OpId> except) const {
  return std::all_of(uses(v).begin(), uses(v).end(), [&](OpId user) {
    return this->position(user) > position || std::find(except.begin(), except.end(), user) != except.end();
  });
}

size_t Rewriter::next_consumed(ValueId v, size_t from) const {
  size_t next = static_cast<size_t>(-1);
  for (const size_t place : consumed_[slot(root(v))])
    if (place > from) next = std::min(next, place);
  return next;
}

bool Rewriter::consumed_between(ValueId v, size_t from, size_t to) const {
  return next_consumed(v, from) < to;
}

bool Rewriter::may_sink(OpId id, size_t to) const {
  return std::none_of(op(id).inputs.begin(), op(id).inputs.end(),
                      [&](ValueId v) { return v.valid() && consumed_between(v, position(id), to); });
}

std::vector<ValueId> Rewriter::before(OpId anchor, std::string_view name, std::vector<ValueId> inputs,
                                      ir::Attrs attrs) {
  builder_.stand_with(op(anchor));
  const size_t known = graph_.num_ops();
  std::vector<ValueId> results = builder_.ops(name, std::move(inputs), std::move(attrs));
  if (graph_.num_ops() > known) note_new_op(OpId{static_cast<int32_t>(known)}, anchor);
  return results;
}

void Rewriter::note_new_op(OpId id, OpId anchor) {
  uses_.resize(graph_.num_values());
  wanted_.resize(graph_.num_values(), false);
  consumed_.resize(graph_.num_values());
  position_.push_back(position(anchor));
  removed_.push_back(false);
  before_.resize(graph_.num_ops());
  before_[slot(anchor)].push_back(id);
  for (const ValueId v : op(id).inputs)
    if (v.valid() && (uses_[slot(v)].empty() || uses_[slot(v)].back() != id)) uses_[slot(v)].push_back(id);
  for (const ir::Alias& a : ir::op_consumes(op(id)))
    consumed_[slot(root(op(id).inputs[static_cast<size_t>(a.input)]))].push_back(position(id));
}

void Rewriter::replace(ValueId from, ValueId to) {
  if (!from.valid() || !to.valid() || from == to) return;  // invalid after an error, which finish() tells
  for (const OpId user : uses(from)) {
    auto& inputs = graph_.op(user).inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    auto& users = uses_[slot(to)];
    if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
  }
  uses_[slot(from)].clear();
  if (wanted(from)) wanted_[slot(to)] = true;
  wanted_[slot(from)] = false;
  replaced_.emplace_back(from, to);
}

void Rewriter::remove(OpId id) {
  removed_[slot(id)] = true;
  for (const ValueId v : op(id).inputs)
    if (v.valid()) std::erase(uses_[slot(v)], id);
}

void Rewriter::emit(OpId id, std::vector<OpId>& into) const {
  for (const OpId b : before_[slot(id)]) emit(b, into);
  if (!removed(id)) into.push_back(id);
}

Result<Replaced> Rewriter::finish() {
  PLIMSOLL_TRY(builder_.status());
  std::vector<OpId> order;
  order.reserve(order_.size());
  for (const OpId id : order_) emit(id, order);
  graph_.set_order(std::move(order));
  return std::move(replaced_);
}

}  // namespace plimsoll::passes
