#include "passes/recompute/recompute_policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plimsoll::passes {
namespace {

std::string known_layers(const std::vector<RecomputeUnit>& layers) {
  std::string first, last;
  for (const RecomputeUnit& layer : layers) {
    if (layer.first == layers.front().first) first += (first.empty() ? "" : ", ") + layer.name;
    if (layer.part.empty()) last = layer.name;
  }
  return "this model's are " + first + " to " + last;
}

Error wrong_layers(std::string what, const std::vector<RecomputeUnit>& layers) {
  return {ErrorCode::kInvalidArgument, std::move(what), "memory.recompute", known_layers(layers)};
}

RecomputeUnit run_of(const RecomputeUnit& first, const RecomputeUnit& last) {
  if (first.first == last.first) return first;
  return {first.first, last.last, "", first.name + ".." + last.name};
}

/// The k runs, the longer ones first.
std::vector<RecomputeUnit> segments(const std::vector<RecomputeUnit>& blocks, int64_t k) {
  const auto n = static_cast<int64_t>(blocks.size());
  std::vector<RecomputeUnit> units;
  for (int64_t s = 0, begin = 0; s < k; ++s) {
    const int64_t end = begin + n / k + (s < n % k ? 1 : 0);
    units.push_back(run_of(blocks[static_cast<size_t>(begin)], blocks[static_cast<size_t>(end - 1)]));
    begin = end;
  }
  return units;
}

Result<std::vector<RecomputeUnit>> named_units(const std::vector<RecomputeUnit>& layers,
                                               const std::vector<std::string>& patterns) {
  std::vector<RecomputeUnit> units;
  for (const std::string& pattern : patterns) {
    const auto named = [&](const std::string& name) {
      return std::ranges::find_if(layers, [&](const auto& l) { return l.part.empty() && l.name == name; });
    };
    const size_t dots = pattern.find("..");
    const size_t known = units.size();
    if (dots != std::string::npos) {
      const auto first = named(pattern.substr(0, dots)), last = named(pattern.substr(dots + 2));
      if (first != layers.end() && last != layers.end() && first->first <= last->first)
        units.push_back(run_of(*first, *last));
    } else {
      for (const RecomputeUnit& layer : layers)
        if (::fnmatch(pattern.c_str(), layer.name.c_str(), 0) == 0) units.push_back(layer);
    }
    if (units.size() == known)
      return wrong_layers(fmt::format("\"{}\" names no layer of this model", pattern), layers);
  }
  return units;
}

/// Without what another unit takes in, each once, in the order of the model.
Result<std::vector<RecomputeUnit>> disjoint(std::vector<RecomputeUnit> units,
                                            const std::vector<RecomputeUnit>& layers) {
  std::vector<RecomputeUnit> result;
  const auto covers = [](const RecomputeUnit& a, const RecomputeUnit& b) {
    return a.first <= b.first && b.last <= a.last && (a.part.empty() || a.part == b.part);
  };
  std::ranges::stable_sort(units, [](const auto& a, const auto& b) {
    return std::pair(a.last - a.first, a.part.empty()) > std::pair(b.last - b.first, b.part.empty());
  });
  for (RecomputeUnit& unit : units) {
    if (std::ranges::any_of(result, [&](const auto& other) { return covers(other, unit); })) continue;
    for (const RecomputeUnit& other : result)
      if (other.part.empty() && unit.part.empty() && other.first <= unit.last && unit.first <= other.last)
        return wrong_layers(fmt::format("{} and {} overlap", other.name, unit.name), layers);
    result.push_back(std::move(unit));
  }
  std::ranges::stable_sort(result, [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

/// The part of a block that frees most for what it costs.
const RecomputeUnit* best_part(const RecomputeAnalysis& program, const RecomputeUnit& block) {
  constexpr double kFlopsPerByte = 12;  // what a machine computes while it moves a byte
  const RecomputeUnit* best = nullptr;
  double best_ratio = 0;
  for (const RecomputeUnit& layer : program.layers()) {
    if (layer.first != block.first || layer.part.empty()) continue;
    const RecomputeGain gain = program.gain(layer);
    const double ratio =
        static_cast<double>(gain.bytes) / (1 + gain.cost.flops + kFlopsPerByte * gain.cost.bytes);
    if (ratio > best_ratio) best = &layer, best_ratio = ratio;
  }
  return best;
}

/// Of each block what the policy takes.
std::vector<RecomputeUnit> parts(const RecomputeAnalysis& program, const std::vector<RecomputeUnit>& blocks,
                                 RecomputePolicy::Kind kind) {
  std::vector<RecomputeUnit> units;
  if (kind == RecomputePolicy::Kind::kSelective) {
    for (const RecomputeUnit& block : blocks)
      if (const RecomputeUnit* best = best_part(program, block)) units.push_back(*best);
    return units;
  }
  for (const RecomputeUnit& layer : program.layers()) {
    const bool attends = layer.part.find("attn") != std::string::npos || layer.part == "attention";
    if (!layer.part.empty() && attends == (kind == RecomputePolicy::Kind::kAttention)) units.push_back(layer);
  }
  return units;
}

/// The units and those blocks, which take in their parts.
std::vector<RecomputeUnit> with_always(std::vector<RecomputeUnit> units,
                                       const std::vector<RecomputeUnit>& layers,
                                       const std::vector<int32_t>& always) {
  for (const int32_t block : always) {
    const auto is_block = [&](const auto& l) { return l.part.empty() && l.first == block; };
    const auto layer = std::ranges::find_if(layers, is_block);
    const auto covers = [&](const auto& u) { return u.part.empty() && u.first <= block && block <= u.last; };
    if (layer == layers.end() || std::ranges::any_of(units, covers)) continue;
    std::erase_if(units, [&](const auto& u) { return u.first == block; });
    units.push_back(*layer);
  }
  std::ranges::stable_sort(units, {}, &RecomputeUnit::first);
  return units;
}

Result<std::vector<RecomputeUnit>> chosen_units(const RecomputeAnalysis& program,
                                                const RecomputePolicy& policy) {
  using Kind = RecomputePolicy::Kind;
  if (policy.kind == Kind::kNone) return std::vector<RecomputeUnit>{};
  const std::vector<RecomputeUnit>& layers = program.layers();
  std::vector<RecomputeUnit> blocks, units;
  std::ranges::copy_if(layers, std::back_inserter(blocks), [](const auto& l) { return l.part.empty(); });
  const auto num_blocks = static_cast<int64_t>(blocks.size());
  if (policy.count > num_blocks)
    return wrong_layers(fmt::format("{} is more than the model has blocks, {}", policy.count, num_blocks),
                        layers);
  switch (policy.kind) {
    case Kind::kFull:
      return blocks;
    case Kind::kEvery:
      PLIMSOLL_CHECK(policy.count > 0);
      for (int64_t i = policy.count; i <= num_blocks; i += policy.count)
        units.push_back(blocks[static_cast<size_t>(i - 1)]);
      return units;
    case Kind::kSegments:
      if (num_blocks == 0) return units;
      return segments(
          blocks, policy.count > 0 ? policy.count : std::lround(std::sqrt(static_cast<double>(num_blocks))));
    case Kind::kLayers: {
      PLIMSOLL_ASSIGN(units, named_units(layers, policy.layers));
      return disjoint(std::move(units), layers);
    }
    default:
      break;
  }
  units = parts(program, blocks, policy.kind);
  // Where backward reads nothing of the blocks, as of frozen ones, there is nothing to select.
  const bool selects = policy.kind == Kind::kSelective && num_blocks > 0;
  if (units.empty() && !selects) return wrong_layers("no block has such a part", layers);
  return units;
}

}  // namespace

Result<std::vector<RecomputeUnit>> recompute_units(const RecomputeAnalysis& program,
                                                   const RecomputePolicy& policy) {
  PLIMSOLL_ASSIGN(std::vector<RecomputeUnit> units, chosen_units(program, policy));
  if (policy.always.empty()) return units;
  return with_always(std::move(units), program.layers(), policy.always);
}

}  // namespace plimsoll::passes
