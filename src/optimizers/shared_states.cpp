#include "optimizers/shared_states.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "ops/ranks.h"
#include "ops/shard.h"
#include "optimizers/parameter_rule.h"

namespace plimsoll::optimizers {
namespace {

std::string_view rule_name(const OptimizerOptions& options, const ir::Shape& parameter,
                           const Update& update) {
  const OptimizerDef* def = find_optimizer(options.name);
  if (def == nullptr || options.ranks == 1 || parameter.num_elements() <= ops::kPieceGrain) return {};
  return rule_of(*def, options, parameter, update);
}

/// What parameters that one op updates, each on its owner, have in common.
using Form = std::tuple<std::string, std::vector<int64_t>, int, std::vector<int64_t>, int64_t>;

Form form_of(std::string_view rule, const RuledUpdate& u) {
  const auto dims = u.parameter.shape.dims();
  return {std::string(rule),
          {dims.begin(), dims.end()},
          static_cast<int>(u.parameter.dtype),
          u.update.parts,
          u.update.row};
}

/// The states of `of`, its own among them where ranks share it, which `kept` keeps.
void add_states(const OptimizerOptions& options, const RuledUpdate& of, const RuledUpdate& kept,
                int32_t owner, std::vector<SharedState>& shared) {
  const ir::Shape& shape = of.parameter.shape;
  const Rule rule(rule_name(options, shape, of.update));
  const std::string &name = of.update.parameter, &keeper = kept.update.parameter;
  if (options.shares_parameters) shared.push_back({name, of.parameter, keeper, owner});
  if (options.shares_parameters && options.averages)
    shared.push_back({average_name(name), {ir::DType::kF32, shape}, average_name(keeper), owner});
  if (options.state.masters)
    shared.push_back({master_name(name), {ir::DType::kF32, shape}, master_name(keeper), owner});
  for (const StateForm& form : rule.states(ruled_tensor(options, shape, of.update), options.state.moments))
    shared.push_back(
        {state_name(rule, form.name, name), form.type, state_name(rule, form.name, keeper), owner});
}

}  // namespace

bool has_pieces(const OptimizerOptions& options, const ir::Shape& parameter, const Update& update) {
  const std::string_view name = rule_name(options, parameter, update);
  if (name.empty()) return false;
  const Rule rule(name);
  return rule.elementwise != nullptr ||
         (rule.of_tensor->block_elements > 0 && ops::kPieceGrain % rule.of_tensor->block_elements == 0);
}

std::vector<std::vector<size_t>> owner_groups(const OptimizerOptions& options,
                                              const std::vector<RuledUpdate>& updates) {
  std::vector<std::vector<size_t>> groups;
  std::map<Form, size_t> open;  // the group that still has owners
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto& [update, parameter] = updates[i];
    const std::string_view name = rule_name(options, parameter.shape, update);
    if (name.empty() || has_pieces(options, parameter.shape, update)) continue;
    const auto [found, is_new] = open.emplace(form_of(name, updates[i]), groups.size());
    if (!is_new && std::ssize(groups[found->second]) == options.ranks) found->second = groups.size();
    if (found->second == groups.size()) groups.emplace_back();
    groups[found->second].push_back(i);
  }
  std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
  return groups;
}

ir::TensorType kept_type(const SharedState& shared, int64_t ranks) {
  return shared.owner < 0 ? ops::piece_type(shared.type, ranks) : shared.type;
}

std::vector<SharedState> shared_states(const OptimizerOptions& options,
                                       const std::vector<RuledUpdate>& updates) {
  std::vector<SharedState> shared;
  for (const RuledUpdate& u : updates)
    if (has_pieces(options, u.parameter.shape, u.update)) add_states(options, u, u, -1, shared);
  for (const std::vector<size_t>& group : owner_groups(options, updates))
    for (size_t i = 0; i < group.size(); ++i)
      add_states(options, updates[group[i]], updates[group.front()], static_cast<int32_t>(i), shared);
  return shared;
}

}  // namespace plimsoll::optimizers
