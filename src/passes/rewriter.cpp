// Bookkeeping of edits; see the header.
#include "passes/rewriter.h"

#include <algorithm>

#include "base/at.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "passes/memory/storage_groups.h"

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
      position_(graph.num_ops(), 0),
      removed_(graph.num_ops(), true) {
  for (const ValueId v : wanted)
    if (v.valid()) wanted_[at(v)] = true;
  for (size_t i = 0; i < order_.size(); ++i) {
    position_[at(order_[i])] = i;
    removed_[at(order_[i])] = false;
    for (const ir::Alias& a : ir::op_consumes(graph_.op(order_[i])))
      consumed_[root(graph_.op(order_[i]).inputs[static_cast<size_t>(a.input)]).index].push_back(i);
  }
}

std::vector<OpId>& Rewriter::edit_uses(ValueId v) {
  const auto [edited, is_first] = edited_uses_.try_emplace(v.index);
  if (is_first && at(v) < uses_.size()) edited->second.assign(uses_[at(v)].begin(), uses_[at(v)].end());
  return edited->second;
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
  const auto consumed = consumed_.find(root(v).index);
  if (consumed == consumed_.end()) return next;
  for (const size_t place : consumed->second)
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
  wanted_.resize(graph_.num_values(), false);
  position_.push_back(position(anchor));
  removed_.push_back(false);
  before_[anchor.index].push_back(id);
  for (const ValueId v : op(id).inputs)
    if (v.valid() && (uses(v).empty() || uses(v).back() != id)) edit_uses(v).push_back(id);
  for (const ir::Alias& a : ir::op_consumes(op(id)))
    consumed_[root(op(id).inputs[static_cast<size_t>(a.input)]).index].push_back(position(id));
}

void Rewriter::replace(ValueId from, ValueId to) {
  if (!from.valid() || !to.valid() || from == to) return;  // invalid after an error, which finish() tells
  std::vector<OpId>& users = edit_uses(to);
  for (const OpId user : uses(from)) {
    auto& inputs = graph_.op(user).inputs;
    std::replace(inputs.begin(), inputs.end(), from, to);
    if (std::find(users.begin(), users.end(), user) == users.end()) users.push_back(user);
  }
  edit_uses(from).clear();
  if (wanted(from)) wanted_[at(to)] = true;
  wanted_[at(from)] = false;
  replaced_.emplace_back(from, to);
}

void Rewriter::remove(OpId id) {
  removed_[at(id)] = true;
  for (const ValueId v : op(id).inputs)
    if (v.valid()) std::erase(edit_uses(v), id);
}

void Rewriter::emit(OpId id, std::vector<OpId>& into) const {
  if (const auto before = before_.find(id.index); before != before_.end())
    for (const OpId b : before->second) emit(b, into);
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
