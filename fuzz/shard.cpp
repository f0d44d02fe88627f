// Token shards and pack indices. Checksums would stop nearly every input at the door, so that the first byte
// says which of them are made to fit: what lies behind them has to hold by itself. A file that is accepted
// reads as a slow decoder reads it; one that verifies is written again with the same documents.
#include "datasets/shard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "allocation_bound.h"
#include "base/check.h"
#include "datasets/packed_dataset.h"
#include "datasets/packing_file.h"
#include "datasets/shard_header.h"
#include "io/checksum.h"
#include "memory_file.h"

namespace {

using namespace plimsoll;
using namespace plimsoll::datasets;
using io::checksum;

constexpr uint8_t kFitHeader = 1, kFitBlocks = 2, kIsIndex = 4;

/// Sets the checksum of the block [begin, begin + bytes) where that lies within the file.
void fit_block(std::span<std::byte> file, int64_t begin, int64_t bytes) {
  if (bytes <= 8 || begin < 0 || bytes > static_cast<int64_t>(file.size()) - begin) return;
  const auto block = file.subspan(static_cast<size_t>(begin), static_cast<size_t>(bytes));
  shard::store_u64(block.data(), checksum(block.subspan(8)));
}

void fit_table(std::span<std::byte> file, const shard::TableLayout& table) {
  for (int64_t b = 0; b < table.num_blocks() && table.offset < static_cast<int64_t>(file.size()); ++b)
    fit_block(file, table.offset + b * table.block_bytes(),
              8 + table.entry_bytes *
                      std::min(table.entries_per_block, table.num_entries - b * table.entries_per_block));
}

void fit_header(std::span<std::byte> file, size_t header_bytes) {
  if (file.size() >= header_bytes)
    shard::store_u64(file.data() + header_bytes - 8, checksum(file.first(header_bytes - 8)));
}

void fit_shard(std::span<std::byte> file) {
  if (file.size() < shard::kHeaderBytes) return;
  const auto info = shard::parse_header(file.first<shard::kHeaderBytes>(), static_cast<int64_t>(file.size()));
  if (!info) return;
  const int64_t whole = shard::block_size(*info, kShardBlockTokens);
  for (int64_t at = 0; at < info->num_tokens; at += kShardBlockTokens)
    fit_block(file, shard::kHeaderBytes + at / kShardBlockTokens * whole,
              shard::block_size(*info, std::min(kShardBlockTokens, info->num_tokens - at)));
  fit_table(file, shard::documents_layout(*info));
}

struct Tokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> in_loss;
};

Tokens read_all(const Shard& shard, bool& ok) {
  const auto count = static_cast<size_t>(shard.info().num_tokens);
  Tokens tokens{std::vector<int32_t>(count), std::vector<uint8_t>(count)};
  std::vector<std::byte> scratch(static_cast<size_t>(shard.block_bytes()));
  const auto status = shard.read(0, tokens.ids, tokens.in_loss, scratch);
  PLIMSOLL_CHECK(status || status.error().code == ErrorCode::kBadData);
  ok = status.ok();
  return tokens;
}

/// What stands in the file, bit by bit.
void compare_slowly(const Shard& shard, std::span<const std::byte> file, const Tokens& tokens) {
  const ShardInfo& info = shard.info();
  for (int64_t t = 0; t < info.num_tokens; ++t) {
    const int64_t block = t / kShardBlockTokens, inside = t % kShardBlockTokens;
    const int64_t held = std::min(kShardBlockTokens, info.num_tokens - block * kShardBlockTokens);
    const std::byte* at = file.data() + 128 + block * shard.block_bytes() + 8;
    uint32_t id = 0;
    for (int b = 0; b < info.id_bytes; ++b)
      id |= std::to_integer<uint32_t>(at[inside * info.id_bytes + b]) << (8 * b);
    const std::byte* mask = at + held * info.id_bytes;
    const unsigned bit =
        info.has_mask ? std::to_integer<unsigned>(mask[inside / 8]) >> (inside % 8) & 1U : 1U;
    const auto i = static_cast<size_t>(t);
    PLIMSOLL_CHECK(static_cast<uint32_t>(tokens.ids[i]) == id && id < info.vocab_size, "another id");
    PLIMSOLL_CHECK(tokens.in_loss[i] == bit, "another mask");
  }
}

/// Written again: the same documents, hashes and targets.
void write_again(const Shard& shard, const Tokens& tokens) {
  static const std::string path =
      (std::filesystem::exists("/dev/shm") ? std::filesystem::path("/dev/shm")
                                           : std::filesystem::temp_directory_path()) /
      ("plimsoll-fuzz-" + std::to_string(::getpid()) + ".shard");
  const ShardInfo& info = shard.info();
  auto writer = ShardWriter::create(path, {info.vocab_size, info.vocabulary_hash, info.has_mask});
  PLIMSOLL_CHECK(writer.ok());
  const auto status = shard.visit_documents([&](const ShardDocument& d) -> Status {
    const auto from = static_cast<size_t>(d.begin), count = static_cast<size_t>(d.num_tokens());
    return writer->add(std::span(tokens.ids).subspan(from, count),
                       std::span(tokens.in_loss).subspan(from, info.has_mask ? count : 0));
  });
  PLIMSOLL_CHECK(status.ok());
  const auto again = writer->finish();
  ::unlink(path.c_str());
  PLIMSOLL_CHECK(again.ok());
  PLIMSOLL_CHECK(again->num_documents == info.num_documents && again->num_tokens == info.num_tokens &&
                     again->num_targets == info.num_targets && again->file_bytes == info.file_bytes,
                 "another shard");
}

void run_shard(const MemoryFile& memory, std::span<const std::byte> file) {
  memory.hold(file);
  const AllocationBound bound;
  const auto shard = Shard::open(memory.path());
  bound.check(file.size(), static_cast<size_t>(Shard::kDocumentScratchBytes));
  if (!shard) {
    PLIMSOLL_CHECK(shard.error().code == ErrorCode::kBadData && !shard.error().what.empty());
    return;
  }
  bool readable = false;
  const Tokens tokens = read_all(*shard, readable);
  const auto verified = shard->verify();
  PLIMSOLL_CHECK(verified || verified.error().code == ErrorCode::kBadData);
  PLIMSOLL_CHECK(readable || !verified, "verified and not readable");
  if (readable) compare_slowly(*shard, file, tokens);
  if (verified) write_again(*shard, tokens);
}

/// Three shards of a few documents that all indices are about.
std::vector<Shard> known_shards() {
  const std::string path =
      std::filesystem::temp_directory_path() / ("plimsoll-fuzz-" + std::to_string(::getpid()) + ".known");
  std::vector<Shard> shards;
  for (const int32_t length : {3, 20, 300}) {
    auto writer = ShardWriter::create(path, {.vocab_size = 400});
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < length; ++i) ids.push_back(i);
    for (int i = 0; i < 4; ++i) PLIMSOLL_CHECK(writer && writer->add(ids, {}).ok());
    PLIMSOLL_CHECK(writer->finish().ok());
    shards.push_back(*Shard::open(path));
    ::unlink(path.c_str());
  }
  return shards;
}

void run_index(const MemoryFile& memory, std::span<std::byte> file, uint8_t mode) {
  static const std::vector<Shard> shards = known_shards();
  static const PackOptions options = {.sequence_length = 64};
  if (file.size() >= packing::kPackHeaderBytes && (mode & kFitHeader) != 0) {
    shard::store_u64(file.data() + 16, PackIndex::key(shards, options));
    fit_header(file, packing::kPackHeaderBytes);
    const auto header =
        packing::parse_header(file.first<packing::kPackHeaderBytes>(), static_cast<int64_t>(file.size()));
    if (header && (mode & kFitBlocks) != 0) {
      fit_table(file, packing::segments_layout(header->report));
      fit_table(file, packing::sequences_layout(header->report));
    }
  }
  memory.hold(file);
  const AllocationBound bound;
  const auto index = PackIndex::open(memory.path(), shards, options);
  bound.check(file.size(), static_cast<size_t>(2 * PackIndex::kScratchBytes));
  if (!index) return;
  std::array<std::byte, PackIndex::kScratchBytes> scratch;
  int64_t tokens = 0, at = 0;
  for (int64_t s = 0; s < index->report().num_sequences; ++s) {
    const auto range = index->segments_of(s, scratch);
    PLIMSOLL_CHECK(range && range->begin == at && range->end > at);
    while (at < range->end) {
      std::array<PackSegment, 16> segments;
      const auto most = static_cast<size_t>(std::min<int64_t>(range->end - at, 16));
      const auto read = index->read_segments(at, std::span(segments).first(most), scratch);
      PLIMSOLL_CHECK(read && *read > 0);
      for (int64_t i = 0; i < *read; ++i) {
        PLIMSOLL_CHECK(lies_within(segments[static_cast<size_t>(i)], shards));
        tokens += segments[static_cast<size_t>(i)].length;
      }
      at += *read;
    }
  }
  PLIMSOLL_CHECK(at == index->report().num_segments && tokens == index->report().num_tokens);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile memory;
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> file(bytes.begin() + 1, bytes.end());
  const uint8_t mode = data[0];
  if ((mode & kIsIndex) != 0) {
    run_index(memory, file, mode);
    return 0;
  }
  if ((mode & kFitHeader) != 0) fit_header(file, shard::kHeaderBytes);
  if ((mode & kFitBlocks) != 0) fit_shard(file);
  run_shard(memory, file);
  return 0;
}
