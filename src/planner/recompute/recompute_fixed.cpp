#include "planner/recompute/recompute_fixed.h"

#include <algorithm>

namespace plimsoll::planner {
namespace {

void add(FixedChoice& fixed, const RecomputeOption& option) {
  fixed.choice.layers.insert(fixed.choice.layers.end(), option.layers.begin(), option.layers.end());
  fixed.choice.seconds += option.seconds;
  fixed.saved_bytes += option.saved_bytes;
}

/// Blocks [first, end) kept by the first's input.
RecomputeOption run_of(const RecomputeChain& chain, size_t first, size_t end) {
  RecomputeOption run;
  for (size_t i = first; i < end; ++i) {
    const RecomputeBlock& block = chain.blocks[i];
    run.saved_bytes += block.saved_bytes + (i > first ? block.input_bytes : 0);
    run.seconds += block.seconds + (i + 1 < end ? block.tail_seconds : 0);
  }
  const std::string& name = chain.blocks[first].name;
  run.layers = {end - first > 1 ? name + ".." + chain.blocks[end - 1].name : name};
  return run;
}

}  // namespace

std::vector<FixedChoice> fixed_choices(const RecomputeChain& chain) {
  const size_t n = chain.blocks.size();
  std::vector<FixedChoice> all;
  size_t options = n == 0 ? 0 : SIZE_MAX;
  for (const RecomputeBlock& block : chain.blocks) options = std::min(options, block.options.size());
  for (size_t k = 0; k < options; ++k) {
    FixedChoice& fixed = all.emplace_back();
    for (const RecomputeBlock& block : chain.blocks) add(fixed, block.options[k]);
  }
  for (size_t step = 2; step <= n; ++step) {
    FixedChoice& fixed = all.emplace_back();
    for (size_t i = step - 1; i < n; i += step) add(fixed, run_of(chain, i, i + 1));
  }
  for (size_t k = 1; k < n; ++k) {
    FixedChoice& fixed = all.emplace_back();
    for (size_t i = 0, begin = 0; i < k; ++i) {
      const size_t end = begin + n / k + (i < n % k ? 1 : 0);  // as the policy cuts
      add(fixed, run_of(chain, begin, end));
      begin = end;
    }
  }
  std::ranges::stable_sort(all, {}, [](const FixedChoice& f) { return f.choice.seconds; });
  return all;
}

}  // namespace plimsoll::planner
