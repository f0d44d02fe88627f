// DataLoader: batches of a data set in an order that is a function of (seed, epoch), read ahead by threads.
//
//   DataLoader loader(MyData(), {.batch_size = 32, .shuffle = true, .seed = 42, .workers = 2});
//   for (const Batch& batch : loader) …          // one epoch; the next loop is the next epoch
//   for (const Batch& batch : loader.until(1000)) …  // epoch after epoch, up to 1,000 batches in total
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/batch_reader.h"
#include "plimsoll/call.h"
#include "plimsoll/dataset.h"
#include "plimsoll/loader_state.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  int64_t seed = 0;
  int64_t workers = 0;     ///< threads that read; 0: the loop reads
  int64_t prefetch = 2;    ///< batches that each worker reads ahead
  LoaderState state = {};  ///< read on from there, as Session::loader_state gives it
};

/// Rows that fill no whole batch at an epoch's end are left out. A loader outlives its loops.
class DataLoader {
 public:
  class Iterator {
   public:
    Iterator(DataLoader& loader, int64_t last) : loader_(&loader), last_(last) {
      if (loader.taken_ < last) reader_ = loader.reader(last);
      ++*this;
    }
    const Batch& operator*() const { return *batch_; }
    Iterator& operator++() {
      batch_.reset();
      if (reader_ == nullptr || loader_->taken_ >= last_) return *this;
      Result<Batch> read = reader_->take();
      if (!read) {
        loader_->fail(std::move(read.error()));
        return *this;
      }
      ++loader_->taken_;
      batch_ = *std::move(read);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    DataLoader* loader_;
    int64_t last_;
    std::unique_ptr<detail::BatchReader> reader_;
    std::optional<Batch> batch_;
  };
  class Range {
   public:
    Range(DataLoader& loader, int64_t last) : loader_(&loader), last_(last) {}
    [[nodiscard]] Iterator begin() const { return Iterator(*loader_, last_); }
    [[nodiscard]] std::default_sentinel_t end() const { return {}; }

   private:
    DataLoader* loader_;
    int64_t last_;
  };

  DataLoader(Rows rows, const LoaderOptions& options) : rows_(std::move(rows)), options_(options) {
    const char* wrong = options.batch_size < 1 ? "batch_size" : options.prefetch < 1 ? "prefetch" : nullptr;
    if (options.workers < 0) wrong = "workers";
    if (wrong != nullptr) {
      fail(Error(ErrorKind::invalid_argument, std::string("DataLoader: ") + wrong + " is too small"));
      return;
    }
    batches_ = rows_.size() / options.batch_size;
    if (batches_ == 0) {
      fail(Error(ErrorKind::bad_data,
                 "DataLoader: " + std::to_string(rows_.size()) + " rows make no batch of " +
                     std::to_string(options.batch_size),
                 "lower batch_size"));
    }
    taken_ = options.state.epoch * batches_ + std::min(options.state.position, batches_);
  }
  template <class Dataset>
  requires requires(const Dataset& dataset) { dataset.size(), dataset[0]; }
  DataLoader(Dataset dataset, const LoaderOptions& options) : DataLoader(rows(std::move(dataset)), options) {}
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  /// Batches of an epoch.
  [[nodiscard]] int64_t size() const { return batches_; }
  /// The rest of an epoch that a loaded state stands in, else the next epoch.
  Iterator begin() {
    if (is_loop_over_ && batches_ > 0) taken_ = (taken_ + batches_ - 1) / batches_ * batches_;
    is_loop_over_ = true;
    return Iterator(*this, batches_ == 0 ? taken_ : (taken_ / batches_ + 1) * batches_);
  }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }
  /// Until `batches` have been taken in all, those before a loaded state among them; epoch after epoch.
  Range until(int64_t batches) { return Range(*this, batches_ == 0 ? 0 : batches); }

  /// Behind the batch that was taken last.
  [[nodiscard]] LoaderState state() const {
    return batches_ == 0 ? LoaderState() : LoaderState{taken_ / batches_, taken_ % batches_};
  }
  /// Without exceptions: why a loop ended early, or why the loader has nothing to read.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  void fail(Error error) {
#ifdef PLIMSOLL_NO_EXCEPTIONS
    if (!error_) error_ = std::move(error);
#else
    detail::raise(std::move(error));
#endif
  }
  [[nodiscard]] std::unique_ptr<detail::BatchReader> reader(int64_t last) const {
    return std::make_unique<detail::BatchReader>([this](int64_t batch) { return read(batch); }, taken_, last,
                                                 options_.workers, options_.workers * options_.prefetch);
  }
  /// Batch `batch` of all epochs' one after the other.
  [[nodiscard]] Result<Batch> read(int64_t batch) const {
    const int64_t first = batch % batches_ * options_.batch_size;
    std::vector<int64_t> index(static_cast<size_t>(options_.batch_size));
    std::iota(index.begin(), index.end(), first);
    if (options_.shuffle) {
      const Status status = detail::call([&](pls_error** error) {
        return pls_order(options_.seed, batch / batches_, rows_.size(), first, options_.batch_size,
                         index.data(), error);
      });
      if (!status) return status.error();
    }
    return detail::read_batch(rows_, index);
  }

  Rows rows_;
  LoaderOptions options_;
  int64_t batches_ = 0;
  int64_t taken_ = 0;
  bool is_loop_over_ = false;
  std::optional<Error> error_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
