// Reading: whole blocks through the caller's scratch, each checked before a token of it is believed. Checking
// a block of 4096 ids takes 1.4 us, reading it from the page cache 1.0 us (Xeon, 2 CPUs, busy), and a
// sequence is packed of some pieces in as many blocks. So a run remembers what it has checked.
#include "datasets/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "datasets/shard_header.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

using namespace shard;

Error damaged(const std::string& path, std::string what) {
  return {ErrorCode::kBadData, "the shard is damaged: " + std::move(what), path,
          "make the shard again from its text, and check the disk"};
}

/// Ids that are converted at once: compilers turn loops of a known length into vectors.
constexpr size_t kAtOnce = 32;

/// ids.size() ids from `from`; the largest, negative ones as huge.
template <typename T>
uint32_t convert_ids(const std::byte* from, std::span<int32_t> ids) {
  std::array<T, kAtOnce> largest{};
  std::array<T, kAtOnce> some{};
  const auto convert = [&](size_t at, size_t count) {
    std::memcpy(some.data(), from + at * sizeof(T), count * sizeof(T));
    for (size_t i = 0; i < kAtOnce; ++i) largest[i] = std::max(largest[i], some[i]);
  };
  size_t at = 0;
  for (; at + kAtOnce <= ids.size(); at += kAtOnce) {
    convert(at, kAtOnce);
    int32_t* to = ids.data() + at;
    for (size_t i = 0; i < kAtOnce; ++i) to[i] = static_cast<int32_t>(some[i]);
  }
  some = {};
  convert(at, ids.size() - at);
  for (size_t i = at; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(some[i - at]);
  return *std::max_element(largest.begin(), largest.end());
}

/// A byte's bits as eight bytes, the lowest first.
uint64_t spread(std::byte bits) {
  constexpr uint64_t kEach = 0x0101010101010101, kOneOfEach = 0x8040201008040201;
  const uint64_t one = kEach * std::to_integer<uint64_t>(bits) & kOneOfEach;  // bit i of byte i
  return (one + 0x7f * kEach) >> 7 & kEach;
}

/// From bit `first` of `mask` on, first < 8.
void unpack_bits(const std::byte* mask, int64_t first, std::span<uint8_t> in_loss) {
  const auto some = [&](size_t skipped, size_t count) {
    const uint64_t bytes = spread(*mask++) >> (8 * skipped);
    std::memcpy(in_loss.data(), &bytes, count);
    in_loss = in_loss.subspan(count);
  };
  if (in_loss.empty()) return;
  if (first > 0) some(static_cast<size_t>(first), std::min(in_loss.size(), static_cast<size_t>(8 - first)));
  while (in_loss.size() >= 8) some(0, 8);  // of a known length: one move
  if (!in_loss.empty()) some(0, in_loss.size());
}

ShardDocument document_at(const std::byte* entry, int64_t begin) {
  return {.begin = begin,
          .end = static_cast<int64_t>(load_u64(entry)),
          .hash = load_u64(entry + 8),
          .num_targets = static_cast<int64_t>(load_u64(entry + 16))};
}

}  // namespace

bool is_shard(const std::string& path) {
  const auto file = io::ReadFile::open(path);
  std::array<char, kShardMagic.size()> magic;
  return file && file->size_bytes() >= kHeaderBytes &&
         file->read_at(0, std::as_writable_bytes(std::span(magic))) &&
         std::string_view(magic.data(), magic.size()) == kShardMagic;
}

Result<Shard> Shard::open(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  if (file.size_bytes() < kHeaderBytes)
    return Error{ErrorCode::kBadData, "the file is no token shard", path,
                 "shards come from plimsoll data tokenize"};
  std::array<std::byte, kHeaderBytes> header;
  PLIMSOLL_TRY(file.read_at(0, header));
  auto info = parse_header(header, file.size_bytes());
  if (!info) return std::move(info).error().at(path);
  Shard shard(std::move(file), *info, documents_layout(*info));
  PLIMSOLL_TRY(shard.check_documents());
  return shard;
}

int64_t Shard::block_bytes() const { return block_size(info_, kShardBlockTokens); }

Status Shard::check_documents() const {
  int64_t targets = 0, end = 0, number = 0;
  PLIMSOLL_TRY(visit_documents([&](const ShardDocument& d) -> Status {
    const bool in_order = d.end > d.begin && d.end <= info_.num_tokens;
    // Compared as counts of tokens, which are far from overflow.
    if (!in_order || d.num_targets < 0 || d.num_targets >= d.num_tokens() ||
        (!info_.has_mask && d.num_targets != d.num_tokens() - 1))
      return damaged(path(), fmt::format("document {} has impossible bounds or counts", number));
    targets += d.num_targets;
    end = d.end;
    ++number;
    return Ok{};
  }));
  if (end != info_.num_tokens || targets != info_.num_targets)
    return damaged(path(), "its documents do not add up to its counts");
  return Ok{};
}

Status Shard::visit_documents(const std::function<Status(const ShardDocument&)>& visit) const {
  std::vector<std::byte> buffer(static_cast<size_t>(kDocumentScratchBytes));
  int64_t begin = 0;
  for (int64_t block = 0; block < documents_.num_blocks(); ++block) {
    PLIMSOLL_ASSIGN(const auto entries, read_table_block(file_, documents_, block, "documents", buffer));
    for (size_t at = 0; at < entries.size(); at += kDocumentBytes) {
      const ShardDocument document = document_at(entries.data() + at, begin);
      PLIMSOLL_TRY(visit(document));
      begin = document.end;
    }
  }
  return Ok{};
}

Status Shard::read_documents(int64_t first, std::span<ShardDocument> out,
                             std::span<std::byte> scratch) const {
  const auto count = static_cast<int64_t>(out.size());
  PLIMSOLL_CHECK(first >= 0 && count <= info_.num_documents - first, "documents outside of the shard");
  int64_t begin = 0;
  const int64_t from = std::max<int64_t>(first - 1, 0);  // whose end is the first one's begin
  for (int64_t at = from; at < first + count;) {
    const int64_t block = documents_.block_of(at);
    PLIMSOLL_ASSIGN(const auto entries, read_table_block(file_, documents_, block, "documents", scratch));
    const int64_t stop = std::min(first + count, (block + 1) * kDocumentsPerBlock);
    for (; at < stop; ++at) {
      const ShardDocument document =
          document_at(entries.data() + (at % kDocumentsPerBlock) * kDocumentBytes, begin);
      if (at >= first) out[static_cast<size_t>(at - first)] = document;
      begin = document.end;
    }
  }
  return Ok{};
}

Status Shard::read_blocks(int64_t first_block, int64_t end_block, std::span<std::byte> out) const {
  const int64_t held =
      std::min(end_block * kShardBlockTokens, info_.num_tokens) - first_block * kShardBlockTokens;
  const int64_t whole = held / kShardBlockTokens, rest = held % kShardBlockTokens;
  const int64_t bytes = whole * block_bytes() + (rest > 0 ? block_size(info_, rest) : 0);
  out = out.first(static_cast<size_t>(bytes));
  PLIMSOLL_TRY(file_.read_at(kHeaderBytes + first_block * block_bytes(), out));
  for (int64_t block = first_block; block < end_block; ++block) {
    const std::span<std::byte> content = out.first(std::min(out.size(), static_cast<size_t>(block_bytes())));
    out = out.subspan(content.size());
    if (io::checksum(content.subspan(8)) == load_u64(content.data())) {
      checked_.add(block);
      continue;
    }
    const int64_t begin = block * kShardBlockTokens;
    return damaged(path(), fmt::format("block {} (tokens {} to {}) does not match its checksum", block, begin,
                                       std::min(begin + kShardBlockTokens, info_.num_tokens) - 1));
  }
  return Ok{};
}

int64_t Shard::num_blocks() const { return ceil_div(info_.num_tokens, kShardBlockTokens); }

int64_t Shard::tokens_of(int64_t block) const {
  return std::min(kShardBlockTokens, info_.num_tokens - block * kShardBlockTokens);
}

int64_t Shard::remember_checked(int64_t most_bytes) {
  const int64_t count = std::min(num_blocks(), most_bytes / 8 * 64);
  checked_ = CheckedBlocks(count);
  return CheckedBlocks::bytes(count);
}

Status Shard::decode(const std::byte* stored, const std::byte* mask, int64_t begin, std::span<int32_t> ids,
                     std::span<uint8_t> in_loss) const {
  const uint32_t largest =
      info_.id_bytes == 2 ? convert_ids<uint16_t>(stored, ids) : convert_ids<uint32_t>(stored, ids);
  if (largest >= info_.vocab_size) {
    const auto at = std::find_if(ids.begin(), ids.end(),
                                 [&](int32_t id) { return static_cast<uint32_t>(id) >= info_.vocab_size; });
    return damaged(path(),
                   fmt::format("id {} of token {} is not in the vocabulary of {}", static_cast<uint32_t>(*at),
                               begin + (at - ids.begin()), info_.vocab_size));
  }
  if (info_.has_mask)
    unpack_bits(mask, begin % kShardBlockTokens % 8, in_loss);
  else
    std::fill(in_loss.begin(), in_loss.end(), uint8_t{1});
  return Ok{};
}

Status Shard::read_part(int64_t begin, std::span<int32_t> ids, std::span<uint8_t> in_loss,
                        std::span<std::byte> scratch) const {
  const int64_t block = begin / kShardBlockTokens, inside = begin % kShardBlockTokens;
  const int64_t content = kHeaderBytes + block * block_bytes() + 8;
  const auto stored = scratch.first(ids.size() * static_cast<size_t>(info_.id_bytes));
  PLIMSOLL_TRY(file_.read_at(content + inside * info_.id_bytes, stored));
  std::span<std::byte> mask;
  if (info_.has_mask && !in_loss.empty()) {
    const int64_t end = inside + static_cast<int64_t>(ids.size());
    mask = scratch.subspan(stored.size()).first(static_cast<size_t>(ceil_div(end, 8) - inside / 8));
    PLIMSOLL_TRY(file_.read_at(content + tokens_of(block) * info_.id_bytes + inside / 8, mask));
  }
  return decode(stored.data(), mask.data(), begin, ids, in_loss);
}

Status Shard::read(int64_t begin, std::span<int32_t> ids, std::span<uint8_t> in_loss,
                   std::span<std::byte> scratch) const {
  PLIMSOLL_CHECK(begin >= 0 && static_cast<int64_t>(ids.size()) <= info_.num_tokens - begin,
                 "tokens outside of the shard");
  PLIMSOLL_CHECK(in_loss.empty() || in_loss.size() == ids.size(), "a mask of another length");
  const int64_t room = static_cast<int64_t>(scratch.size()) / block_bytes();
  PLIMSOLL_CHECK(room > 0, "scratch smaller than a block");
  const int64_t end = begin + static_cast<int64_t>(ids.size());
  int64_t read_from = 0, read_to = 0;  // blocks in scratch
  for (int64_t at = begin; at < end;) {
    const int64_t block = at / kShardBlockTokens, inside = at % kShardBlockTokens;
    const auto count = static_cast<size_t>(std::min(end, (block + 1) * kShardBlockTokens) - at);
    const std::span<int32_t> some = ids.first(count);
    const std::span<uint8_t> some_in_loss = in_loss.empty() ? in_loss : in_loss.first(count);
    if (block >= read_to && checked_.contains(block)) {
      PLIMSOLL_TRY(read_part(at, some, some_in_loss, scratch));
    } else {
      if (block >= read_to) {
        read_from = block;
        read_to = std::min(block + room, ceil_div(end, kShardBlockTokens));
        PLIMSOLL_TRY(read_blocks(read_from, read_to, scratch));
      }
      const std::byte* content = scratch.data() + (block - read_from) * block_bytes() + 8;
      PLIMSOLL_TRY(decode(content + inside * info_.id_bytes,
                          content + tokens_of(block) * info_.id_bytes + inside / 8, at, some, some_in_loss));
    }
    ids = ids.subspan(count);
    if (!in_loss.empty()) in_loss = in_loss.subspan(count);
    at += static_cast<int64_t>(count);
  }
  return Ok{};
}

}  // namespace plimsoll::datasets
