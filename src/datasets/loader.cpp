#include "datasets/loader.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/check.h"
#include "base/span_log.h"
#include "base/units.h"

namespace plimsoll::datasets {
namespace {

int64_t num_slots(const LoaderOptions& options) { return options.num_threads > 0 ? options.prefetch + 1 : 1; }
/// A thread's first heap block makes the C library map an arena for it. A thread's first JPEG takes a small
/// block (its decoder's state), so threads that read images do that before the first step.
void take_heap(const LoaderOptions& options) {
  constexpr size_t kBytes = size_t{48} << 10;
  const bool decodes = std::ranges::any_of(
      options.tensors, [](const TensorSpec& tensor) { return tensor.dtype == ir::DType::kU8; });
  if (!decodes) return;
  const auto block = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  *static_cast<volatile std::byte*>(block.get()) = std::byte{1};
}

int64_t num_readers(const LoaderOptions& options) { return std::max(options.num_threads, 1); }

/// Of one batch: each tensor begins at a multiple of its element's size.
int64_t slot_bytes(const LoaderOptions& options, int64_t longest) {
  int64_t end = 0, widest = 1;
  for (const TensorSpec& tensor : options.tensors) {
    end = round_up(end, tensor.element_bytes()) + options.batch_size * tensor.example_bytes(longest);
    widest = std::max(widest, tensor.element_bytes());
  }
  return round_up(end, widest);
}

}  // namespace

int64_t Loader::host_bytes(const LoaderOptions& options, int64_t longest) {
  const int64_t positions = options.batch_size * int64_t{sizeof(int64_t)};
  return num_slots(options) * (slot_bytes(options, longest) + positions) +
         num_readers(options) * options.scratch_bytes;
}

Loader::Loader(const TrainingData& data, const LoaderOptions& options, int64_t first_position)
    : data_(data),
      options_(options),
      first_position_(first_position),
      active_(options.grows ? 1 : options.num_threads) {
  PLIMSOLL_CHECK(options.scratch_bytes >= data.scratch_bytes(), "the loader's scratch is too small");
  const int64_t length = data.longest();
  const auto slot_size = static_cast<size_t>(slot_bytes(options, length));
  values_.resize(static_cast<size_t>(num_slots(options)) * slot_size);
  scratch_.resize(static_cast<size_t>(num_readers(options) * options.scratch_bytes));
  slots_.resize(static_cast<size_t>(num_slots(options)));
  std::span<std::byte> rest(values_);
  for (Slot& slot : slots_) {
    const std::span<std::byte> memory = rest.first(slot_size);
    rest = rest.subspan(slot_size);
    int64_t at = 0;
    for (const TensorSpec& tensor : options.tensors) {
      const int64_t bytes = options.batch_size * tensor.example_bytes(length);
      at = round_up(at, tensor.element_bytes());
      slot.room.push_back(memory.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes)));
      at += bytes;
    }
    slot.tensors.resize(options.tensors.size());
    slot.row.resize(options.tensors.size());
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
  take_heap(options_);
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
  const auto bytes_of = [&](size_t t) {
    return static_cast<size_t>(options_.tensors[t].example_bytes(slot.length));
  };
  for (size_t t = 0; t < slot.room.size(); ++t)
    slot.tensors[t] = slot.room[t].first(static_cast<size_t>(options_.batch_size) * bytes_of(t));
  for (size_t r = 0; r < slot.positions.size(); ++r) {
    for (size_t t = 0; t < slot.row.size(); ++t)
      slot.row[t] = slot.tensors[t].subspan(r * bytes_of(t), bytes_of(t));
    PLIMSOLL_ASSIGN(const ExampleCounts counts, data_.read_at(slot.positions[r], slot.row, scratch));
    slot.counts.add(counts);
  }
  if (options_.blend) options_.blend(first / options_.batch_size, slot.tensors, scratch);
  return Ok{};
}

}  // namespace plimsoll::datasets
