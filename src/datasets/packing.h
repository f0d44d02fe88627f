// Assigns tokens to sequences: documents of one or more shards laid into sequences of one length.
// The result is a file - the pack index - and is looked up by position, so that memory does not grow with the
// data.
//
//   shards ─ documents in order ─► pieces of at most T tokens ─► a window of them ─► sequences ─► index
//
// Where documents are kept apart, a piece of a cut document counts as one of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "datasets/length_buckets.h"
#include "datasets/shard.h"
#include "datasets/shard_table.h"
#include "io/file.h"

namespace plimsoll::datasets {

enum class PackMode {
  kBestFit,  ///< best-fit decreasing over a window
  kPad,      ///< a document (or piece) a sequence
  kStream,   ///< documents joined and cut wherever a sequence ends
};
enum class LongDocuments {
  kCut,      ///< into whole sequences and a rest that is packed
  kDrop,     ///< left out
  kTruncate  ///< their first T tokens stay
};
/// Which documents: all, or one side of the split by the document's hash.
enum class SplitSide { kAll, kTrain, kEval };

struct PackOptions {
  int64_t sequence_length = 512;  ///< T
  PackMode mode = PackMode::kBestFit;
  /// Documents longer than T. Not for kStream.
  LongDocuments long_documents = LongDocuments::kCut;
  int64_t window = 65'536;  ///< pieces that are packed together (kBestFit)
  bool keep_tail = false;   ///< kStream: the rest shorter than a sequence counts as one
  SplitSide side = SplitSide::kAll;
  int64_t max_documents = 0;  ///< the first of them on this side; 0: all
  double eval_fraction = 0;   ///< share of documents on the side kEval, 0 to 1
};

/// What packing did; everything that does not stand in a sequence is counted in one of its lines.
/// documents = kept + too_long + no_target + other_side + beyond; tokens likewise, and less tail, piece and
/// truncated tokens.
struct PackReport {
  int64_t num_sequences = 0, sequence_length = 0;
  int64_t num_segments = 0;                                  ///< pieces that stand in sequences
  int64_t num_tokens = 0;                                    ///< that stand in sequences
  int64_t num_targets = 0;                                   ///< of them, counted where they stand
  int64_t documents = 0, tokens = 0;                         ///< in the shards
  int64_t kept_documents = 0;                                ///< in sequences, at least in part
  int64_t cut_documents = 0;                                 ///< of them, in more than one piece
  int64_t too_long_documents = 0, too_long_tokens = 0;       ///< left out as told
  int64_t no_target_documents = 0, no_target_tokens = 0;     ///< left out: nothing in them is learnt
  int64_t no_target_pieces = 0, no_target_piece_tokens = 0;  ///< the same of pieces of cut documents
  int64_t other_side_documents = 0, other_side_tokens = 0;   ///< held out by the train/eval split
  int64_t tail_tokens = 0;                                   ///< kStream: dropped at the end
  int64_t truncated_documents = 0, truncated_tokens = 0;     ///< kept but for these tokens
  int64_t beyond_documents = 0, beyond_tokens = 0;           ///< behind max_documents
  /// Share of positions that hold a token; 1 where there is no sequence.
  [[nodiscard]] double filled() const;
};

/// Which side a document is on: a function of its ids alone.
bool on_eval_side(uint64_t document_hash, double eval_fraction);

/// A run of tokens of one document in a sequence.
struct PackSegment {
  int64_t begin = 0;   ///< in its shard
  int32_t length = 0;  ///< 1 to sequence_length
  int32_t shard = 0;
};

/// Whether there is such a run of tokens.
bool lies_within(const PackSegment& segment, std::span<const Shard> shards);

/// The index, open for reading. Const calls may come from any thread, each with its own scratch.
/// What the file of a pack index begins with.
inline constexpr std::string_view kPackMagic = "plm-pack";

class PackIndex {
 public:
  /// What an index of these shards with these options is called: its name in a cache folder, and a
  /// checkpoint's proof of having seen the same data.
  static uint64_t key(std::span<const Shard> shards, const PackOptions& options);
  /// Packs, and writes the index to `path`, whole or not at all. Memory: 52 bytes a piece of the window, 4 a
  /// token of T, 2 MiB. Determinism: a pure function of the shards' contents, their order and the options.
  /// Errors: kInvalidArgument where shards have different vocabularies, naming both; kBadData; kIo.
  static Result<PackReport> build(std::span<const Shard> shards, const PackOptions& options,
                                  const std::string& path);
  /// Packs without writing anything, and counts how long the sequences become. Errors: as build.
  static Status count_lengths(std::span<const Shard> shards, const PackOptions& options,
                              LengthCounts& lengths);
  /// Opens and checks all of it in bounded memory. Errors: kBadData where it is damaged or not of these
  /// shards and options; kIo.
  static Result<PackIndex> open(const std::string& path, std::span<const Shard> shards,
                                const PackOptions& options);
  /// The index in `cache_folder` (which is created), built where it is missing or damaged.
  static Result<PackIndex> open_or_build(std::span<const Shard> shards, const PackOptions& options,
                                         const std::string& cache_folder);

  /// What an index says of itself, every block of it checked, without its shards. Errors: as open.
  static Result<PackReport> read_report(const std::string& path);

  [[nodiscard]] const PackReport& report() const { return report_; }
  [[nodiscard]] uint64_t key() const { return key_; }
  [[nodiscard]] const std::string& path() const { return file_.path(); }

  /// As plimsoll::keep_within.
  Status keep_within(int64_t& room) { return plimsoll::io::keep_within(file_, room); }

  /// The range of segments of sequence `index`, at least one. `scratch`: kScratchBytes. Errors: kBadData,
  /// kIo.
  struct Range {
    int64_t begin = 0, end = 0;
  };
  Result<Range> segments_of(int64_t index, std::span<std::byte> scratch) const;
  /// Segments [first, …), as many as lie in one block and fit `out`; returns how many. Errors: as above.
  Result<int64_t> read_segments(int64_t first, std::span<PackSegment> out,
                                std::span<std::byte> scratch) const;
  static constexpr int64_t kScratchBytes = 8 + 512 * 8;

 private:
  PackIndex(io::ReadFile file, uint64_t key, const PackReport& report, const shard::TableLayout& segments,
            const shard::TableLayout& sequences)
      : file_(std::move(file)), key_(key), report_(report), segments_(segments), sequences_(sequences) {}
  static Result<PackIndex> open_unchecked(const std::string& path);
  /// `shards`: null where they are not at hand.
  Status check(const std::span<const Shard>* shards) const;
  io::ReadFile file_;
  uint64_t key_ = 0;
  PackReport report_;
  shard::TableLayout segments_, sequences_;
};

}  // namespace plimsoll::datasets
