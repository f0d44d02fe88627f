#include "datasets/training_data.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "io/checksum.h"

namespace plimsoll::datasets {

Result<TrainingData> TrainingData::open(std::span<const DataFiles> sources,
                                        const TrainingDataOptions& options) {
  TrainingData data(options);
  int64_t room = options.kept_bytes;
  TrainingDataOptions own = options;
  for (const DataFiles& files : sources) {
    own.source = &files - sources.data();
    PLIMSOLL_ASSIGN(auto source, options.open_source(files, own));
    PLIMSOLL_TRY(source->keep_within(room));
    data.sources_.push_back(std::move(source));
  }
  data.kept_bytes_ = options.kept_bytes - room;
  PLIMSOLL_TRY(data.set_order(sources));
  if (options.buckets.empty()) return data;
  PLIMSOLL_CHECK(options.buckets.back() == options.pack.sequence_length, "buckets of another length");
  data.buckets_ = std::make_unique<BucketOrder>(BucketOrderOptions{.lengths = options.buckets,
                                                                   .batch_size = options.global_batch_size,
                                                                   .epoch_size = data.num_examples_,
                                                                   .seed = options.seed,
                                                                   .shuffle = options.shuffle});
  return data;
}

Status TrainingData::set_order(std::span<const DataFiles> files) {
  if (sources_.size() == 1) {
    num_examples_ = sources_.front()->num_examples();
    order_.emplace(num_examples_, options_.seed, options_.shuffle);
    return Ok{};
  }
  std::vector<MixtureSource> mixed;
  for (size_t i = 0; i < sources_.size(); ++i)
    mixed.push_back({sources_[i]->num_examples(), files[i].weight,
                     files[i].paths.empty() ? std::string() : files[i].paths.front()});
  PLIMSOLL_ASSIGN(Mixture mixture, Mixture::create(mixed, options_.seed, options_.shuffle));
  num_examples_ = mixture.positions_for_all();
  mixture_.emplace(std::move(mixture));
  return Ok{};
}

int64_t TrainingData::num_units() const {
  int64_t units = 0;
  for (const auto& source : sources_) units += source->num_units();
  return units;
}

int64_t TrainingData::scratch_bytes() const {
  int64_t bytes = 0;
  for (const auto& source : sources_) bytes = std::max(bytes, source->scratch_bytes());
  return bytes;
}

MixturePlace TrainingData::place_of(int64_t position) const {
  if (mixture_) return mixture_->at(position);
  return {.source = 0, .index = order_->at(position), .epoch = order_->epoch_of(position)};
}

/// One pointer: std::function holds it without an allocation.
BucketOrder::LengthOf TrainingData::length_of() const {
  return [this](int64_t at, std::span<std::byte> buffer) {
    const MixturePlace place = place_of(at);
    return sources_[static_cast<size_t>(place.source)]->length(place.index, buffer);
  };
}

Result<int64_t> TrainingData::look_up(int64_t first, std::span<int64_t> positions,
                                      std::span<std::byte> scratch) const {
  if (buckets_) return buckets_->at(first, positions, length_of(), scratch);
  std::iota(positions.begin(), positions.end(), first);
  return longest();
}

Result<ExampleCounts> TrainingData::read_at(int64_t looked_up, ExampleRow row,
                                            std::span<std::byte> scratch) const {
  const MixturePlace place = place_of(looked_up);
  return sources_[static_cast<size_t>(place.source)]->read_in_epoch(place.index, place.epoch, row, scratch);
}

Result<std::string> TrainingData::name_at(int64_t looked_up, std::span<std::byte> scratch) const {
  const MixturePlace place = place_of(looked_up);
  return sources_[static_cast<size_t>(place.source)]->name(place.index, scratch);
}

Result<uint64_t> TrainingData::fingerprint(std::span<std::byte> scratch) const {
  if (sources_.size() == 1 && !buckets_) return sources_.front()->fingerprint(scratch);
  io::Checksum sum;
  // They may be chosen from the data, by rules that another version changes.
  sum.add(std::as_bytes(std::span(options_.buckets)));
  for (const auto& source : sources_) {
    PLIMSOLL_ASSIGN(const uint64_t value, source->fingerprint(scratch));
    sum.add(std::as_bytes(std::span(&value, 1)));
  }
  return sum.value();
}

}  // namespace plimsoll::datasets
