// Effective batches read ahead of the training: threads fill a ring of buffers that the plan has counted.
//
//   threads:  read positions ─► buffer k+1, k+2 …      the step: next() ─► buffer k, until it asks again
//
// Without threads next() reads the batch itself. Which examples a buffer holds follows from its number
// alone, so neither threads nor ring show in the run.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/thread.h"
#include "datasets/training_data.h"

namespace plimsoll::datasets {

struct LoaderOptions {
  int64_t batch_size = 1;                ///< examples of an effective batch
  std::vector<TensorSpec> tensors = {};  ///< what a batch is made of
  int64_t prefetch = 2;                  ///< batches read ahead, by threads
  int num_threads = 1;                   ///< that may read at the same time; 0: who asks for a batch reads it
  bool grows = false;                    ///< begin with one thread; each wait for a batch wakes another
  int64_t scratch_bytes = 1 << 18;       ///< a thread's, at least TrainingData::scratch_bytes
  /// Changes a whole batch that has been read, number `batch` of the run: examples that are mixed. Called
  /// from any thread with its scratch.
  std::function<void(int64_t batch, std::span<const std::span<std::byte>> tensors,
                     std::span<std::byte> scratch)>
      blend = {};
};

/// Tensors in their order, each its examples' parts one after the other.
struct LoadedBatch {
  int64_t length = 0;  ///< of its bucket; TrainingData::longest where there are none
  std::span<const std::span<std::byte>> tensors;
  ExampleCounts counts = {};  ///< of the whole batch
};

class Loader {
 public:
  /// Bytes that a loader takes, its threads' buffers included.
  static int64_t host_bytes(const LoaderOptions& options, int64_t longest);

  /// Starts to read with the batch at `first_position`. All memory is taken and touched here. `data` outlives
  /// the loader. Errors: kIo where the system gives too few threads.
  static Result<std::unique_ptr<Loader>> start(const TrainingData& data, const LoaderOptions& options,
                                               int64_t first_position);
  /// Waits for the threads.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, valid until the next call. Errors: kBadData, kIo of reading it.
  Result<LoadedBatch> next();

 private:
  struct Slot {
    std::vector<std::span<std::byte>> room = {};     ///< of each tensor, for the longest rows
    std::vector<std::span<std::byte>> tensors = {};  ///< what of it is filled
    std::vector<std::span<std::byte>> row = {};      ///< the example at hand
    std::vector<int64_t> positions = {};             ///< where its examples stand, see TrainingData::look_up
    int64_t length = 0;                              ///< of the rows that they hold
    ExampleCounts counts = {};
    std::optional<Error> error = {};
    bool ready = false;
  };
  Loader(const TrainingData& data, const LoaderOptions& options, int64_t first_position);
  Status start_threads();
  void work(int thread);
  Status fill(Slot& slot, int64_t batch, std::span<std::byte> scratch) const;
  [[nodiscard]] Slot& slot_of(int64_t batch) { return slots_[static_cast<size_t>(batch) % slots_.size()]; }

  const TrainingData& data_;
  const LoaderOptions options_;
  const int64_t first_position_;
  std::vector<std::byte> values_;
  std::vector<std::byte> scratch_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t claimed_ = 0;  ///< batches that a thread has begun
  int64_t taken_ = 0;    ///< batches handed out; the last is still in use
  int active_ = 1;       ///< threads that may claim
  bool stopping_ = false;
  std::vector<Thread> threads_;
};

}  // namespace plimsoll::datasets
