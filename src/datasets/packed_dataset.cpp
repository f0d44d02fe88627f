// Sequences by the pack index, segment by segment.
//
//   scratch: | loss mask of the sequence (where any shard has one) | a block of the index | blocks of a shard
//   |
#include "datasets/packed_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

constexpr int64_t kAlignment = 64;
constexpr size_t kSegmentsAtOnce = 64;
constexpr int64_t kIndexBytes = (PackIndex::kScratchBytes + kAlignment - 1) / kAlignment * kAlignment;

Status check_vocabulary(const Shard& shard, const PackedDatasetOptions& options) {
  const ShardInfo& info = shard.info();
  if (options.vocab_size > 0 && info.vocab_size > options.vocab_size)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the shard is of a vocabulary of {}, the model's has {}", info.vocab_size,
                             options.vocab_size),
                 shard.path(), "tokenize the text with the model's tokenizer"};
  if (options.vocabulary_hash != 0 && info.vocabulary_hash != options.vocabulary_hash)
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the shard was made with another tokenizer (vocabulary {}) than the model's ({})",
                    io::checksum_text(info.vocabulary_hash), io::checksum_text(options.vocabulary_hash)),
        shard.path(), "tokenize the text with the model's tokenizer"};
  return Ok{};
}

Result<std::vector<Shard>> open_shards(std::span<const std::string> paths,
                                       const PackedDatasetOptions& options) {
  std::vector<Shard> shards;
  for (const std::string& pattern : paths) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> files, io::expand_glob(pattern));
    for (const std::string& path : files) {
      PLIMSOLL_ASSIGN(Shard shard, Shard::open(path));
      PLIMSOLL_TRY(check_vocabulary(shard, options));
      shards.push_back(std::move(shard));
    }
  }
  return shards;
}

/// Compilers turn loops of a known length over memory of their own into vectors.
constexpr size_t kTokensAtOnce = 32;

/// Each target is the token behind it where that counts. How many do.
int64_t set_targets(std::span<const int32_t> next, std::span<const uint8_t> counts, int32_t* targets) {
  std::array<int32_t, kTokensAtOnce> kept, some;
  const auto set = [&](size_t at) {
    for (size_t i = 0; i < kTokensAtOnce; ++i) kept[i] = counts[at + i];
    for (size_t i = 0; i < kTokensAtOnce; ++i) some[i] = next[at + i];
    for (size_t i = 0; i < kTokensAtOnce; ++i) some[i] = (some[i] & -kept[i]) | (kNoTarget & ~-kept[i]);
    std::memcpy(targets + at, some.data(), sizeof(some));
    int32_t sum = 0;
    for (size_t i = 0; i < kTokensAtOnce; ++i) sum += kept[i];
    return sum;
  };
  int64_t total = 0;
  size_t at = 0;
  for (; at + kTokensAtOnce <= next.size(); at += kTokensAtOnce) total += set(at);
  for (; at < next.size(); ++at) {
    targets[at] = counts[at] != 0 ? next[at] : kNoTarget;
    total += counts[at];
  }
  return total;
}

void fill_tokens(std::span<int32_t> to, int32_t value) {
  std::array<int32_t, kTokensAtOnce> some;
  some.fill(value);
  for (; to.size() >= kTokensAtOnce; to = to.subspan(kTokensAtOnce))
    std::memcpy(to.data(), some.data(), sizeof(some));
  std::ranges::fill(to, value);
}

Error nothing_left(const PackReport& report, const std::string& setting) {
  const int64_t rest = report.documents - report.no_target_documents - report.other_side_documents;
  // Where no document is left for its length, length is not what is wrong.
  const bool untaught = report.no_target_documents > 0 && rest == 0;
  return {ErrorCode::kBadData,
          fmt::format("{} gives no sequence of {}: of {} documents {} are kept, {} are too long, {} have no "
                      "target, {} are held out by the train/eval split",
                      setting, report.sequence_length, report.documents, report.kept_documents,
                      report.too_long_documents, report.no_target_documents, report.other_side_documents),
          {},
          untaught
              ? "nothing in these documents is learnt: conversations need assistant's turns, prompts need "
                "completions, and data.loss=all learns every token"
              : "add data, or lower data.sequence_length"};
}

}  // namespace

PackedDataset::PackedDataset(std::vector<Shard> shards, PackIndex index, PackedDatasetOptions options)
    : shards_(std::move(shards)), index_(std::move(index)), options_(std::move(options)) {
  const int64_t length = sequence_length();
  for (const Shard& shard : shards_) {
    if (shard.info().has_mask) mask_bytes_ = round_up(length, kAlignment);
    // Tokens that do not begin with a block touch one more.
    const int64_t blocks = std::min(ceil_div(length, kShardBlockTokens) + 1, kMostBlocksOfARead);
    block_bytes_ = std::max(block_bytes_, round_up(blocks * shard.block_bytes(), kAlignment));
  }
}

Result<PackedDataset> PackedDataset::open(std::span<const std::string> paths,
                                          const PackedDatasetOptions& options,
                                          const std::string& cache_folder) {
  if (paths.empty())
    return Error{ErrorCode::kInvalidArgument,
                 options.setting + " names no file",
                 {},
                 "set it to a shard, a list or a glob"};
  auto shards = open_shards(paths, options);
  if (!shards) return std::move(shards).error().at(options.setting);
  auto index = PackIndex::open_or_build(*shards, options.pack, cache_folder);
  int64_t bytes = kRememberedBytes;
  for (Shard& shard : *shards) bytes -= shard.remember_checked(bytes);
  if (!index) return std::move(index).error().at(options.setting);
  if (index->report().num_sequences == 0) return nothing_left(index->report(), options.setting);
  return PackedDataset(std::move(*shards), std::move(*index), options);
}

int64_t PackedDataset::scratch_bytes() const { return mask_bytes_ + kIndexBytes + block_bytes_; }

Status PackedDataset::keep_within(int64_t& room) {
  PLIMSOLL_TRY(index_.keep_within(room));
  for (Shard& shard : shards_) PLIMSOLL_TRY(shard.keep_within(room));
  return Ok{};
}

Status PackedDataset::read_segment(const PackSegment& segment, int64_t at, const Outputs& out,
                                   std::span<std::byte> scratch, ExampleCounts& counts) const {
  const Shard& shard = shards_[static_cast<size_t>(segment.shard)];
  const auto first = static_cast<size_t>(at), count = static_cast<size_t>(segment.length);
  const std::span<int32_t> tokens = out.tokens.subspan(first, count);
  const bool masked = shard.info().has_mask && !out.targets.empty();
  const std::span<uint8_t> in_loss(reinterpret_cast<uint8_t*>(scratch.data()), masked ? count : 0);
  const auto behind_mask = static_cast<size_t>(mask_bytes_ + kIndexBytes);
  PLIMSOLL_TRY(shard.read(segment.begin, tokens, in_loss, scratch.subspan(behind_mask)));
  counts.units += segment.length;
  if (!out.doc_start.empty()) fill_tokens(out.doc_start.subspan(first, count), static_cast<int32_t>(at));
  if (out.targets.empty()) return Ok{};
  const std::span<int32_t> targets = out.targets.subspan(first, count);
  if (masked) {
    counts.targets += set_targets(tokens.subspan(1), in_loss.subspan(1), targets.data());
  } else {
    std::copy(tokens.begin() + 1, tokens.end(), targets.begin());
    counts.targets += segment.length - 1;
  }
  targets[count - 1] = kNoTarget;
  return Ok{};
}

Error PackedDataset::index_changed() const {
  return {ErrorCode::kBadData, "the pack index has changed while it was read", index_.path(), "start again"};
}

Result<int64_t> PackedDataset::sequence_tokens(int64_t index, std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(static_cast<int64_t>(scratch.size()) >= scratch_bytes(), "too little scratch");
  const std::span<std::byte> index_scratch =
      scratch.subspan(static_cast<size_t>(mask_bytes_), static_cast<size_t>(kIndexBytes));
  PLIMSOLL_ASSIGN(PackIndex::Range range, index_.segments_of(index, index_scratch));
  std::array<PackSegment, kSegmentsAtOnce> segments;
  int64_t tokens = 0;
  while (range.begin < range.end) {
    const auto most = static_cast<size_t>(std::min<int64_t>(range.end - range.begin, kSegmentsAtOnce));
    PLIMSOLL_ASSIGN(const int64_t read,
                    index_.read_segments(range.begin, std::span(segments).first(most), index_scratch));
    for (const PackSegment& segment : std::span(segments).first(static_cast<size_t>(read)))
      tokens += segment.length;
    range.begin += read;
  }
  if (tokens < 1 || tokens > sequence_length()) return index_changed();
  return tokens;
}

Result<ExampleCounts> PackedDataset::read_sequence(int64_t index, std::span<int32_t> tokens,
                                                   std::span<int32_t> targets, std::span<int32_t> doc_start,
                                                   std::span<std::byte> scratch) const {
  const size_t length = tokens.size();
  PLIMSOLL_CHECK(static_cast<int64_t>(length) <= sequence_length() &&
                     (targets.empty() || targets.size() == length) &&
                     (doc_start.empty() || doc_start.size() == length),
                 "a buffer of another length");
  PLIMSOLL_CHECK(static_cast<int64_t>(scratch.size()) >= scratch_bytes(), "too little scratch");
  const std::span<std::byte> index_scratch =
      scratch.subspan(static_cast<size_t>(mask_bytes_), static_cast<size_t>(kIndexBytes));
  PLIMSOLL_ASSIGN(const PackIndex::Range range, index_.segments_of(index, index_scratch));
  ExampleCounts counts;
  std::array<PackSegment, kSegmentsAtOnce> segments;
  for (int64_t at = range.begin; at < range.end;) {
    const auto most = static_cast<size_t>(std::min<int64_t>(range.end - at, kSegmentsAtOnce));
    PLIMSOLL_ASSIGN(const int64_t read,
                    index_.read_segments(at, std::span(segments).first(most), index_scratch));
    for (const PackSegment& segment : std::span(segments).first(static_cast<size_t>(read))) {
      // All were checked when the index was opened: the file is another one since.
      if (!lies_within(segment, shards_) || segment.length > static_cast<int64_t>(length) - counts.units)
        return index_changed();
      PLIMSOLL_TRY(read_segment(segment, counts.units, {tokens, targets, doc_start}, scratch, counts));
    }
    at += read;
  }
  const auto rest = static_cast<size_t>(counts.units);
  std::fill(tokens.begin() + counts.units, tokens.end(), options_.pad_id);
  if (!targets.empty()) std::fill(targets.begin() + counts.units, targets.end(), kNoTarget);
  for (size_t i = rest; i < doc_start.size(); ++i) doc_start[i] = static_cast<int32_t>(i);
  return counts;
}

}  // namespace plimsoll::datasets
