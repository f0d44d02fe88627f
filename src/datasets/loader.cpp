#include "datasets/loader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/check.h"
#include "base/span_log.h"

namespace plimsoll::datasets {
namespace {

int64_t num_slots(const LoaderOptions& options) { return options.num_threads > 0 ? options.prefetch + 1 : 1; }
int64_t num_readers(const LoaderOptions& options) { return std::max(options.num_threads, 1); }

/// Of a sequence of `length`, in all tensors.
int64_t row_bytes(const BatchLayout& layout, int64_t length) {
  int64_t bytes = 0;
  for (const RowTensor& tensor : layout) bytes += tensor.bytes(length);
  return bytes;
}

}  // namespace

int64_t Loader::host_bytes(const LoaderOptions& options, int64_t sequence_length) {
  const int64_t per_row = row_bytes(options.layout, sequence_length) + int64_t{sizeof(int64_t)};
  return num_slots(options) * options.batch_size * per_row + num_readers(options) * options.scratch_bytes;
}

Loader::Loader(const TrainingData& data, const LoaderOptions& options, int64_t first_position)
    : data_(data),
      options_(options),
      first_position_(first_position),
      active_(options.grows ? 1 : options.num_threads) {
  PLIMSOLL_CHECK(options.scratch_bytes >= data.scratch_bytes(), "the loader's scratch is too small");
  const int64_t length = data.sequence_length();
  values_.resize(
      static_cast<size_t>(num_slots(options) * options.batch_size * row_bytes(options.layout, length)));
  scratch_.resize(static_cast<size_t>(num_readers(options) * options.scratch_bytes));
  slots_.resize(static_cast<size_t>(num_slots(options)));
  std::span<std::byte> rest(values_);
  for (Slot& slot : slots_) {
    for (const RowTensor& tensor : options.layout) {
      const auto bytes = static_cast<size_t>(options.batch_size * tensor.bytes(length));
      slot.room.push_back(rest.first(bytes));
      rest = rest.subspan(bytes);
    }
    slot.tensors.resize(options.layout.size());
    slot.row.resize(options.layout.size());
    slot.positions.resize(static_cast<size_t>(options.batch_size));
  }
}

Result<std::unique_ptr<Loader>> Loader::start(const TrainingData& data, const LoaderOptions& options,
                                              int64_t first_position) {
  std::unique_ptr<Loader> loader(new Loader(data, options, first_position));
  PLIMSOLL_TRY(loader->start_threads());
  return loader;
}

/// None begins to read before all are there.
Status Loader::start_threads() {
  const std::scoped_lock lock(mutex_);
  for (int t = 0; t < options_.num_threads; ++t) {
    PLIMSOLL_ASSIGN(Thread thread, Thread::start("reading batches ahead", [this, t] { work(t); }));
    threads_.push_back(std::move(thread));
  }
  return Ok{};
}

Loader::~Loader() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  threads_.clear();  // joins
}

Result<LoadedBatch> Loader::next() {
  if (threads_.empty()) {
    Slot& slot = slots_.front();
    PLIMSOLL_TRY(fill(slot, taken_++, scratch_));
    return LoadedBatch{slot.length, slot.tensors, slot.counts};
  }
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
  return LoadedBatch{slot.length, slot.tensors, slot.counts};
}

void Loader::work(int thread) {
  const auto scratch = std::span(scratch_).subspan(static_cast<size_t>(thread * options_.scratch_bytes),
                                                   static_cast<size_t>(options_.scratch_bytes));
  pthread_setname_np(pthread_self(), "loader");  // train/step_waits looks for it
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
    Status filled = [&] {
      const ScopedSpan span(SpanLane::kLoader, "load a batch", thread);
      return caught([&] { return fill(slot, batch, scratch); });
    }();
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
  const auto bytes_of = [&](size_t t) { return static_cast<size_t>(options_.layout[t].bytes(slot.length)); };
  for (size_t t = 0; t < slot.room.size(); ++t)
    slot.tensors[t] = slot.room[t].first(static_cast<size_t>(options_.batch_size) * bytes_of(t));
  for (size_t r = 0; r < slot.positions.size(); ++r) {
    for (size_t t = 0; t < slot.row.size(); ++t)
      slot.row[t] = slot.tensors[t].subspan(r * bytes_of(t), bytes_of(t));
    PLIMSOLL_ASSIGN(const SequenceCounts counts, data_.read_at(slot.positions[r], slot.row, scratch));
    slot.counts.tokens += counts.tokens;
    slot.counts.targets += counts.targets;
  }
  return Ok{};
}

}  // namespace plimsoll::datasets
