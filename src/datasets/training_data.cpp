#include "datasets/training_data.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "datasets/dataset.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

std::span<int32_t> doc_start_of(SequenceRow row) {
  return row.size() > kDocStartRow ? row_as<int32_t>(row[kDocStartRow]) : std::span<int32_t>();
}

/// Tokens in one stream, cut.
class StreamSource final : public SequenceSource {
 public:
  explicit StreamSource(Dataset dataset) : dataset_(std::move(dataset)) {}
  [[nodiscard]] int64_t num_sequences() const override { return dataset_.num_sequences(); }
  [[nodiscard]] int64_t num_tokens() const override { return dataset_.num_tokens(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return dataset_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte>) const override {
    return dataset_.sequence_tokens(index);
  }

  Result<SequenceCounts> read(int64_t index, SequenceRow row, std::span<std::byte> scratch) const override {
    const std::span<int32_t> tokens = row_as<int32_t>(row[kTokensRow]),
                             targets = row_as<int32_t>(row[kTargetsRow]);
    PLIMSOLL_TRY(dataset_.read_sequence(index, tokens, scratch));
    const int64_t valid = dataset_.sequence_tokens(index);
    std::copy(tokens.begin() + 1, tokens.begin() + valid, targets.begin());
    std::fill(targets.begin() + valid - 1, targets.end(), kNoTarget);
    std::ranges::fill(doc_start_of(row), 0);
    return SequenceCounts{valid, valid - 1};
  }

  Status keep_within(int64_t& room) override { return dataset_.keep_within(room); }

  /// Of every token: three letters that changed are other data.
  Result<uint64_t> fingerprint(std::span<std::byte> scratch) const override {
    io::Checksum sum;
    std::vector<int32_t> tokens(static_cast<size_t>(dataset_.sequence_length()));
    for (int64_t i = 0; i < num_sequences(); ++i) {
      PLIMSOLL_TRY(dataset_.read_sequence(i, tokens, scratch));
      sum.add(std::as_bytes(std::span(tokens)));
    }
    return sum.value();
  }

 private:
  Dataset dataset_;
};

class PackedSource final : public SequenceSource {
 public:
  explicit PackedSource(PackedDataset dataset) : dataset_(std::move(dataset)) {}
  [[nodiscard]] int64_t num_sequences() const override { return dataset_.num_sequences(); }
  [[nodiscard]] int64_t num_tokens() const override { return dataset_.report().tokens; }
  [[nodiscard]] int64_t scratch_bytes() const override { return dataset_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const override {
    return dataset_.sequence_tokens(index, scratch);
  }
  Result<SequenceCounts> read(int64_t index, SequenceRow row, std::span<std::byte> scratch) const override {
    return dataset_.read_sequence(index, row_as<int32_t>(row[kTokensRow]), row_as<int32_t>(row[kTargetsRow]),
                                  doc_start_of(row), scratch);
  }
  Status keep_within(int64_t& room) override { return dataset_.keep_within(room); }
  Result<uint64_t> fingerprint(std::span<std::byte>) const override { return dataset_.fingerprint(); }
  [[nodiscard]] const PackReport* pack_report() const override { return &dataset_.report(); }
  [[nodiscard]] std::string index_path() const override { return dataset_.index_path(); }

 private:
  PackedDataset dataset_;
};

/// A damaged one is told by its name.
bool is_meant_as_shard(const std::string& path) { return path.ends_with(".shard") || is_shard(path); }

}  // namespace

BatchLayout causal_layout(bool documents) {
  BatchLayout layout = {token_row(0), token_row(kNoTarget)};
  // Padding is documents of one token, so that attention spends one score on each.
  if (documents) layout.push_back(token_row(0, RowPadding::kIndex));
  return layout;
}

Result<std::unique_ptr<SequenceSource>> open_causal_source(const DataFiles& files,
                                                           const TrainingDataOptions& options) {
  const auto shards = std::count_if(files.paths.begin(), files.paths.end(), is_meant_as_shard);
  if (shards == 0) {
    PLIMSOLL_ASSIGN(Dataset dataset,
                    Dataset::open(files.paths, {.sequence_length = options.pack.sequence_length,
                                                .vocab_size = options.vocab_size,
                                                .max_sequences = options.pack.max_documents,
                                                .keep_tail = options.pack.keep_tail,
                                                .setting = options.setting}));
    return std::unique_ptr<SequenceSource>(std::make_unique<StreamSource>(std::move(dataset)));
  }
  if (shards != static_cast<std::ptrdiff_t>(files.paths.size()))
    return Error{ErrorCode::kInvalidArgument, options.setting + " joins token shards and other files",
                 *std::find_if_not(files.paths.begin(), files.paths.end(), is_meant_as_shard),
                 "tokenize all of them, or give data.weights: each is then a source of its own"};
  PLIMSOLL_ASSIGN(PackedDataset dataset, PackedDataset::open(files.paths,
                                                             {.pack = options.pack,
                                                              .vocab_size = options.vocab_size,
                                                              .vocabulary_hash = options.vocabulary_hash,
                                                              .setting = options.setting},
                                                             options.cache_folder));
  return std::unique_ptr<SequenceSource>(std::make_unique<PackedSource>(std::move(dataset)));
}

Result<TrainingData> TrainingData::open(std::span<const DataFiles> sources,
                                        const TrainingDataOptions& options) {
  TrainingData data(options);
  int64_t room = options.kept_bytes;
  for (const DataFiles& files : sources) {
    PLIMSOLL_ASSIGN(auto source, options.open_source(files, options));
    PLIMSOLL_TRY(source->keep_within(room));
    data.sources_.push_back(std::move(source));
  }
  data.kept_bytes_ = options.kept_bytes - room;
  PLIMSOLL_TRY(data.set_order(sources));
  if (options.buckets.empty()) return data;
  PLIMSOLL_CHECK(options.buckets.back() == options.pack.sequence_length, "buckets of another length");
  data.buckets_ = std::make_unique<BucketOrder>(BucketOrderOptions{.lengths = options.buckets,
                                                                   .batch_size = options.global_batch_size,
                                                                   .epoch_size = data.num_sequences_,
                                                                   .seed = options.seed,
                                                                   .shuffle = options.shuffle});
  return data;
}

Status TrainingData::set_order(std::span<const DataFiles> files) {
  if (sources_.size() == 1) {
    num_sequences_ = sources_.front()->num_sequences();
    order_.emplace(num_sequences_, options_.seed, options_.shuffle);
    return Ok{};
  }
  std::vector<MixtureSource> mixed;
  for (size_t i = 0; i < sources_.size(); ++i)
    mixed.push_back({sources_[i]->num_sequences(), files[i].weight,
                     files[i].paths.empty() ? std::string() : files[i].paths.front()});
  PLIMSOLL_ASSIGN(Mixture mixture, Mixture::create(mixed, options_.seed, options_.shuffle));
  num_sequences_ = mixture.positions_for_all();
  mixture_.emplace(std::move(mixture));
  return Ok{};
}

int64_t TrainingData::num_tokens() const {
  int64_t tokens = 0;
  for (const auto& source : sources_) tokens += source->num_tokens();
  return tokens;
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
  return sequence_length();
}

Result<SequenceCounts> TrainingData::read_at(int64_t looked_up, SequenceRow row,
                                             std::span<std::byte> scratch) const {
  const MixturePlace place = place_of(looked_up);
  return sources_[static_cast<size_t>(place.source)]->read(place.index, row, scratch);
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
