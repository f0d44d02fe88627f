#include "passes/training/unshard.h"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/at.h"
#include "base/check.h"
#include "ir/builder.h"
#include "ir/op_def.h"
#include "ops/op_list.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "passes/offload/offload_uses.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

/// The old graph's ops, one after the other, in a new one.
class Unsharder {
 public:
  Unsharder(const ir::Graph& graph, const Sharding& sharding)
      : old_(graph),
        ranks_(sharding.ranks),
        uses_(graph, {}),
        builder_(graph_, ops::find_op),
        now_(graph.num_values()),
        state_of_(graph.num_values(), nullptr),
        op_now_(graph.num_ops()) {
    for (const ShardedState& state : sharding.states) states_.emplace(state.name, &state);
    late_.insert(sharding.late.begin(), sharding.late.end());
    if (sharding.gathers_late) add_late();
    for (const OpId id : old_.order()) {
      const Op& op = old_.op(id);
      if (op.def->state == ir::StateAccess::kAssign) assigned_.insert(op.attrs.str("name"));
      if (op.def->state == ir::StateAccess::kRead) note_read(op);
    }
  }

  Status run() {
    graph_.name = old_.name;
    for (ir::StateDecl decl : old_.states()) {
      if (const auto it = states_.find(decl.name); it != states_.end())
        decl.name = it->second->kept, decl.type = it->second->type;
      graph_.declare_state(decl);
    }
    for (; place_ < static_cast<int32_t>(old_.order().size()); ++place_) {
      const OpId id = old_.order()[at(place_)];
      if (!is_of_whole(old_.op(id))) take(id);
      PLIMSOLL_TRY(builder_.status());
    }
    return Ok{};
  }
  ir::Graph&& graph() { return std::move(graph_); }
  [[nodiscard]] ValueId now(ValueId v) const { return now_[at(v)]; }
  [[nodiscard]] OpId now(OpId id) const { return op_now_[at(id)]; }

 private:
  /// A tensor that is whole since some place, with what views show of it.
  struct Whole {
    int32_t last = -1;                    ///< place of the last use so far; -1: none
    std::map<ValueId, ValueId> now = {};  ///< by value of the old graph
  };

  /// Those of the program are whole from their first use on.
  void add_late() {
    late_states_.reserve(old_.states().size());
    for (const ir::StateDecl& decl : old_.states())
      if (late_.contains(decl.name)) {
        late_states_.push_back({decl.name, decl.name, decl.type, -1, /*stays=*/true});
        states_.emplace(late_states_.back().name, &late_states_.back());
      }
  }

  void note_read(const Op& read) {
    const auto it = states_.find(read.attrs.str("name"));
    if (it != states_.end()) state_of_[at(read.outputs[0])] = it->second;
  }
  /// The state that a value is read from, or shows; null: none that is shared.
  [[nodiscard]] const ShardedState* state_of(ValueId v) const { return state_of_[at(uses_.roots[at(v)])]; }
  /// The name of the state that a value is read from, or shows; empty: it is computed.
  [[nodiscard]] std::string_view name_of(ValueId v) const {
    const Op& maker = old_.op(old_.value(uses_.roots[at(v)]).producer);
    return maker.def->state == ir::StateAccess::kRead ? std::string_view(maker.attrs.str("name"))
                                                      : std::string_view();
  }
  /// A read of a shared state, or a view of one: made where it is whole.
  [[nodiscard]] bool is_of_whole(const Op& op) const {
    const bool reads = op.def->state == ir::StateAccess::kRead || op.def->is_view;
    return reads && state_of(op.outputs[0]) != nullptr;
  }

  void take(OpId id) {
    Op op = old_.op(id);
    builder_.stand_with(op);
    const bool gathers = op.def->traffic != nullptr && op.inputs.size() == 2;
    if (gathers && late_.contains(name_of(op.inputs[1]))) op.def = ops::find_op("put_piece");
    for (ValueId& v : op.inputs) {
      if (!v.valid()) continue;
      const ShardedState* state = state_of(v);
      v = state == nullptr ? now_[at(v)] : whole(v, *state);
    }
    const std::vector<ValueId> outputs = std::move(op.outputs);
    std::vector<ir::TensorType> types;
    for (const ValueId v : outputs) types.push_back(old_.type(v));
    op_now_[at(id)] = graph_.append(std::move(op), types);
    const std::vector<ValueId>& made = graph_.op(op_now_[at(id)]).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) now_[at(outputs[i])] = made[i];
  }

  ValueId whole(ValueId v, const ShardedState& state) {
    const ValueId root = uses_.roots[at(v)];
    Whole& tensor = wholes_[root];
    if (tensor.last < 0 || (!state.stays && !uses_.are_close(old_, tensor.last, place_)))
      tensor.now = {{root, late_.contains(state.name) ? gathered(state) : unsharded(state, root)}};
    tensor.last = place_;
    return shown(tensor, v);
  }
  ValueId unsharded(const ShardedState& state, ValueId root) {
    const ValueId kept = builder_.read(state.kept);
    return ops::unshard(builder_, kept, old_.type(root), ranks_, state.owner);
  }
  /// The others' pieces beside this rank's, once. An update in the same program keeps what it makes of that.
  ValueId gathered(const ShardedState& state) {
    ValueId& whole = gathered_[state.name];
    if (whole.valid()) return whole;
    const ValueId kept = builder_.read(state.name);
    const int64_t elements = ops::piece_elements(state.type.num_elements(), ranks_);
    whole = ops::all_gather(builder_, ops::own_piece(builder_, kept, ranks_, elements), kept, ranks_);
    if (!assigned_.contains(state.name)) builder_.assign(state.name, whole);
    return whole;
  }
  ValueId shown(Whole& tensor, ValueId v) {
    if (const auto it = tensor.now.find(v); it != tensor.now.end()) return it->second;
    const Op& view = old_.op(old_.value(v).producer);
    PLIMSOLL_CHECK(view.def->is_view, "neither a parameter nor a view of one");
    const std::vector<ValueId> results =
        builder_.ops(view.def->name, {shown(tensor, view.inputs[0])}, view.attrs);
    for (size_t i = 0; i < results.size(); ++i) tensor.now[view.outputs[i]] = results[i];
    return builder_.status() ? tensor.now.at(v) : ValueId{};
  }

  const ir::Graph& old_;
  const int64_t ranks_;
  const OffloadUses uses_;
  ir::Graph graph_;
  ir::Builder builder_;
  std::vector<ValueId> now_;                   // by old value
  std::vector<const ShardedState*> state_of_;  // by old value that is read
  std::vector<OpId> op_now_;                   // by old op
  std::map<std::string_view, const ShardedState*> states_;
  std::vector<ShardedState> late_states_;
  std::set<std::string, std::less<>> late_, assigned_;  // states
  std::map<std::string_view, ValueId> gathered_;        // by state, what is whole since its first use
  std::map<ValueId, Whole> wholes_;                     // by read
  int32_t place_ = 0;
};

}  // namespace

Status unshard(ir::Graph& graph, const Sharding& sharding, const UnshardHolders& holders) {
  if (sharding.states.empty() && sharding.late.empty()) return Ok{};
  Unsharder unsharder(graph, sharding);
  PLIMSOLL_TRY(unsharder.run());
  for (ValueId& v : holders.keep) v = unsharder.now(v);
  OpId* const last = holders.last_forward_op;
  if (last != nullptr && last->valid()) *last = unsharder.now(*last);
  graph = unsharder.graph();
  return Ok{};
}

}  // namespace plimsoll::passes
