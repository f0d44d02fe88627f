#include "settings/param_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io/suggest.h"
#include "optimizers/optimizer_list.h"
#include "settings/state_settings.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

constexpr const char* kPath = "training.param_groups";

/// The member `key` of group `index`, for messages.
struct Place {
  size_t index;
  std::string_view key;
  [[nodiscard]] Error expected(const io::Tree& value, std::string_view what) const {
    return wrong_setting(
        fmt::format("{}[{}].{} is {}, expected {}", kPath, index, key, value.describe(), what),
        "a group is {params: [patterns], learning_rate: 1.0e-3, weight_decay: 0.0, betas: [0.9, "
        "0.999]}; what it leaves out is the run's");
  }
};

Result<double> number_in(const Place& place, const io::Tree& value, double least, double most) {
  const bool is_number = value.kind == io::Tree::Kind::kInteger || value.kind == io::Tree::Kind::kNumber;
  if (is_number && value.number >= least && value.number <= most) return value.number;
  return place.expected(value,
                        fmt::format("a number from {} to {}", io::number_text(least), io::number_text(most)));
}

Result<std::vector<std::string>> patterns_of(const Place& place, const io::Tree& value) {
  std::vector<std::string> patterns;
  const bool one = value.is_scalar() && !value.is_null();
  for (const io::Tree& item : one ? std::vector{value} : value.items) {
    if (!item.is_scalar() || item.is_null() || item.text.empty()) return place.expected(item, "a pattern");
    patterns.push_back(item.text);
  }
  if (patterns.empty()) return place.expected(value, "patterns of parameters' names");
  return patterns;
}

Result<std::array<double, 2>> betas_of(const Place& place, const io::Tree& value) {
  constexpr double kMost = 0.999999999;
  if (value.kind != io::Tree::Kind::kList || value.items.size() != 2)
    return place.expected(value, "two numbers from 0 to below 1");
  PLIMSOLL_ASSIGN(const double first, number_in(place, value.items[0], 0, kMost));
  PLIMSOLL_ASSIGN(const double second, number_in(place, value.items[1], 0, kMost));
  return std::array{first, second};
}

Status read_member(const Place& place, const io::Tree& value, ParamGroup& group) {
  static const std::vector<std::string> kMembers = {"params", "learning_rate", "weight_decay", "betas"};
  if (std::find(kMembers.begin(), kMembers.end(), place.key) == kMembers.end())
    return wrong_setting(
        fmt::format("{}[{}]: there is no '{}'", kPath, place.index, place.key.substr(0, 100)),
        io::nearest_hint(place.key, kMembers));
  if (place.key == "params") {
    PLIMSOLL_ASSIGN(group.params, patterns_of(place, value));
  } else if (value.is_null()) {
    return Ok{};  // the run's
  } else if (place.key == "learning_rate") {
    PLIMSOLL_ASSIGN(group.learning_rate, number_in(place, value, 0, 1e6));
  } else if (place.key == "weight_decay") {
    PLIMSOLL_ASSIGN(group.weight_decay, number_in(place, value, 0, 1e3));
  } else {
    PLIMSOLL_ASSIGN(group.betas, betas_of(place, value));
  }
  return Ok{};
}

}  // namespace

Result<ParamGroups> parse_param_groups(const io::Tree& value) {
  ParamGroups groups;
  if (value.is_null()) return groups;
  if (value.kind != io::Tree::Kind::kList)
    return wrong_setting(fmt::format("{} is {}, expected a list of groups", kPath, value.describe()),
                         "write [{params: [\"*.bias\"], learning_rate: 1.0e-3}]");
  for (size_t i = 0; i < value.items.size(); ++i) {
    const io::Tree& item = value.items[i];
    if (item.kind != io::Tree::Kind::kMap)
      return wrong_setting(fmt::format("{}[{}] is {}, expected a map", kPath, i, item.describe()),
                           "write {params: [\"*.bias\"], learning_rate: 1.0e-3}");
    ParamGroup& group = groups.emplace_back();
    for (const auto& [key, member] : item.members) PLIMSOLL_TRY(read_member({i, key}, member, group));
    if (group.params.empty())
      return wrong_setting(fmt::format("{}[{}] has no params", kPath, i), "name parameters by patterns");
  }
  return groups;
}

std::string param_groups_text(const ParamGroups& groups) {
  if (groups.empty()) return "null";
  io::Tree list = io::Tree::list();
  for (const ParamGroup& group : groups) {
    io::Tree params = io::Tree::list();
    for (const std::string& pattern : group.params) params.items.push_back(io::Tree::of(pattern));
    io::Tree map = io::Tree::map({{"params", std::move(params)}});
    if (group.learning_rate) map.set("learning_rate", io::Tree::of(*group.learning_rate));
    if (group.weight_decay) map.set("weight_decay", io::Tree::of(*group.weight_decay));
    if (group.betas)
      map.set("betas", io::Tree::list({io::Tree::of((*group.betas)[0]), io::Tree::of((*group.betas)[1])}));
    list.items.push_back(std::move(map));
  }
  return io::to_yaml_flow(list);
}

Status check_param_groups(const TrainingSettings& training) {
  const optimizers::OptimizerDef* def = optimizers::find_optimizer(training.optimizer);
  for (size_t i = 0; def != nullptr && i < training.param_groups.size(); ++i) {
    const ParamGroup& group = training.param_groups[i];
    if (group.betas && !def->has_betas())
      return wrong_setting(
          fmt::format("{}[{}] has betas, and training.optimizer is {}, which has none", kPath, i, def->name),
          "leave betas out, or use adamw");
    if (group.weight_decay.value_or(0) != 0 && !def->decays)
      return wrong_setting(fmt::format("training.optimizer {} has no decay, and {}[{}].weight_decay is not 0",
                                       def->name, kPath, i),
                           "use adamw, or leave the group's weight_decay out");
  }
  return Ok{};
}

models::Selection selection_of(const TrainingSettings& training) {
  models::Selection selection{.freeze = training.freeze, .unfreeze = training.unfreeze};
  for (const ParamGroup& group : training.param_groups) selection.groups.push_back(group.params);
  if (const auto* def = optimizers::find_optimizer(training.optimizer))
    if (def->lie_together != nullptr) selection.lie_together = def->lie_together;
  if (state_choice(training).dtypes.codes != optimizers::MomentCodes::kNone)
    selection.lie_together = optimizers::lie_together_in_blocks;
  return selection;
}

std::vector<optimizers::GroupHyper> group_hypers(const TrainingSettings& training) {
  std::vector<optimizers::GroupHyper> groups;
  for (const ParamGroup& group : training.param_groups)
    groups.push_back({group.learning_rate, group.weight_decay, group.betas});
  return groups;
}

}  // namespace plimsoll::settings
