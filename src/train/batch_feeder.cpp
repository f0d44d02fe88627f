#include "train/batch_feeder.h"

#include <algorithm>

#include "ops/ops.h"
#include "planner/step_programs.h"

namespace plimsoll::train {

BatchFeeder::BatchFeeder(const Dataset& dataset, runtime::Session& session, std::span<std::byte> scratch)
    : dataset_(dataset),
      tokens_(session.state(planner::kTokensState)),
      targets_(session.state(planner::kTargetsState)),
      scratch_(scratch) {}

Result<int64_t> BatchFeeder::feed(const BatchOrder& order, int64_t first, int64_t end) {
  const int64_t rows = tokens_.shape().dim(0), length = tokens_.shape().dim(1);
  int64_t num_targets = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<int32_t> tokens(tokens_.as<int32_t>() + r * length, static_cast<size_t>(length));
    const std::span<int32_t> targets(targets_.as<int32_t>() + r * length, static_cast<size_t>(length));
    std::fill(targets.begin(), targets.end(), ops::kIgnoreTarget);
    if (first + r >= end) {
      std::fill(tokens.begin(), tokens.end(), 0);
      continue;
    }
    const int64_t sequence = order.at(first + r);
    PLIMSOLL_TRY(dataset_.read_sequence(sequence, tokens, scratch_));
    const int64_t valid = dataset_.sequence_tokens(sequence);
    std::copy(tokens.begin() + 1, tokens.begin() + valid, targets.begin());
    num_targets += valid - 1;
  }
  return num_targets;
}

}  // namespace plimsoll::train
