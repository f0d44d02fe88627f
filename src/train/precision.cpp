#include "train/precision.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "io/suggest.h"

namespace plimsoll::train {
namespace {

/// A precision of the run file as passes name it.
std::string pass_precision(const std::string& precision) {
  return precision == "fp32" ? "f32" : precision == "fp16" ? "f16" : precision;
}

/// Layers are named as in a checkpoint, without the whole model's name in front.
std::string layer_pattern(std::string_view pattern) {
  for (const std::string_view model : {"model.", "transformer."})
    if (pattern.starts_with(model) && pattern.substr(model.size()) != "*")
      pattern.remove_prefix(model.size());
  return std::string(pattern);
}

/// What a pattern without stars may be: names, and names without their first parts.
std::vector<std::string> with_ends(const std::vector<std::string>& names) {
  std::vector<std::string> ends;
  for (const std::string& name : names)
    for (std::string_view rest = name; !rest.empty();) {
      ends.emplace_back(rest);
      if (const size_t last = rest.rfind('.'); last != std::string_view::npos)
        ends.emplace_back(rest.substr(0, last));
      const size_t dot = rest.find('.');
      rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
    }
  return ends;
}

}  // namespace

void set_precision(const TrainingSettings& training, passes::PipelineOptions& options) {
  options.precision = pass_precision(training.precision);
  options.short_residual = !training.residual_in_fp32;
  for (const auto& [pattern, precision] : training.precision_overrides)
    options.precision_overrides.push_back({layer_pattern(pattern), pass_precision(precision)});
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
                             nearest_name(layer_pattern(pattern), with_ends(programs.overridable)))};
  }
  return Ok{};
}

}  // namespace plimsoll::train
