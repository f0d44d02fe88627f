#include "training/batch_feeder.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "planner/programs/step_programs.h"
#include "training/initialise.h"

namespace plimsoll::training {

BatchFeeder::BatchFeeder(runtime::Session& session, const tasks::Task& task, std::span<const int64_t> lengths)
    : session_(session), task_(task), tensors_(task.inputs()), row_(tensors_.size()) {
  for (const int64_t length : lengths) {
    Inputs& inputs = inputs_.emplace_back();
    inputs.length = length;
    std::vector<std::string> names;
    for (const datasets::TensorSpec& input : task.inputs())
      names.push_back(planner::input_state(input.name, planner::bucket_of(length, lengths)));
    inputs.rows = session.type(names.front()).shape.dim(0);
    std::vector<std::string_view> states(names.begin(), names.end());
    inputs.draws = session.plan().find_state(planner::kRandomState) != nullptr;
    if (inputs.draws) states.push_back(planner::kRandomState);
    inputs.block = session.make_block(states);
  }
}

void BatchFeeder::set_random(int64_t seed, int64_t step) { random_ = random_words(seed, step); }

Status BatchFeeder::begin(size_t bucket, int64_t first) {
  const Inputs& inputs = inputs_[bucket];
  PLIMSOLL_TRY(session_.begin(inputs.block));
  if (!inputs.draws) return Ok{};
  random_[3] = static_cast<int32_t>(first);
  std::ranges::copy(random_, session_.of<int32_t>(inputs.block, tensors_.size()).begin());
  return Ok{};
}

datasets::ExampleRow BatchFeeder::row(size_t bucket, int64_t row) {
  const Inputs& inputs = inputs_[bucket];
  for (size_t t = 0; t < row_.size(); ++t) {
    const auto bytes = static_cast<size_t>(tensors_[t].example_bytes(inputs.length));
    row_[t] = session_.of<std::byte>(inputs.block, t).subspan(static_cast<size_t>(row) * bytes, bytes);
  }
  return row_;
}

Status BatchFeeder::commit(size_t bucket) { return session_.commit(inputs_[bucket].block); }

size_t BatchFeeder::bucket_of(int64_t length) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Inputs& inputs) { return inputs.length == length; });
  PLIMSOLL_CHECK(found != inputs_.end(), "rows of a length without a program");
  return static_cast<size_t>(found - inputs_.begin());
}

Status BatchFeeder::copy(const datasets::LoadedBatch& batch, int64_t first, int64_t end, size_t bucket) {
  PLIMSOLL_CHECK(batch.length <= inputs_[bucket].length, "rows longer than their bucket");
  PLIMSOLL_TRY(begin(bucket, first));
  for (int64_t r = 0; r < inputs_[bucket].rows; ++r) {
    const datasets::ExampleRow to = row(bucket, r);
    for (size_t t = 0; t < to.size(); ++t) {
      if (first + r >= end) {
        datasets::pad_example(tensors_[t], to[t]);
        continue;
      }
      const auto bytes = static_cast<size_t>(tensors_[t].example_bytes(batch.length));
      datasets::copy_example(tensors_[t],
                             batch.tensors[t].subspan(static_cast<size_t>(first + r) * bytes, bytes),
                             batch.length, to[t], inputs_[bucket].length);
    }
  }
  return commit(bucket);
}

Status BatchFeeder::synthesise(uint64_t key, int64_t first, size_t bucket) {
  PLIMSOLL_TRY(begin(bucket, first));
  for (int64_t r = 0; r < inputs_[bucket].rows; ++r)
    task_.draw(key + static_cast<uint64_t>(r) * 0x9e3779b97f4a7c15ULL, row(bucket, r));
  return commit(bucket);
}

Status BatchFeeder::fill(size_t bucket, int64_t rows,
                         const std::function<Status(int64_t row, datasets::ExampleRow to)>& fill_row) {
  PLIMSOLL_TRY(begin(bucket, /*first=*/0));
  for (int64_t r = 0; r < inputs_[bucket].rows; ++r) {
    const datasets::ExampleRow to = row(bucket, r);
    if (r < rows)
      PLIMSOLL_TRY(fill_row(r, to));
    else
      for (size_t t = 0; t < to.size(); ++t) datasets::pad_example(tensors_[t], to[t]);
  }
  return commit(bucket);
}

Result<datasets::ExampleCounts> BatchFeeder::read(const datasets::TrainingData& data,
                                                  std::span<const int64_t> looked_up, size_t bucket,
                                                  std::span<std::byte> scratch) {
  datasets::ExampleCounts counts;
  PLIMSOLL_TRY(
      fill(bucket, static_cast<int64_t>(looked_up.size()), [&](int64_t r, datasets::ExampleRow to) -> Status {
        PLIMSOLL_ASSIGN(const datasets::ExampleCounts read,
                        data.read_at(looked_up[static_cast<size_t>(r)], to, scratch));
        counts.add(read);
        return Ok{};
      }));
  return counts;
}

}  // namespace plimsoll::training
