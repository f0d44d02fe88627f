// The first 128 bytes of a shard, and where everything else lies by them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "datasets/shard.h"

namespace plimsoll::datasets::shard {

inline constexpr int64_t kHeaderBytes = 128;
inline constexpr int64_t kDocumentBytes = 24;  ///< end, hash, targets
inline constexpr int64_t kDocumentsPerBlock = 512;
inline constexpr int64_t kWideVocabulary = 65'536;  ///< above, ids take 4 bytes
inline constexpr int64_t kMaxTokens = int64_t{1} << 48;

/// Bytes of a block that holds `tokens` of them.
int64_t block_size(const ShardInfo& info, int64_t tokens);
/// The table of documents behind the last block.
TableLayout documents_layout(const ShardInfo& info);

/// Over the checksums of all blocks and those of all blocks of the table of documents.
uint64_t content_hash(uint64_t blocks_hash, uint64_t documents_hash);

std::array<std::byte, kHeaderBytes> format_header(const ShardInfo& info);
/// Errors: kBadData for anything but a header of this version whose figures agree with each other and with
/// the file's length. `where` is left to the caller.
Result<ShardInfo> parse_header(std::span<const std::byte, kHeaderBytes> bytes, int64_t file_bytes);

}  // namespace plimsoll::datasets::shard
