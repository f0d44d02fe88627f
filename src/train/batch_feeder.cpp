#include "train/batch_feeder.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "planner/step_programs.h"

namespace plimsoll::train {
namespace {

std::span<int32_t> row_of(const runtime::TensorRef& tensor, int64_t row) {
  const int64_t length = tensor.shape().dim(1);
  return {tensor.as<int32_t>() + row * length, static_cast<size_t>(length)};
}

}  // namespace

BatchFeeder::BatchFeeder(runtime::Session& session, std::span<const int64_t> lengths) {
  const auto name = [&](std::string_view base, int64_t length) {
    return planner::name_at(base, length, lengths);
  };
  for (const int64_t length : lengths) {
    Inputs& inputs = inputs_.emplace_back();
    inputs.length = length;
    inputs.tokens = session.state(name(planner::kTokensState, length));
    inputs.targets = session.state(name(planner::kTargetsState, length));
    const std::string doc_start = name(planner::kDocStartState, length);
    if (session.plan().find_state(doc_start) != nullptr) inputs.doc_start = session.state(doc_start);
  }
}

size_t BatchFeeder::bucket_of(int64_t length) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Inputs& inputs) { return inputs.length == length; });
  PLIMSOLL_CHECK(found != inputs_.end(), "rows of a length without a program");
  return static_cast<size_t>(found - inputs_.begin());
}

void BatchFeeder::copy(const LoadedBatch& batch, int64_t first, size_t bucket) {
  const Inputs& inputs = inputs_[bucket];
  PLIMSOLL_CHECK(batch.length <= inputs.length, "rows longer than their bucket");
  const auto length = static_cast<size_t>(batch.length);
  for (int64_t r = 0; r < inputs.tokens.shape().dim(0); ++r) {
    // Behind the row padding, as the data itself pads: documents of their own, without a target.
    const auto put = [&](std::span<const int32_t> from, const runtime::TensorRef& tensor) {
      const auto rows = from.subspan(static_cast<size_t>(first + r) * length, length);
      const std::span<int32_t> to = row_of(tensor, r);
      std::copy(rows.begin(), rows.end(), to.begin());
      return to.subspan(length);
    };
    std::ranges::fill(put(batch.tokens, inputs.tokens), 0);
    std::ranges::fill(put(batch.targets, inputs.targets), kNoTarget);
    if (!inputs.doc_start) continue;
    const std::span<int32_t> rest = put(batch.doc_start, *inputs.doc_start);
    std::iota(rest.begin(), rest.end(), static_cast<int32_t>(length));
  }
}

Result<SequenceCounts> BatchFeeder::read(const TrainingData& data, std::span<const int64_t> looked_up,
                                         size_t bucket, std::span<std::byte> scratch) {
  const Inputs& inputs = inputs_[bucket];
  SequenceCounts counts;
  for (int64_t r = 0; r < inputs.tokens.shape().dim(0); ++r) {
    const SequenceRows rows{row_of(inputs.tokens, r), row_of(inputs.targets, r),
                            inputs.doc_start ? row_of(*inputs.doc_start, r) : std::span<int32_t>()};
    const auto row = static_cast<size_t>(r);
    if (row >= looked_up.size()) {
      std::fill(rows.tokens.begin(), rows.tokens.end(), 0);
      std::fill(rows.targets.begin(), rows.targets.end(), kNoTarget);
      std::fill(rows.doc_start.begin(), rows.doc_start.end(), 0);
      continue;
    }
    PLIMSOLL_ASSIGN(const SequenceCounts read, data.read_at(looked_up[row], rows, scratch));
    counts.tokens += read.tokens;
    counts.targets += read.targets;
  }
  return counts;
}

}  // namespace plimsoll::train
