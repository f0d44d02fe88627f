// Reads a shard whole: every block against its checksum, all of them against the header, and each document's
// hash and targets against its tokens.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "datasets/shard.h"
#include "datasets/shard_header.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

using namespace shard;

constexpr int64_t kBlocksAtOnce = 16;

Error wrong(const Shard& shard, std::string what) {
  return {ErrorCode::kBadData, "the shard is damaged: " + std::move(what), shard.path(),
          "make the shard again from its text"};
}

/// The tokens that are being looked at, whole blocks of them, front to back.
struct Window {
  explicit Window(const Shard& shard_in)
      : shard(shard_in),
        ids(static_cast<size_t>(std::min(kBlocksAtOnce * kShardBlockTokens, shard.info().num_tokens))),
        in_loss(ids.size()) {
    const size_t blocks = (ids.size() + kShardBlockTokens - 1) / kShardBlockTokens;
    scratch.resize(std::max<size_t>(blocks, 1) * static_cast<size_t>(shard.block_bytes()));
  }

  /// The next blocks.
  Status fill() {
    begin = end;
    const int64_t count = std::min(static_cast<int64_t>(ids.size()), shard.info().num_tokens - begin);
    const auto size = static_cast<size_t>(count);
    PLIMSOLL_TRY(shard.read(begin, std::span(ids).first(size), std::span(in_loss).first(size), scratch));
    for (int64_t b = 0; b * kShardBlockTokens < count; ++b)
      blocks_hash.add(std::span(scratch).subspan(static_cast<size_t>(b * shard.block_bytes()), 8));
    end = begin + count;
    return Ok{};
  }

  const Shard& shard;
  std::vector<int32_t> ids;
  std::vector<uint8_t> in_loss;
  std::vector<std::byte> scratch;
  int64_t begin = 0, end = 0;
  io::Checksum blocks_hash;
};

}  // namespace

Status Shard::verify() const {
  Window window(*this);
  io::Checksum hash;
  int64_t number = 0;
  const auto check = [&](const ShardDocument& d) -> Status {
    hash.reset();
    int64_t targets = 0;
    for (int64_t at = d.begin; at < d.end;) {
      if (at == window.end) PLIMSOLL_TRY(window.fill());
      const auto from = static_cast<size_t>(at - window.begin);
      const auto count = static_cast<size_t>(std::min(d.end, window.end) - at);
      const std::span<const uint8_t> in_loss = std::span(window.in_loss).subspan(from, count);
      hash.add(std::as_bytes(std::span(window.ids).subspan(from, count)));
      targets += std::count(in_loss.begin(), in_loss.end(), uint8_t{1});
      if (at == d.begin) targets -= in_loss[0];
      at += static_cast<int64_t>(count);
    }
    if (hash.value() != d.hash || targets != d.num_targets)
      return wrong(*this, fmt::format("document {} is not the one in its table", number));
    ++number;
    return Ok{};
  };
  PLIMSOLL_TRY(visit_documents(check));
  return check_content(window.blocks_hash.value());
}

Status Shard::check_content(uint64_t blocks_hash) const {
  std::vector<std::byte> buffer(static_cast<size_t>(documents_.block_bytes()));
  io::Checksum documents_hash;
  for (int64_t block = 0; block < documents_.num_blocks(); ++block) {
    PLIMSOLL_TRY(read_table_block(file_, documents_, block, "documents", buffer));
    documents_hash.add(std::span(buffer).first(8));
  }
  if (content_hash(blocks_hash, documents_hash.value()) != info_.content_hash)
    return wrong(*this, "its blocks are not those that the header was written for");
  return Ok{};
}

}  // namespace plimsoll::datasets
