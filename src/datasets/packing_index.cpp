// A pack index open for reading.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "datasets/packing.h"
#include "datasets/packing_file.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

using namespace packing;
using shard::load_u32;
using shard::load_u64;
using shard::read_table_block;

constexpr size_t kEndEntry = 8;

/// Entries [first, …) of one block whose sum has been checked: nothing else of it is read.
Status read_entries(const io::ReadFile& file, const shard::TableLayout& table, int64_t first,
                    std::span<std::byte> out) {
  const int64_t block = table.block_of(first), inside = first - block * table.entries_per_block;
  return file.read_at(table.offset + block * table.block_bytes() + 8 + inside * table.entry_bytes, out);
}

Error damaged_index(const std::string& path, std::string_view what) {
  return {ErrorCode::kBadData, fmt::format("the pack index is damaged: {}", what), path,
          "remove the file: it is made again"};
}

PackSegment segment_at(const std::byte* entry) {
  return {.begin = static_cast<int64_t>(load_u64(entry)),
          .length = static_cast<int32_t>(load_u32(entry + 8)),
          .shard = static_cast<int32_t>(load_u32(entry + 12))};
}

}  // namespace

bool lies_within(const PackSegment& segment, std::span<const Shard> shards) {
  if (segment.shard < 0 || static_cast<size_t>(segment.shard) >= shards.size()) return false;
  const int64_t tokens = shards[static_cast<size_t>(segment.shard)].info().num_tokens;
  return segment.length > 0 && segment.begin >= 0 && segment.begin <= tokens - segment.length;
}

Result<PackIndex> PackIndex::open_unchecked(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  if (file.size_bytes() < kPackHeaderBytes) return damaged_index(path, "it is shorter than its header");
  std::array<std::byte, kPackHeaderBytes> bytes;
  PLIMSOLL_TRY(file.read_at(0, bytes));
  auto header = parse_header(bytes, file.size_bytes());
  if (!header) return std::move(header).error().at(path);
  return PackIndex(std::move(file), header->key, header->report, segments_layout(header->report),
                   sequences_layout(header->report));
}

Result<PackIndex> PackIndex::open(const std::string& path, std::span<const Shard> shards,
                                  const PackOptions& options) {
  PLIMSOLL_ASSIGN(PackIndex index, open_unchecked(path));
  if (index.key() != key(shards, options))
    return Error{ErrorCode::kBadData, "the pack index belongs to other shards or options", path,
                 "remove the file: it is made again"};
  PLIMSOLL_TRY(index.check(&shards));
  return index;
}

Result<PackReport> PackIndex::read_report(const std::string& path) {
  PLIMSOLL_ASSIGN(const PackIndex index, open_unchecked(path));
  PLIMSOLL_TRY(index.check(nullptr));
  return index.report();
}

Result<PackIndex> PackIndex::open_or_build(std::span<const Shard> shards, const PackOptions& options,
                                           const std::string& cache_folder) {
  const std::string path = fmt::format("{}/{}.pack", cache_folder, io::checksum_text(key(shards, options)));
  std::error_code code;
  if (std::filesystem::exists(path, code)) {
    auto index = open(path, shards, options);
    if (index || index.error().code != ErrorCode::kBadData) return index;
  }
  PLIMSOLL_TRY(io::create_writable_directory(cache_folder));
  PLIMSOLL_TRY(build(shards, options, path));
  return open(path, shards, options);
}

Status PackIndex::check(const std::span<const Shard>* shards) const {
  std::vector<std::byte> sequence_buffer(static_cast<size_t>(sequences_.block_bytes()));
  std::vector<std::byte> segment_buffer(static_cast<size_t>(segments_.block_bytes()));
  std::span<const std::byte> segments;
  int64_t at = 0, tokens = 0;
  const auto check_sequence = [&](int64_t end) -> Status {
    int64_t length = 0;
    for (; at < end; ++at) {
      const int64_t inside = at % segments_.entries_per_block;
      if (inside == 0) {
        PLIMSOLL_ASSIGN(
            segments, read_table_block(file_, segments_, segments_.block_of(at), "segments", segment_buffer));
      }
      const PackSegment segment = segment_at(segments.data() + inside * segments_.entry_bytes);
      if (shards != nullptr && !lies_within(segment, *shards))
        return damaged_index(path(), fmt::format("segment {} lies outside of its shard", at));
      length += segment.length;
    }
    tokens += length;
    return length <= report_.sequence_length ? Status(Ok{}) : damaged_index(path(), "a sequence is too long");
  };
  for (int64_t block = 0; block < sequences_.num_blocks(); ++block) {
    PLIMSOLL_ASSIGN(const auto ends,
                    read_table_block(file_, sequences_, block, "sequences", sequence_buffer));
    for (size_t s = 0; s < ends.size(); s += static_cast<size_t>(sequences_.entry_bytes)) {
      const uint64_t end = load_u64(ends.data() + s);
      if (end <= static_cast<uint64_t>(at) || end > static_cast<uint64_t>(report_.num_segments))
        return damaged_index(path(), "its sequences are out of order");
      PLIMSOLL_TRY(check_sequence(static_cast<int64_t>(end)));
    }
  }
  if (at != report_.num_segments || tokens != report_.num_tokens)
    return damaged_index(path(), "its sequences do not add up to its counts");
  return Ok{};
}

// All blocks were checked when the index was opened, so entries alone are read; what cannot be is told.
Result<PackIndex::Range> PackIndex::segments_of(int64_t index, std::span<std::byte> /*scratch*/) const {
  PLIMSOLL_CHECK(index >= 0 && index < report_.num_sequences, "a sequence outside of the index");
  if (report_.num_segments == report_.num_sequences) return Range{index, index + 1};
  std::array<std::byte, 2 * kEndEntry> ends = {};  // of the sequence before, of this one
  const std::span<std::byte> before = std::span(ends).first(kEndEntry), own = std::span(ends).last(kEndEntry);
  if (index > 0 && sequences_.block_of(index - 1) == sequences_.block_of(index)) {
    PLIMSOLL_TRY(read_entries(file_, sequences_, index - 1, ends));
  } else {
    if (index > 0) PLIMSOLL_TRY(read_entries(file_, sequences_, index - 1, before));
    PLIMSOLL_TRY(read_entries(file_, sequences_, index, own));
  }
  const uint64_t begin = load_u64(before.data()), end = load_u64(own.data());
  if (begin >= end || end > static_cast<uint64_t>(report_.num_segments))
    return damaged_index(path(), "its sequences are out of order");
  return Range{static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

Result<int64_t> PackIndex::read_segments(int64_t first, std::span<PackSegment> out,
                                         std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(first >= 0 && first < report_.num_segments, "a segment outside of the index");
  const int64_t inside = first % segments_.entries_per_block;
  const int64_t held = std::min(segments_.entries_per_block - inside, report_.num_segments - first);
  const int64_t count = std::min(held, static_cast<int64_t>(out.size()));
  const auto entries = scratch.first(static_cast<size_t>(count * segments_.entry_bytes));
  PLIMSOLL_TRY(read_entries(file_, segments_, first, entries));
  for (int64_t i = 0; i < count; ++i)
    out[static_cast<size_t>(i)] = segment_at(entries.data() + i * segments_.entry_bytes);
  return count;
}

}  // namespace plimsoll::datasets
