#include "settings/recompute.h"

#include <fmt/format.h>

namespace plimsoll::settings {
namespace {

passes::RecomputePolicy::Kind kind_of(RecomputeMode mode) {
  using Kind = passes::RecomputePolicy::Kind;
  switch (mode) {
    case RecomputeMode::kAuto:
    case RecomputeMode::kNone:
      return Kind::kNone;
    case RecomputeMode::kFull:
      return Kind::kFull;
    case RecomputeMode::kAttention:
      return Kind::kAttention;
    case RecomputeMode::kMlp:
      return Kind::kMlp;
    case RecomputeMode::kSelective:
      return Kind::kSelective;
    case RecomputeMode::kEvery:
      return Kind::kEvery;
    case RecomputeMode::kSegments:
      return Kind::kSegments;
    case RecomputeMode::kLayers:
      return Kind::kLayers;
  }
  return Kind::kNone;
}

std::string auto_text(const RecomputedLayers& chosen) {
  const std::string parts = fmt::format("{} part{}", chosen.parts, chosen.parts == 1 ? "" : "s");
  if (chosen.whole == 0)
    return chosen.parts == 0 ? "cheap ops" : parts + (chosen.parts == 1 ? " of a layer" : " of layers");
  if (chosen.parts > 0)
    return fmt::format("{} layer{} + {}", chosen.whole, chosen.whole == 1 ? "" : "s", parts);
  return fmt::format("{} of {} layers", chosen.whole, chosen.of_model);
}

}  // namespace

void set_recompute(const RecomputeSettings& settings, passes::PipelineOptions& options) {
  options.recompute_cheap = settings.mode != RecomputeMode::kNone;
  options.recompute = {kind_of(settings.mode), settings.count, settings.layers};
}

std::string recompute_text(const RecomputeSettings& settings, const RecomputedLayers& chosen) {
  switch (static_cast<RecomputeMode>(settings.mode)) {
    case RecomputeMode::kAuto:
      return auto_text(chosen);
    case RecomputeMode::kEvery:
      return "every " + std::to_string(settings.count);
    case RecomputeMode::kSegments:
      return settings.count > 0 ? "segments " + std::to_string(settings.count) : "segments";
    default:
      return std::string(word(settings.mode));
  }
}

}  // namespace plimsoll::settings
