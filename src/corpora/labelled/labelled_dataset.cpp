#include "corpora/labelled/labelled_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "io/checksum.h"

namespace plimsoll::corpora {
namespace {

Status check_same(const datasets::Shard& shard, const LabelFile& labels,
                  const std::optional<datasets::Shard>& types, const LabelledDatasetOptions& options) {
  const auto types_hash = types ? std::optional(types->info().content_hash) : std::nullopt;
  const bool as_long = !types || (types->info().num_tokens == shard.info().num_tokens &&
                                  types->info().num_documents == shard.info().num_documents);
  if (labels.shard_hash() != labelled_hash(shard.info().content_hash, types_hash) ||
      labels.size() != shard.info().num_documents || !as_long)
    return Error{ErrorCode::kBadData, "the labels belong to another shard", labels.path(),
                 "remove both files: they are made again"};
  if (options.vocab_size > 0 && shard.info().vocab_size > options.vocab_size)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the examples are of a vocabulary of {}, the model's has {}",
                             shard.info().vocab_size, options.vocab_size),
                 shard.path(), "tokenize them with the model's tokenizer"};
  return Ok{};
}

}  // namespace

struct LabelledDataset::State {
  struct Source {
    datasets::Shard shard;
    LabelFile labels;
    std::optional<datasets::Shard> types;
  };
  struct Place {
    size_t source = 0;
    int64_t index = 0;
  };
  LabelledDatasetOptions options;
  std::vector<Source> sources = {};
  std::vector<LabelReader> readers = {};  ///< of the sources
  std::vector<int64_t> first = {0};       ///< examples before each source; the last is the total
  int64_t scratch_bytes = 0;

  Status add(const std::string& path) {
    PLIMSOLL_ASSIGN(datasets::Shard shard, datasets::Shard::open(path));
    PLIMSOLL_ASSIGN(LabelFile labels, LabelFile::open(labels_beside(path)));
    std::optional<datasets::Shard> types;
    if (options.token_types) {
      PLIMSOLL_ASSIGN(datasets::Shard of_types, datasets::Shard::open(types_beside(path)));
      types.emplace(std::move(of_types));
    }
    PLIMSOLL_TRY(check_same(shard, labels, types, options));
    const int64_t blocks = std::min(ceil_div(options.sequence_length, datasets::kShardBlockTokens) + 1,
                                    datasets::kMostBlocksOfARead);
    scratch_bytes = std::max({scratch_bytes, blocks * shard.block_bytes(), labels.scratch_bytes(),
                              datasets::Shard::kDocumentScratchBytes});
    first.push_back(first.back() + labels.size());
    if (types) scratch_bytes = std::max(scratch_bytes, blocks * types->block_bytes());
    sources.push_back({std::move(shard), std::move(labels), std::move(types)});
    return Ok{};
  }

  [[nodiscard]] Place place_of(int64_t index) const {
    PLIMSOLL_CHECK(index >= 0 && index < first.back(), "an example outside of its data");
    const auto after = std::upper_bound(first.begin(), first.end(), index);
    const auto source = static_cast<size_t>(after - first.begin()) - 1;
    return {source, index - first[source]};
  }

  Result<datasets::ShardDocument> document(const Place& place, std::span<std::byte> scratch) const {
    datasets::ShardDocument document;
    PLIMSOLL_TRY(sources[place.source].shard.read_documents(
        place.index, {&document, 1},
        scratch.first(static_cast<size_t>(datasets::Shard::kDocumentScratchBytes))));
    return document;
  }
};

LabelledDataset::LabelledDataset(std::unique_ptr<State> state) : state_(std::move(state)) {}
LabelledDataset::LabelledDataset(LabelledDataset&&) noexcept = default;
LabelledDataset& LabelledDataset::operator=(LabelledDataset&&) noexcept = default;
LabelledDataset::~LabelledDataset() = default;

Result<LabelledDataset> LabelledDataset::open(std::span<const std::string> shards,
                                              const LabelledDatasetOptions& options) {
  auto state = std::make_unique<State>(State{options});
  for (const std::string& path : shards) PLIMSOLL_TRY(state->add(path));
  if (state->first.back() == 0)
    return Error{ErrorCode::kBadData, options.setting + " gives no example", {}, "name files with examples"};
  for (const State::Source& source : state->sources)
    state->readers.emplace_back(state->options.labels, source.labels);
  return LabelledDataset(std::move(state));
}

int64_t LabelledDataset::size() const { return state_->first.back(); }
int64_t LabelledDataset::scratch_bytes() const { return state_->scratch_bytes; }

int64_t LabelledDataset::num_tokens() const {
  int64_t tokens = 0;
  for (const State::Source& source : state_->sources) tokens += source.shard.info().num_tokens;
  return tokens;
}

uint64_t LabelledDataset::fingerprint() const {
  io::Checksum sum;
  const auto add = [&sum](uint64_t hash) { sum.add(std::as_bytes(std::span(&hash, 1))); };
  for (const State::Source& source : state_->sources) {
    add(source.shard.info().content_hash);
    add(source.labels.content_hash());
    if (source.types) add(source.types->info().content_hash);
  }
  sum.add(io::name(state_->options.labels.problem));
  for (const std::string& label : state_->options.labels.names) sum.add(label + "\n");
  return sum.value();
}

Status LabelledDataset::keep_within(int64_t& room) {
  for (State::Source& source : state_->sources) {
    PLIMSOLL_TRY(source.labels.keep_within(room));
    PLIMSOLL_TRY(source.shard.keep_within(room));
    if (source.types) PLIMSOLL_TRY(source.types->keep_within(room));
  }
  return Ok{};
}

Result<int64_t> LabelledDataset::length(int64_t index, std::span<std::byte> scratch) const {
  PLIMSOLL_ASSIGN(const datasets::ShardDocument document, state_->document(state_->place_of(index), scratch));
  return std::min(document.num_tokens(), state_->options.sequence_length);
}

Result<int64_t> LabelledDataset::read(int64_t index, const LabelledRow& row,
                                      std::span<std::byte> scratch) const {
  const State::Place place = state_->place_of(index);
  const State::Source& source = state_->sources[place.source];
  const std::optional<int64_t> pad = state_->options.pad_token;
  PLIMSOLL_ASSIGN(const datasets::ShardDocument document, state_->document(place, scratch));
  int64_t count = std::min(document.num_tokens(), state_->options.sequence_length);
  PLIMSOLL_CHECK(static_cast<int64_t>(row.tokens.size()) >= count, "a row shorter than its example");
  const std::span<int32_t> tokens = row.tokens.first(static_cast<size_t>(count));
  PLIMSOLL_TRY(source.shard.read(document.begin, tokens, {}, scratch));
  if (source.types) {
    const std::span<int32_t> types = row.types.first(static_cast<size_t>(count));
    PLIMSOLL_TRY(source.types->read(document.begin, types, {}, scratch));
  }
  while (pad && count > 0 && tokens[static_cast<size_t>(count - 1)] == *pad) --count;
  std::fill(row.tokens.begin() + count, row.tokens.end(),
            static_cast<int32_t>(std::max<int64_t>(0, pad.value_or(0))));
  if (source.types) std::fill(row.types.begin() + count, row.types.end(), 0);
  *row.last = static_cast<int32_t>(std::max<int64_t>(0, count - 1));
  PLIMSOLL_ASSIGN(const LabelEntry entry, source.labels.read(place.index, scratch));
  PLIMSOLL_TRY(state_->readers[place.source].read(entry, row.labels));
  return count;
}

}  // namespace plimsoll::corpora
