#include "train/batch_feeder.h"

#include <algorithm>

#include "planner/step_programs.h"

namespace plimsoll::train {
namespace {

std::span<int32_t> row_of(const runtime::TensorRef& tensor, int64_t row) {
  const int64_t length = tensor.shape().dim(1);
  return {tensor.as<int32_t>() + row * length, static_cast<size_t>(length)};
}

}  // namespace

BatchFeeder::BatchFeeder(runtime::Session& session)
    : tokens_(session.state(planner::kTokensState)), targets_(session.state(planner::kTargetsState)) {
  if (session.plan().find_state(planner::kDocStartState) != nullptr)
    doc_start_ = session.state(planner::kDocStartState);
}

void BatchFeeder::copy(const LoadedBatch& batch, int64_t first) {
  const auto put = [&](std::span<const int32_t> from, const runtime::TensorRef& to) {
    const auto rows =
        from.subspan(static_cast<size_t>(first * to.shape().dim(1)), static_cast<size_t>(to.num_elements()));
    std::copy(rows.begin(), rows.end(), to.as<int32_t>());
  };
  put(batch.tokens, tokens_);
  put(batch.targets, targets_);
  if (doc_start_) put(batch.doc_start, *doc_start_);
}

Result<SequenceCounts> BatchFeeder::read(const TrainingData& data, int64_t first, int64_t end,
                                         std::span<std::byte> scratch) {
  SequenceCounts counts;
  for (int64_t r = 0; r < tokens_.shape().dim(0); ++r) {
    const SequenceRows rows{row_of(tokens_, r), row_of(targets_, r),
                            doc_start_ ? row_of(*doc_start_, r) : std::span<int32_t>()};
    if (first + r >= end) {
      std::fill(rows.tokens.begin(), rows.tokens.end(), 0);
      std::fill(rows.targets.begin(), rows.targets.end(), kNoTarget);
      std::fill(rows.doc_start.begin(), rows.doc_start.end(), 0);
      continue;
    }
    PLIMSOLL_ASSIGN(const SequenceCounts row, data.read(first + r, rows, scratch));
    counts.tokens += row.tokens;
    counts.targets += row.targets;
  }
  return counts;
}

}  // namespace plimsoll::train
