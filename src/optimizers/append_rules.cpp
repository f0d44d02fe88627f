#include "optimizers/append_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/ops.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "optimizers/parameter_rule.h"
#include "optimizers/shared_states.h"

namespace plimsoll::optimizers {
namespace {

using ir::ValueId;

Error no_rule(const OptimizerDef& def, const RuledUpdate& u) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("{} has no rule for {}, a stack of linear layers {}", def.name, u.update.parameter,
                      ir::to_string(u.parameter.shape)),
          "training.optimizer", "choose adamw, or freeze it with training.freeze"};
}

/// What one op updates: a parameter, a piece of it, or one of several on each rank. States are named for the
/// first.
class UpdateOp {
 public:
  UpdateOp(ir::Builder& b, const SharedOperands& shared, std::vector<const RuledUpdate*> members,
           std::string_view rule)
      : b_(b),
        shared_(shared),
        members_(std::move(members)),
        first_(*members_.front()),
        rule_(rule),
        tensor_(ruled_tensor(shared.options, first_.parameter.shape, first_.update)),
        keeps_part_(shared.options.shares_parameters && members_.size() > 1) {
    if (!has_pieces(shared.options, first_.parameter.shape, first_.update)) return;
    piece_ = ops::piece_elements(first_.parameter.shape.num_elements(), shared.options.ranks);
    tensor_.shape = ir::Shape{piece_};
    tensor_.parts = {piece_};
    keeps_part_ = shared.options.shares_parameters;
  }

  void append() {
    const StateDtypes& state = shared_.options.state;
    read_parameters();
    const ValueId param = state.masters ? b_.state({master_name(first_.update.parameter),
                                                    {ir::DType::kF32, tensor_.shape},
                                                    ir::StateClass::kMasterWeight})
                          : keeps_part_ ? parameters_[0]
                                        : own(parameters_);
    add_states();
    std::vector<ValueId> gradients;
    for (const RuledUpdate* m : members_) gradients.push_back(m->update.gradient);
    const ops::UpdateStorage storage = storage_of();
    const ValueId gradient = own(gradients);
    const auto next = rule_.elementwise != nullptr
                          ? ops::update(b_, *rule_.elementwise, param, gradient, states_, shared_.clip,
                                        shared_.groups, first_.update.row, storage)
                          : ops::update_tensor(b_, *rule_.of_tensor, param, gradient, states_, shared_.clip,
                                               shared_.groups, first_.update.row, tensor_, storage);
    assign(next);
  }

 private:
  /// Where the update looks at them, or where other ranks' updates of them are taken.
  void read_parameters() {
    const bool masters = shared_.options.state.masters;
    const ir::StateDecl kept{
        first_.update.parameter, {first_.parameter.dtype, tensor_.shape}, ir::StateClass::kParameter};
    if (keeps_part_) b_.graph().declare_state(kept);
    if (keeps_part_ && !masters) parameters_ = {b_.read(kept.name)};
    if (keeps_part_ || (masters && piece_ == 0 && members_.size() == 1)) return;
    for (const RuledUpdate* m : members_) parameters_.push_back(b_.read(m->update.parameter));
  }
  /// Of one tensor a member, what this rank updates.
  [[nodiscard]] ValueId own(const std::vector<ValueId>& of_members) {
    const int64_t ranks = shared_.options.ranks;
    if (members_.size() > 1) return ops::own_tensor(b_, of_members, ranks);
    const bool is_own = b_.type(of_members[0]).shape == tensor_.shape;  // a gradient that is kept so
    return piece_ == 0 || is_own ? of_members[0] : ops::own_piece(b_, of_members[0], ranks, piece_);
  }
  /// A member's next value, of what this rank has updated.
  [[nodiscard]] ValueId whole(ValueId updated, size_t member) {
    const int64_t ranks = shared_.options.ranks;
    if (members_.size() > 1)
      return ops::from_owner(b_, updated, parameters_[member], ranks, static_cast<int64_t>(member));
    return piece_ == 0 ? updated : ops::all_gather(b_, updated, parameters_[0], ranks);
  }

  void add_states() {
    for (const StateForm& form : rule_.states(tensor_, shared_.options.state.moments)) {
      names_.push_back(state_name(rule_, form.name, first_.update.parameter));
      states_.push_back(b_.state({names_.back(), form.type, ir::StateClass::kOptimizerState}));
      is_brief_ = is_brief_ || form.type.dtype == ir::DType::kBf16;
    }
  }

  [[nodiscard]] ops::UpdateStorage storage_of() {
    const StateDtypes& state = shared_.options.state;
    ops::UpdateStorage storage{.gradient = state.gradients};
    if (state.masters) storage.copy = first_.parameter.dtype;
    const bool is_brief = is_brief_ || (!state.masters && first_.parameter.dtype == ir::DType::kBf16);
    if (!state.stochastic || !is_brief) return storage;
    std::vector<int64_t> keys;
    for (const RuledUpdate* m : members_) keys.push_back(ops::random_key(m->update.parameter, "update"));
    storage.key = keys.front();
    const bool is_whole = piece_ == 0 && members_.size() == 1;
    storage.random =
        is_whole ? shared_.random : ops::own_draws(b_, shared_.random, shared_.options.ranks, piece_, keys);
    return storage;
  }

  void assign(const std::vector<ValueId>& next) {
    const bool masters = shared_.options.state.masters;
    const std::string& name = first_.update.parameter;
    if (masters) b_.assign(master_name(name), next[0]);
    std::vector<ValueId> values;
    const size_t assigned = keeps_part_ ? 1 : members_.size();
    const auto take = [&] {
      for (size_t m = 0; m < assigned; ++m) {
        const ValueId updated = masters ? next.back() : next[0];
        values.push_back(keeps_part_ ? updated : whole(updated, m));
        b_.assign(members_[m]->update.parameter, values.back());
      }
    };
    if (!masters) take();
    for (size_t s = 0; s < names_.size(); ++s) b_.assign(names_[s], next[1 + s]);
    if (masters) take();
    if (!shared_.options.averages) return;
    for (size_t m = 0; m < assigned; ++m)
      append_average(b_, members_[m]->update.parameter, masters ? next[0] : values[m]);
  }

  ir::Builder& b_;
  const SharedOperands& shared_;
  std::vector<const RuledUpdate*> members_;
  const RuledUpdate& first_;
  Rule rule_;
  ops::RuledTensor tensor_;
  int64_t piece_ = 0;        ///< elements of this rank's; 0: all of it
  bool keeps_part_ = false;  ///< of the parameter too: its piece, or the one that it owns
  std::vector<ValueId> parameters_, states_;
  std::vector<std::string> names_;
  bool is_brief_ = false;  ///< a state is kept in bf16
};

}  // namespace

Status append_rules(ir::Builder& b, const std::vector<Update>& updates, const SharedOperands& shared) {
  std::vector<RuledUpdate> ruled;
  for (const Update& u : updates) ruled.push_back({u, parameter_type(b.graph(), u)});
  std::vector<std::vector<size_t>> members(updates.size());
  std::vector<bool> follows(updates.size(), false);
  for (size_t i = 0; i < updates.size(); ++i) members[i] = {i};
  for (std::vector<size_t>& group : owner_groups(shared.options, ruled)) {
    for (size_t m = 1; m < group.size(); ++m) follows[group[m]] = true;
    members[group.front()] = std::move(group);
  }
  for (size_t i = 0; i < updates.size(); ++i) {
    if (follows[i]) continue;
    const std::string_view rule = rule_of(shared.def, shared.options, ruled[i].parameter.shape, updates[i]);
    if (rule.empty()) return no_rule(shared.def, ruled[i]);
    std::vector<const RuledUpdate*> together;
    for (const size_t m : members[i]) together.push_back(&ruled[m]);
    UpdateOp(b, shared, std::move(together), rule).append();
  }
  return b.status();
}

}  // namespace plimsoll::optimizers
