#include "train/batch_feeder.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "planner/step_programs.h"
#include "train/initialise.h"

namespace plimsoll::train {
BatchFeeder::BatchFeeder(runtime::Session& session, std::span<const int64_t> lengths) : session_(session) {
  const auto name = [&](std::string_view base, int64_t length) {
    return planner::name_at(base, length, lengths);
  };
  for (const int64_t length : lengths) {
    Inputs& inputs = inputs_.emplace_back();
    inputs.length = length;
    const std::string tokens = name(planner::kTokensState, length),
                      targets = name(planner::kTargetsState, length),
                      doc_start = name(planner::kDocStartState, length);
    inputs.rows = session.type(tokens).shape.dim(0);
    std::vector<std::string_view> states = {tokens, targets};
    inputs.documents = session.plan().find_state(doc_start) != nullptr;
    inputs.draws = session.plan().find_state(planner::kRandomState) != nullptr;
    if (inputs.documents) states.push_back(doc_start);
    if (inputs.draws) states.push_back(planner::kRandomState);
    inputs.block = session.make_block(states);
  }
}

void BatchFeeder::set_random(int64_t seed, int64_t step) { random_ = random_words(seed, step); }

Result<BatchFeeder::Rows> BatchFeeder::begin(size_t bucket, int64_t first) {
  const Inputs& inputs = inputs_[bucket];
  PLIMSOLL_TRY(session_.begin(inputs.block));
  Rows rows{session_.of<int32_t>(inputs.block, 0), session_.of<int32_t>(inputs.block, 1), {}, inputs.length};
  if (inputs.documents) rows.doc_start = session_.of<int32_t>(inputs.block, 2);
  if (inputs.draws) {
    random_[3] = static_cast<int32_t>(first);
    std::ranges::copy(random_, session_.of<int32_t>(inputs.block, inputs.documents ? 3 : 2).begin());
  }
  return rows;
}

Status BatchFeeder::commit(size_t bucket) { return session_.commit(inputs_[bucket].block); }

size_t BatchFeeder::bucket_of(int64_t length) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Inputs& inputs) { return inputs.length == length; });
  PLIMSOLL_CHECK(found != inputs_.end(), "rows of a length without a program");
  return static_cast<size_t>(found - inputs_.begin());
}

Status BatchFeeder::copy(const LoadedBatch& batch, int64_t first, size_t bucket) {
  PLIMSOLL_CHECK(batch.length <= inputs_[bucket].length, "rows longer than their bucket");
  PLIMSOLL_ASSIGN(const Rows rows, begin(bucket, first));
  const auto length = static_cast<size_t>(batch.length);
  for (int64_t r = 0; r < inputs_[bucket].rows; ++r) {
    // Behind the row padding, as the data itself pads: documents of their own, without a target.
    const auto put = [&](std::span<const int32_t> from, std::span<int32_t> all) {
      const auto row = from.subspan(static_cast<size_t>(first + r) * length, length);
      const std::span<int32_t> to = rows.of(all, r);
      std::copy(row.begin(), row.end(), to.begin());
      return to.subspan(length);
    };
    std::ranges::fill(put(batch.tokens, rows.tokens), 0);
    std::ranges::fill(put(batch.targets, rows.targets), kNoTarget);
    if (rows.doc_start.empty()) continue;
    const std::span<int32_t> rest = put(batch.doc_start, rows.doc_start);
    std::iota(rest.begin(), rest.end(), static_cast<int32_t>(length));
  }
  return commit(bucket);
}

Status BatchFeeder::synthesise(uint64_t key, int64_t vocab_size, int64_t first, size_t bucket) {
  PLIMSOLL_ASSIGN(const Rows rows, begin(bucket, first));
  uint64_t x = key;
  for (int32_t& token : rows.tokens) {
    x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    token = static_cast<int32_t>((x >> 33) % static_cast<uint64_t>(vocab_size));
  }
  const auto length = static_cast<size_t>(rows.length);
  for (size_t i = 0; i < rows.tokens.size(); ++i)
    rows.targets[i] = (i + 1) % length == 0 ? kNoTarget : rows.tokens[i + 1];
  return commit(bucket);
}

Result<SequenceCounts> BatchFeeder::read(const TrainingData& data, std::span<const int64_t> looked_up,
                                         size_t bucket, std::span<std::byte> scratch) {
  PLIMSOLL_ASSIGN(const Rows all, begin(bucket, /*first=*/0));
  SequenceCounts counts;
  for (int64_t r = 0; r < inputs_[bucket].rows; ++r) {
    const SequenceRows rows{all.of(all.tokens, r), all.of(all.targets, r), all.of(all.doc_start, r)};
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
  PLIMSOLL_TRY(commit(bucket));
  return counts;
}

}  // namespace plimsoll::train
