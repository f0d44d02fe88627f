// Building a pack index: documents one after the other into pieces, pieces into sequences, sequences into the
// file. What is left out is counted where that is decided.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "base/check.h"
#include "datasets/packing.h"
#include "datasets/packing_file.h"
#include "datasets/packing_layout.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

using namespace packing;

constexpr int64_t kMaskTokensAtOnce = 16 * kShardBlockTokens;

/// Documents into pieces.
class Cutter {
 public:
  Cutter(std::span<const Shard> shards, const PackOptions& options, Layout& layout, PackReport& report)
      : shards_(shards), options_(options), layout_(layout), report_(report) {}

  Status add(int32_t shard, const ShardDocument& document);

 private:
  Status cut(int32_t shard, const ShardDocument& document);
  Status truncate(int32_t shard, const ShardDocument& document);
  Result<int64_t> targets_in(int32_t shard, int64_t begin, int64_t length);
  std::span<const Shard> shards_;
  const PackOptions& options_;
  Layout& layout_;
  PackReport& report_;
  std::vector<std::byte> scratch_;
  std::vector<int32_t> ids_;
  std::vector<uint8_t> in_loss_;
  int64_t taken_ = 0;  // documents on this side
};

/// The first token of a piece has nothing before it that it could be the target of.
Result<int64_t> Cutter::targets_in(int32_t shard, int64_t begin, int64_t length) {
  const Shard& from = shards_[static_cast<size_t>(shard)];
  if (!from.info().has_mask) return length - 1;
  ids_.resize(static_cast<size_t>(kMaskTokensAtOnce));
  in_loss_.resize(ids_.size());
  scratch_.resize(static_cast<size_t>(from.block_bytes() * 4));
  int64_t targets = 0;
  for (int64_t at = begin + 1; at < begin + length;) {
    const auto count = static_cast<size_t>(std::min(begin + length - at, kMaskTokensAtOnce));
    PLIMSOLL_TRY(from.read(at, std::span(ids_).first(count), std::span(in_loss_).first(count), scratch_));
    targets += std::count(in_loss_.begin(), in_loss_.begin() + static_cast<std::ptrdiff_t>(count), 1);
    at += static_cast<int64_t>(count);
  }
  return targets;
}

Status Cutter::add(int32_t shard, const ShardDocument& document) {
  const int64_t length = document.num_tokens();
  ++report_.documents;
  report_.tokens += length;
  if (options_.side != SplitSide::kAll &&
      on_eval_side(document.hash, options_.eval_fraction) != (options_.side == SplitSide::kEval)) {
    ++report_.other_side_documents;
    report_.other_side_tokens += length;
    return Ok{};
  }
  if (options_.max_documents > 0 && taken_ == options_.max_documents) {
    ++report_.beyond_documents;
    report_.beyond_tokens += length;
    return Ok{};
  }
  ++taken_;
  if (document.num_targets == 0) {
    ++report_.no_target_documents;
    report_.no_target_tokens += length;
    return Ok{};
  }
  const bool is_long = length > options_.sequence_length && options_.mode != PackMode::kStream;
  if (is_long && options_.long_documents == LongDocuments::kTruncate) return truncate(shard, document);
  if (is_long && options_.long_documents == LongDocuments::kDrop) {
    ++report_.too_long_documents;
    report_.too_long_tokens += length;
    return Ok{};
  }
  const int64_t room = options_.mode == PackMode::kStream ? layout_.room() : options_.sequence_length;
  if (length > room) return cut(shard, document);
  ++report_.kept_documents;
  return layout_.add(
      {{document.begin, static_cast<int32_t>(length), shard}, static_cast<int32_t>(document.num_targets)});
}

Status Cutter::truncate(int32_t shard, const ShardDocument& document) {
  const int64_t length = options_.sequence_length;
  PLIMSOLL_ASSIGN(const int64_t targets, targets_in(shard, document.begin, length));
  if (targets == 0) {
    ++report_.no_target_documents;
    report_.no_target_tokens += document.num_tokens();
    return Ok{};
  }
  ++report_.kept_documents;
  ++report_.truncated_documents;
  report_.truncated_tokens += document.num_tokens() - length;
  return layout_.add({{document.begin, static_cast<int32_t>(length), shard}, static_cast<int32_t>(targets)});
}

Status Cutter::cut(int32_t shard, const ShardDocument& document) {
  const bool stream = options_.mode == PackMode::kStream;
  int64_t pieces = 0, left_out = 0, left_out_tokens = 0;
  for (int64_t at = document.begin; at < document.end;) {
    const int64_t room = stream ? layout_.room() : options_.sequence_length;
    const int64_t length = std::min(document.end - at, room);
    PLIMSOLL_ASSIGN(const int64_t targets, targets_in(shard, at, length));
    if (targets == 0 && !stream) {
      ++left_out;
      left_out_tokens += length;
    } else {
      ++pieces;
      PLIMSOLL_TRY(layout_.add({{at, static_cast<int32_t>(length), shard}, static_cast<int32_t>(targets)}));
    }
    at += length;
  }
  if (pieces == 0) {  // its targets were the first tokens of pieces
    ++report_.no_target_documents;
    report_.no_target_tokens += document.num_tokens();
    return Ok{};
  }
  ++report_.kept_documents;
  ++report_.cut_documents;
  report_.no_target_pieces += left_out;
  report_.no_target_piece_tokens += left_out_tokens;
  return Ok{};
}

/// All documents of all shards.
Result<PackReport> lay_out(std::span<const Shard> shards, const PackOptions& options, Sequences sequences) {
  PLIMSOLL_CHECK(options.sequence_length > 0 && options.sequence_length <= INT32_MAX && options.window > 0 &&
                     options.window <= INT32_MAX && options.eval_fraction >= 0 && options.eval_fraction <= 1,
                 "options of packing out of their range");
  PackReport report;
  report.sequence_length = options.sequence_length;
  Layout layout(options, sequences, report);
  Cutter cutter(shards, options, layout, report);
  for (size_t s = 0; s < shards.size(); ++s)
    PLIMSOLL_TRY(shards[s].visit_documents(
        [&](const ShardDocument& document) { return cutter.add(static_cast<int32_t>(s), document); }));
  PLIMSOLL_TRY(layout.finish());
  return report;
}

std::string vocabulary_text(const ShardInfo& info) {
  return fmt::format("{} tokens with hash {}", info.vocab_size, io::checksum_text(info.vocabulary_hash));
}

Status check_vocabularies(std::span<const Shard> shards) {
  for (const Shard& shard : shards) {
    const ShardInfo &info = shard.info(), &first = shards.front().info();
    if (info.vocabulary_hash == first.vocabulary_hash && info.vocab_size == first.vocab_size) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the shard has another vocabulary ({}) than {} ({})", vocabulary_text(info),
                             shards.front().path(), vocabulary_text(first)),
                 shard.path(), "make both with the same tokenizer"};
  }
  return Ok{};
}

}  // namespace

double PackReport::filled() const {
  if (num_sequences == 0) return 1;
  return static_cast<double>(num_tokens) /
         (static_cast<double>(num_sequences) * static_cast<double>(sequence_length));
}

bool on_eval_side(uint64_t document_hash, double eval_fraction) {
  return static_cast<double>(document_hash >> 11) * 0x1p-53 < eval_fraction;
}

Result<PackReport> PackIndex::build(std::span<const Shard> shards, const PackOptions& options,
                                    const std::string& path) {
  PLIMSOLL_TRY(check_vocabularies(shards));
  PLIMSOLL_ASSIGN(IndexWriter writer, IndexWriter::create(path));
  PLIMSOLL_ASSIGN(PackReport report, lay_out(shards, options, Sequences(writer)));
  report.num_sequences = writer.num_sequences();
  report.num_segments = writer.num_segments();
  PLIMSOLL_TRY(writer.finish({key(shards, options), report}));
  return report;
}

Status PackIndex::count_lengths(std::span<const Shard> shards, const PackOptions& options,
                                LengthCounts& lengths) {
  PLIMSOLL_TRY(check_vocabularies(shards));
  PLIMSOLL_TRY(lay_out(shards, options, Sequences(lengths)));
  return Ok{};
}

uint64_t PackIndex::key(std::span<const Shard> shards, const PackOptions& options) {
  // What does not matter to the mode does not change the key.
  const bool best_fit = options.mode == PackMode::kBestFit, stream = options.mode == PackMode::kStream;
  const bool split = options.side != SplitSide::kAll;
  std::vector<uint64_t> parts = {1,  // of the algorithm: raised when the same options pack otherwise
                                 static_cast<uint64_t>(options.sequence_length),
                                 static_cast<uint64_t>(options.mode),
                                 stream ? 0 : static_cast<uint64_t>(options.long_documents),
                                 best_fit ? static_cast<uint64_t>(options.window) : 0,
                                 stream && options.keep_tail ? 1U : 0U,
                                 static_cast<uint64_t>(options.side),
                                 split ? std::bit_cast<uint64_t>(options.eval_fraction) : 0};
  if (options.max_documents > 0) parts.push_back(static_cast<uint64_t>(options.max_documents));
  for (const Shard& shard : shards) {
    parts.push_back(shard.info().content_hash);
    parts.push_back(static_cast<uint64_t>(shard.info().file_bytes));
    parts.push_back(shard.info().vocabulary_hash);
    parts.push_back(static_cast<uint64_t>(shard.info().vocab_size));
  }
  return io::checksum(std::as_bytes(std::span(parts)));
}

}  // namespace plimsoll::datasets
