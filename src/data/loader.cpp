#include "data/loader.h"

#include <algorithm>

#include "base/check.h"

namespace plimsoll {
namespace {

int64_t num_slots(const LoaderOptions& options) { return options.prefetch + 1; }
int64_t num_arrays(const LoaderOptions& options) { return options.documents ? 3 : 2; }

}  // namespace

int64_t Loader::host_bytes(const LoaderOptions& options, int64_t sequence_length) {
  const int64_t row_bytes =
      num_arrays(options) * sequence_length * int64_t{sizeof(int32_t)} + int64_t{sizeof(int64_t)};
  return num_slots(options) * options.batch_size * row_bytes + options.num_threads * options.scratch_bytes;
}

Loader::Loader(const TrainingData& data, const LoaderOptions& options, int64_t first_position)
    : data_(data),
      options_(options),
      first_position_(first_position),
      active_(options.grows ? 1 : options.num_threads) {
  PLIMSOLL_CHECK(options.scratch_bytes >= data.scratch_bytes(), "the loader's scratch is too small");
  const auto count = static_cast<size_t>(options.batch_size * data.sequence_length());
  values_.resize(static_cast<size_t>(num_slots(options) * num_arrays(options)) * count);
  scratch_.resize(static_cast<size_t>(options.num_threads * options.scratch_bytes));
  slots_.resize(static_cast<size_t>(num_slots(options)));
  std::span<int32_t> rest(values_);
  const auto take = [&] {
    const auto part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  for (Slot& slot : slots_) {
    slot.tokens = take();
    slot.targets = take();
    if (options.documents) slot.doc_start = take();
    slot.positions.resize(static_cast<size_t>(options.batch_size));
  }
  for (int t = 0; t < options.num_threads; ++t) threads_.emplace_back([this, t] { work(t); });
}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<LoadedBatch> Loader::next() {
  std::unique_lock lock(mutex_);
  if (taken_ > 0) slot_of(taken_ - 1).ready = false;
  Slot& slot = slot_of(taken_++);
  changed_.notify_all();  // one more buffer may be filled
  if (!slot.ready) {
    // The first batch is always waited for; a later wait means that one thread is not enough.
    if (taken_ > 1) active_ = std::min(active_ + 1, options_.num_threads);
    changed_.notify_all();
    changed_.wait(lock, [&] { return slot.ready; });
  }
  if (slot.error) return *slot.error;
  const auto values = static_cast<size_t>(options_.batch_size * slot.length);
  return LoadedBatch{slot.length, slot.tokens.first(values), slot.targets.first(values),
                     slot.doc_start.first(options_.documents ? values : 0), slot.counts};
}

void Loader::work(int thread) {
  const auto scratch = std::span(scratch_).subspan(static_cast<size_t>(thread * options_.scratch_bytes),
                                                   static_cast<size_t>(options_.scratch_bytes));
  std::unique_lock lock(mutex_);
  for (;;) {
    // The batch handed out last is in use; all before it are done with.
    const auto has_room = [&] {
      return claimed_ < std::max<int64_t>(taken_ - 1, 0) + num_slots(options_) && thread < active_;
    };
    changed_.wait(lock, [&] { return stopping_ || has_room(); });
    if (stopping_) return;
    const int64_t batch = claimed_++;
    Slot& slot = slot_of(batch);
    lock.unlock();
    Status filled = fill(slot, batch, scratch);
    lock.lock();
    slot.error.reset();
    if (!filled) slot.error = std::move(filled).error();
    slot.ready = true;
    changed_.notify_all();
  }
}

Status Loader::fill(Slot& slot, int64_t batch, std::span<std::byte> scratch) const {
  const int64_t first = first_position_ + batch * options_.batch_size;
  slot.counts = {};
  PLIMSOLL_ASSIGN(slot.length, data_.look_up(first, slot.positions, scratch));
  const auto length = static_cast<size_t>(slot.length);
  for (int64_t r = 0; r < options_.batch_size; ++r) {
    const auto row = [&](std::span<int32_t> array) {
      return array.empty() ? array : array.subspan(static_cast<size_t>(r) * length, length);
    };
    PLIMSOLL_ASSIGN(const SequenceCounts counts,
                    data_.read_at(slot.positions[static_cast<size_t>(r)],
                                  {row(slot.tokens), row(slot.targets), row(slot.doc_start)}, scratch));
    slot.counts.tokens += counts.tokens;
    slot.counts.targets += counts.targets;
  }
  return Ok{};
}

}  // namespace plimsoll
