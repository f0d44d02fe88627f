#include "datasets/shard_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/units.h"
#include "io/checksum.h"

namespace plimsoll::datasets::shard {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint32_t kMaskFlag = 1;
constexpr size_t kChecksumAt = kHeaderBytes - 8;

Error bad(std::string what) {
  return {ErrorCode::kBadData, std::move(what), {}, "make the shard again from its text"};
}

/// A count that fits what the format allows; -1 otherwise.
int64_t count_at(const std::byte* from, int64_t most) {
  const uint64_t value = load_u64(from);
  return value <= static_cast<uint64_t>(most) ? static_cast<int64_t>(value) : -1;
}

Status check_figures(const ShardInfo& info, int64_t documents_offset) {
  if (info.vocab_size < 1) return bad("the shard's vocabulary size is not between 1 and 2,147,483,647");
  if (info.id_bytes != (info.vocab_size > kWideVocabulary ? 4 : 2))
    return bad(
        fmt::format("the shard has ids of {} bytes for a vocabulary of {}", info.id_bytes, info.vocab_size));
  if (info.num_tokens < 0 || info.num_documents < 0 || info.num_targets < 0)
    return bad("the shard's counts are impossible");
  if ((info.num_tokens == 0) != (info.num_documents == 0) ||
      info.num_targets > info.num_tokens - info.num_documents)
    return bad(fmt::format("the shard's counts disagree: {} tokens, {} documents, {} targets",
                           info.num_tokens, info.num_documents, info.num_targets));
  const TableLayout documents = documents_layout(info);
  if (documents_offset != documents.offset || info.file_bytes != documents.offset + documents.size_bytes())
    return bad("the shard's sizes do not follow from its counts");
  return Ok{};
}

}  // namespace

int64_t block_size(const ShardInfo& info, int64_t tokens) {
  return 8 + tokens * info.id_bytes + (info.has_mask ? ceil_div(tokens, 8) : 0);
}

TableLayout documents_layout(const ShardInfo& info) {
  const int64_t whole = info.num_tokens / kShardBlockTokens, rest = info.num_tokens % kShardBlockTokens;
  return {.offset = kHeaderBytes + whole * block_size(info, kShardBlockTokens) +
                    (rest > 0 ? block_size(info, rest) : 0),
          .num_entries = info.num_documents,
          .entry_bytes = kDocumentBytes,
          .entries_per_block = kDocumentsPerBlock};
}

uint64_t content_hash(uint64_t blocks_hash, uint64_t documents_hash) {
  std::array<std::byte, 16> hashes;
  store_u64(hashes.data(), blocks_hash);
  store_u64(hashes.data() + 8, documents_hash);
  return io::checksum(hashes);
}

std::array<std::byte, kHeaderBytes> format_header(const ShardInfo& info) {
  std::array<std::byte, kHeaderBytes> header = {};
  std::byte* h = header.data();
  std::memcpy(h, kShardMagic.data(), kShardMagic.size());
  store_u32(h + 8, kVersion);
  store_u32(h + 12, info.has_mask ? kMaskFlag : 0);
  store_u32(h + 16, static_cast<uint32_t>(info.id_bytes));
  store_u32(h + 20, static_cast<uint32_t>(kShardBlockTokens));
  const uint64_t fields[] = {
      static_cast<uint64_t>(info.vocab_size),  info.vocabulary_hash,
      static_cast<uint64_t>(info.num_tokens),  static_cast<uint64_t>(info.num_documents),
      static_cast<uint64_t>(info.num_targets), static_cast<uint64_t>(documents_layout(info).offset),
      static_cast<uint64_t>(info.file_bytes),  info.content_hash};
  for (size_t i = 0; i < std::size(fields); ++i) store_u64(h + 24 + 8 * i, fields[i]);
  store_u64(h + kChecksumAt, io::checksum(std::span(header).first(kChecksumAt)));
  return header;
}

Result<ShardInfo> parse_header(std::span<const std::byte, kHeaderBytes> bytes, int64_t file_bytes) {
  const std::byte* h = bytes.data();
  if (std::memcmp(h, kShardMagic.data(), kShardMagic.size()) != 0)
    return Error{
        ErrorCode::kBadData, "the file is no token shard", {}, "shards come from plimsoll data tokenize"};
  if (const uint32_t version = load_u32(h + 8); version != kVersion)
    return Error{ErrorCode::kBadData,
                 fmt::format("the shard has version {}; this program reads version {}", version, kVersion),
                 {},
                 "read it with the program that wrote it, or make it again from its text"};
  if (io::checksum(bytes.first(kChecksumAt)) != load_u64(h + kChecksumAt))
    return bad("the shard's header does not match its checksum: the file is damaged");
  const uint32_t flags = load_u32(h + 12);
  if ((flags & ~kMaskFlag) != 0 || load_u32(h + 20) != kShardBlockTokens ||
      std::any_of(bytes.begin() + 88, bytes.begin() + kChecksumAt,
                  [](std::byte b) { return b != std::byte{0}; }))
    return bad("the shard uses what version 1 does not have");
  ShardInfo info;
  info.has_mask = (flags & kMaskFlag) != 0;
  info.id_bytes = static_cast<int>(load_u32(h + 16));
  info.vocab_size = count_at(h + 24, INT32_MAX);
  info.vocabulary_hash = load_u64(h + 32);
  info.num_tokens = count_at(h + 40, kMaxTokens);
  info.num_documents = count_at(h + 48, kMaxTokens);
  info.num_targets = count_at(h + 56, kMaxTokens);
  info.file_bytes = count_at(h + 72, INT64_MAX);
  info.content_hash = load_u64(h + 80);
  PLIMSOLL_TRY(check_figures(info, count_at(h + 64, INT64_MAX)));
  if (info.file_bytes != file_bytes)
    return bad(fmt::format("the file has {} bytes, the shard in it {}: it was cut or continued", file_bytes,
                           info.file_bytes));
  return info;
}

}  // namespace plimsoll::datasets::shard
