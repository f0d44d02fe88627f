#include "settings/precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/suggest.h"
#include "numerics/fp8_recipes.h"

namespace plimsoll::settings {
namespace {

/// A precision of the run file as passes name it.
ops::Precision pass_precision(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return ops::Precision::kTf32;
    case Precision::kBf16:
      return ops::Precision::kBf16;
    case Precision::kFp16:
      return ops::Precision::kF16;
    case Precision::kFp8:  // what is in FP8 is marked beside
      return ops::Precision::kBf16;
    case Precision::kFp32:
      break;
  }
  return ops::Precision::kF32;
}

/// What a pattern without stars may be: parts in a row of a name, but not a layer's number by itself.
std::vector<std::string> parts_in_a_row(const std::vector<std::string>& names) {
  std::set<std::string> parts;
  for (const std::string& name : names)
    for (size_t begin = 0; begin < name.size();) {
      for (size_t end = begin; end < name.size(); ++end) {
        end = std::min(name.find('.', end), name.size());
        if (name[begin] < '0' || name[begin] > '9') parts.insert(name.substr(begin, end - begin));
      }
      begin = std::min(name.find('.', begin), name.size()) + 1;
    }
  return {parts.begin(), parts.end()};
}

/// As its writer may have meant it: without what stars say alone.
std::string_view named_by(std::string_view pattern) {
  while (pattern.size() > 2 && pattern.ends_with(".*")) pattern.remove_suffix(2);
  while (pattern.size() > 2 && pattern.starts_with("*.")) pattern.remove_prefix(2);
  return pattern;
}

std::vector<std::string> split_at_dots(std::string_view name) {
  std::vector<std::string> parts(1);
  for (const char c : name)
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// The pattern with the name of the storage in place of a weight's that lies in it beside others: of q_proj
/// qkv_proj. Empty where it names no such weight.
std::string storage_named_by(std::string_view pattern, const models::Model& model) {
  for (const models::Parameter& parameter : model.parameters())
    for (const models::ParameterView& view : parameter.views) {
      if (view.name == parameter.name || !passes::matches(std::string(pattern), {{view.name}, {}})) continue;
      const std::vector<std::string> its = split_at_dots(view.name), whole = split_at_dots(parameter.name);
      const auto [own, of_all] = std::mismatch(its.begin(), its.end(), whole.begin(), whole.end());
      const auto its_own = own;  // clang 14 captures no structured binding
      if (its_own == its.end() || of_all == whole.end()) continue;
      std::vector<std::string> parts = split_at_dots(pattern);
      const auto named = std::find_if(parts.rbegin(), parts.rend(), [&](const std::string& part) {
        return fnmatch(part.c_str(), its_own->c_str(), 0) == 0;
      });
      if (named == parts.rend()) continue;
      *named = *of_all;
      return fmt::format("{}", fmt::join(parts, "."));
    }
  return "";
}

}  // namespace

passes::Fp8Settings fp8_settings(const TrainingSettings& training) {
  const Fp8Settings& fp8 = training.fp8;
  return {.enabled = training.precision == Precision::kFp8,
          .keep_last_layers = fp8.keep_last_layers,
          .form = {.recipe = numerics::find_fp8_recipe(fp8.recipe).value_or(numerics::Fp8Recipe::kDelayed),
                   .hybrid = fp8.fp8_format == "hybrid",
                   .hadamard = fp8.hadamard.value_or(true),
                   .stochastic = fp8.stochastic_rounding.value_or(true)},
          .delayed = {fp8.margin, fp8.amax_compute_algo == "most_recent"},
          .history_len = fp8.amax_history_len,
          .random_state = std::string(planner::kRandomState),
          .quantised_activations = fp8.quantized_activations};
}

void set_precision(const TrainingSettings& training, passes::PipelineOptions& options) {
  options.precision = pass_precision(training.precision);
  options.short_residual = !training.residual_in_fp32;
  for (const auto& [pattern, precision] : training.precision_overrides)
    options.precision_overrides.push_back({pattern, pass_precision(precision), precision == Precision::kFp8});
  options.fp8 = fp8_settings(training);
}

ops::LossScaling loss_scaling(const LossScaleSettings& scale) {
  if (scale.fixed) return {1, 1, scale.growth_interval};
  return {scale.growth_factor, scale.backoff_factor, scale.growth_interval};
}

Status check_overrides_used(const planner::TrainingPrograms& programs, const models::Model& model,
                            const TrainingSettings& training) {
  for (size_t i = 0; i < training.precision_overrides.size(); ++i) {
    if (programs.overrides_used[i]) continue;
    const std::string& pattern = training.precision_overrides[i].first;
    const std::string storage = storage_named_by(named_by(pattern), model);
    const std::string instead =
        storage.empty() ? io::nearest_hint(named_by(pattern), parts_in_a_row(programs.overridable))
                        : "its weights lie in " + storage;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("training.precision_overrides: no op with products, nor its layer or weight, "
                             "matches '{}'",
                             pattern.substr(0, 100)),
                 {},
                 fmt::format("{}; plan --explain precision lists ops and layers", instead)};
  }
  return Ok{};
}

}  // namespace plimsoll::settings
