// Token shards: the documents of a data set as ids, with the bits that say which tokens count in the loss.
// One file, written front to back in little memory, read by position through the caller's buffers, every byte
// under a checksum. docs/data-format.md has it byte by byte.
//
//   header | block | block | … | documents
//            └ checksum, 4096 ids (2 or 4 bytes each), 4096 bits of mask where there is one
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "datasets/checked_blocks.h"
#include "datasets/shard_table.h"
#include "io/file.h"

namespace plimsoll::datasets {

inline constexpr int64_t kShardBlockTokens = 4096;
/// Blocks that a dataset reads of a shard at once, at most.
inline constexpr int64_t kMostBlocksOfARead = 16;
inline constexpr std::string_view kShardMagic = "plmshard";  ///< a shard's first 8 bytes

/// What the header says.
struct ShardInfo {
  int64_t vocab_size = 0;        ///< ids are below it
  uint64_t vocabulary_hash = 0;  ///< Tokenizer::vocabulary_hash; 0: not known
  int64_t num_tokens = 0;
  int64_t num_documents = 0;
  int64_t num_targets = 0;  ///< tokens in the loss that are not the first of their document
  bool has_mask = false;    ///< without one every token is in the loss
  int id_bytes = 2;         ///< 2 where vocab_size is at most 65,536, else 4
  int64_t file_bytes = 0;
  uint64_t content_hash = 0;  ///< over everything but the header: same content, same number
};

/// One document of a shard: tokens [begin, end).
struct ShardDocument {
  int64_t begin = 0, end = 0;
  uint64_t hash = 0;        ///< XXH3 of its ids as little-endian int32: the same in every shard
  int64_t num_targets = 0;  ///< as ShardInfo's
  [[nodiscard]] int64_t num_tokens() const { return end - begin; }
};

struct ShardOptions {
  int64_t vocab_size = 0;  ///< 1 to 2^31 - 1
  uint64_t vocabulary_hash = 0;
  bool with_mask = false;
};

/// Writes a shard. Memory: about 1.1 MiB, however long it gets. Nothing is at `path` before `finish`, and
/// nothing is left behind without it.
class ShardWriter {
 public:
  /// Errors: kIo.
  static Result<ShardWriter> create(const std::string& path, const ShardOptions& options);
  ShardWriter(ShardWriter&&) noexcept;
  ShardWriter& operator=(ShardWriter&&) noexcept;
  ~ShardWriter();

  /// Adds a document, or a piece of one: with `continues` the next call's ids belong to the same document.
  /// `in_loss`: a byte a token, whether it counts as a target; empty: all do. A mask needs `with_mask`. A
  /// document without tokens is none. Errors: kBadData for an id outside of the vocabulary; kIo. After an
  /// error the writer can only be destroyed.
  Status add(std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues = false);
  /// Ends an open document, writes the tables, syncs, gives the file its name. Errors: kIo, then no file.
  Result<ShardInfo> finish();
  [[nodiscard]] int64_t num_tokens() const;
  [[nodiscard]] int64_t num_documents() const;

 private:
  struct State;
  explicit ShardWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A shard open for reading. Every call is const and may come from any thread, each with its own scratch.
class Shard {
 public:
  /// Checks the header, the file's length and the table of documents, block by block. Tokens are checked when
  /// they are read. Errors: kBadData for what is no shard, damaged or of another version; kIo.
  static Result<Shard> open(const std::string& path);

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] const ShardInfo& info() const { return info_; }
  /// The least scratch that `read` takes: one block. More means fewer reads of the file.
  [[nodiscard]] int64_t block_bytes() const;

  /// From now on blocks that were once read whole and fit their checksums are believed, and of them no more
  /// is read than is asked for: of as many blocks as `most_bytes` have bits for. What was taken is returned.
  int64_t remember_checked(int64_t most_bytes);

  /// As plimsoll::keep_within.
  Status keep_within(int64_t& room) { return plimsoll::io::keep_within(file_, room); }

  /// Reads tokens [begin, begin + ids.size()), and which of them are in the loss, one byte each, unless
  /// `in_loss` is empty. Every block that is touched is checked against its checksum, but for those that are
  /// remembered. Allocates nothing but the message of an error. Errors: kBadData that names the file and the
  /// token for a block that is damaged or an id outside of the vocabulary; kIo.
  Status read(int64_t begin, std::span<int32_t> ids, std::span<uint8_t> in_loss,
              std::span<std::byte> scratch) const;
  /// Documents [first, first + out.size()). `scratch`: kDocumentScratchBytes. Errors: as read.
  Status read_documents(int64_t first, std::span<ShardDocument> out, std::span<std::byte> scratch) const;
  static constexpr int64_t kDocumentScratchBytes = 8 + 512 * 24;

  /// All documents in order, through a small buffer of its own. Errors: the visitor's; as read.
  Status visit_documents(const std::function<Status(const ShardDocument&)>& visit) const;
  /// Reads every byte: checksums, ids, and of each document its hash and its targets. Errors: as read.
  Status verify() const;

 private:
  Shard(io::ReadFile file, const ShardInfo& info, const shard::TableLayout& documents)
      : file_(std::move(file)), info_(info), documents_(documents) {}
  Status check_documents() const;
  Status check_content(uint64_t blocks_hash) const;
  /// Blocks [first_block, end_block), checked.
  Status read_blocks(int64_t first_block, int64_t end_block, std::span<std::byte> out) const;
  /// ids.size() tokens from `begin` on, all within one block: `stored` are their ids and `mask` the bytes
  /// from that on in which the first one's bit lies.
  Status decode(const std::byte* stored, const std::byte* mask, int64_t begin, std::span<int32_t> ids,
                std::span<uint8_t> in_loss) const;
  /// The same of a block that is believed: what is asked for alone is read.
  Status read_part(int64_t begin, std::span<int32_t> ids, std::span<uint8_t> in_loss,
                   std::span<std::byte> scratch) const;
  [[nodiscard]] int64_t num_blocks() const;
  /// Tokens in that block.
  [[nodiscard]] int64_t tokens_of(int64_t block) const;
  io::ReadFile file_;
  ShardInfo info_;
  shard::TableLayout documents_;
  CheckedBlocks checked_;
};

/// Whether the file begins as a shard does; false too where it cannot be read.
bool is_shard(const std::string& path);

}  // namespace plimsoll::datasets
