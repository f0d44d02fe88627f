#include "train/precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/suggest.h"
#include "train/state_formats.h"

namespace plimsoll::train {
namespace {

/// A precision of the run file as passes name it.
std::string pass_precision(const std::string& precision) {
  return precision == "tf32" ? precision : std::string(ir::name(state_format(precision).dtype));
}

/// What a pattern without stars may be: parts in a row of a name.
std::vector<std::string> parts_in_a_row(const std::vector<std::string>& names) {
  std::set<std::string> parts;
  for (const std::string& name : names)
    for (size_t begin = 0; begin < name.size();) {
      for (size_t end = begin; end < name.size(); ++end) {
        end = std::min(name.find('.', end), name.size());
        parts.insert(name.substr(begin, end - begin));
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

}  // namespace

void set_precision(const TrainingSettings& training, passes::PipelineOptions& options) {
  options.precision = pass_precision(training.precision);
  options.short_residual = !training.residual_in_fp32;
  for (const auto& [pattern, precision] : training.precision_overrides)
    options.precision_overrides.push_back({pattern, pass_precision(precision)});
}

ops::LossScaling loss_scaling(const LossScaleSettings& scale) {
  if (scale.fixed) return {1, 1, scale.growth_interval};
  return {scale.growth_factor, scale.backoff_factor, scale.growth_interval};
}

Status check_overrides_used(const planner::TrainingPrograms& programs, const TrainingSettings& training) {
  for (size_t i = 0; i < training.precision_overrides.size(); ++i) {
    if (programs.overrides_used[i]) continue;
    const std::string& pattern = training.precision_overrides[i].first;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("training.precision_overrides: no op with products, nor its layer or weight, "
                             "matches '{}'",
                             pattern.substr(0, 100)),
                 {},
                 fmt::format("the nearest is {}; plan --explain precision lists ops and layers",
                             nearest_name(named_by(pattern), parts_in_a_row(programs.overridable)))};
  }
  return Ok{};
}

}  // namespace plimsoll::train
