#include "datasets/causal_source.h"

#include <algorithm>
#include <utility>

#include "datasets/dataset.h"
#include "datasets/packed_dataset.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

std::span<int32_t> doc_start_of(ExampleRow row) {
  return row.size() > kDocStartRow ? row_as<int32_t>(row[kDocStartRow]) : std::span<int32_t>();
}

/// Tokens in one stream, cut.
class StreamSource final : public ExampleSource {
 public:
  explicit StreamSource(Dataset dataset) : dataset_(std::move(dataset)) {}
  [[nodiscard]] int64_t num_examples() const override { return dataset_.num_sequences(); }
  [[nodiscard]] int64_t num_units() const override { return dataset_.num_tokens(); }
  [[nodiscard]] int64_t scratch_bytes() const override { return dataset_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte>) const override {
    return dataset_.sequence_tokens(index);
  }

  Result<ExampleCounts> read(int64_t index, ExampleRow row, std::span<std::byte> scratch) const override {
    const std::span<int32_t> tokens = row_as<int32_t>(row[kTokensRow]),
                             targets = row_as<int32_t>(row[kTargetsRow]);
    PLIMSOLL_TRY(dataset_.read_sequence(index, tokens, scratch));
    const int64_t valid = dataset_.sequence_tokens(index);
    std::ranges::fill(doc_start_of(row), 0);
    if (targets.empty()) return ExampleCounts{valid, 0};
    std::copy(tokens.begin() + 1, tokens.begin() + valid, targets.begin());
    std::fill(targets.begin() + valid - 1, targets.end(), kNoTarget);
    return ExampleCounts{valid, valid - 1};
  }

  Status keep_within(int64_t& room) override { return dataset_.keep_within(room); }

  /// Of every token: three letters that changed are other data.
  Result<uint64_t> fingerprint(std::span<std::byte> scratch) const override {
    io::Checksum sum;
    std::vector<int32_t> tokens(static_cast<size_t>(dataset_.sequence_length()));
    for (int64_t i = 0; i < num_examples(); ++i) {
      PLIMSOLL_TRY(dataset_.read_sequence(i, tokens, scratch));
      sum.add(std::as_bytes(std::span(tokens)));
    }
    return sum.value();
  }

 private:
  Dataset dataset_;
};

class PackedSource final : public ExampleSource {
 public:
  explicit PackedSource(PackedDataset dataset) : dataset_(std::move(dataset)) {}
  [[nodiscard]] int64_t num_examples() const override { return dataset_.num_sequences(); }
  [[nodiscard]] int64_t num_units() const override { return dataset_.report().tokens; }
  [[nodiscard]] int64_t scratch_bytes() const override { return dataset_.scratch_bytes(); }
  Result<int64_t> length(int64_t index, std::span<std::byte> scratch) const override {
    return dataset_.sequence_tokens(index, scratch);
  }
  Result<ExampleCounts> read(int64_t index, ExampleRow row, std::span<std::byte> scratch) const override {
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

std::vector<TensorSpec> causal_tensors(bool documents) {
  std::vector<TensorSpec> tensors = {token_tensor("tokens", 0), token_tensor("targets", kNoTarget)};
  // Padding is documents of one token, so that attention spends one score on each.
  if (documents) tensors.push_back(token_tensor("doc_start", 0, Padding::kIndex));
  return tensors;
}

Result<std::unique_ptr<ExampleSource>> open_causal_source(const DataFiles& files,
                                                          const SourceOptions& options) {
  const auto shards = std::count_if(files.paths.begin(), files.paths.end(), is_meant_as_shard);
  if (shards == 0) {
    PLIMSOLL_ASSIGN(Dataset dataset,
                    Dataset::open(files.paths, {.sequence_length = options.pack.sequence_length,
                                                .vocab_size = options.vocab_size,
                                                .max_sequences = options.pack.max_documents,
                                                .keep_tail = options.pack.keep_tail,
                                                .setting = options.setting}));
    return std::unique_ptr<ExampleSource>(std::make_unique<StreamSource>(std::move(dataset)));
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
  return std::unique_ptr<ExampleSource>(std::make_unique<PackedSource>(std::move(dataset)));
}

}  // namespace plimsoll::datasets
