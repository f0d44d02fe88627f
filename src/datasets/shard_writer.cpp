// Writing: ids and bits collect in one block, blocks in the file's buffer; documents go to a nameless file
// until the tokens are through.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "datasets/shard.h"
#include "datasets/shard_header.h"
#include "io/checksum.h"

namespace plimsoll::datasets {
namespace {

using namespace shard;

Error outside(const std::string& path, std::span<const int32_t> ids, int64_t vocab_size, int64_t document) {
  const auto at =
      std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id < 0 || id >= vocab_size; });
  return {ErrorCode::kBadData,
          fmt::format("id {} of document {} is not in the vocabulary of {}", *at, document, vocab_size), path,
          "the ids come from another tokenizer"};
}

}  // namespace

struct ShardWriter::State {
  State(std::string path_in, SequentialFile file_in, SpillFile spill_in, const ShardOptions& options)
      : path(std::move(path_in)), file(std::move(file_in)), spill(std::move(spill_in)) {
    info.vocab_size = options.vocab_size;
    info.vocabulary_hash = options.vocabulary_hash;
    info.has_mask = options.with_mask;
    info.id_bytes = options.vocab_size > kWideVocabulary ? 4 : 2;
    block.resize(static_cast<size_t>(block_size(info, kShardBlockTokens)));
  }

  Status put(std::span<const int32_t> ids, std::span<const uint8_t> in_loss);
  Status end_block();
  Status end_document();
  Status spill_documents();

  std::string path;
  SequentialFile file;
  SpillFile spill;
  ShardInfo info;
  std::vector<std::byte> block;  // checksum, ids, mask at its place in a full block
  int64_t in_block = 0;
  TableWriter documents{kDocumentBytes, kDocumentsPerBlock};
  int64_t document_begin = 0, document_targets = 0;
  bool hash_is_streamed = false;  // a document in one piece is hashed in one go
  uint64_t whole_hash = 0;
  io::Checksum document_hash, blocks_hash, documents_hash;
};

Status ShardWriter::State::put(std::span<const int32_t> ids, std::span<const uint8_t> in_loss) {
  std::byte* const to = block.data() + 8 + in_block * info.id_bytes;
  if (info.id_bytes == 4) {
    std::memcpy(to, ids.data(), ids.size_bytes());
  } else {
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<uint16_t>(ids[i]);
      std::memcpy(to + 2 * i, &id, sizeof(id));
    }
  }
  // Which tokens are targets: those in the loss, but a document's first one has nothing before it.
  const bool first = info.num_tokens == document_begin;
  int64_t targets = static_cast<int64_t>(ids.size());
  if (!in_loss.empty())
    targets = std::count_if(in_loss.begin(), in_loss.end(), [](uint8_t b) { return b != 0; });
  if (first && (in_loss.empty() || in_loss[0] != 0)) --targets;
  if (info.has_mask) {
    std::byte* const mask = block.data() + 8 + kShardBlockTokens * info.id_bytes;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto at = static_cast<size_t>(in_block) + i;
      if (in_loss.empty() || in_loss[i] != 0) mask[at / 8] |= std::byte{1} << (at % 8);
    }
  }
  document_targets += targets;
  info.num_targets += targets;
  info.num_tokens += static_cast<int64_t>(ids.size());
  in_block += static_cast<int64_t>(ids.size());
  return in_block == kShardBlockTokens ? end_block() : Status(Ok{});
}

Status ShardWriter::State::end_block() {
  const int64_t bytes = block_size(info, in_block);
  const int64_t ids_bytes = in_block * info.id_bytes;
  // In an unfinished block the mask follows the ids that are there.
  if (info.has_mask && in_block < kShardBlockTokens)
    std::memmove(block.data() + 8 + ids_bytes, block.data() + 8 + kShardBlockTokens * info.id_bytes,
                 static_cast<size_t>(ceil_div(in_block, 8)));
  const std::span<std::byte> content = std::span(block).first(static_cast<size_t>(bytes));
  store_u64(block.data(), io::checksum(content.subspan(8)));
  blocks_hash.add(content.first(8));
  PLIMSOLL_TRY(file.append(content));
  std::fill(block.begin(), block.end(), std::byte{0});
  in_block = 0;
  return Ok{};
}

Status ShardWriter::State::end_document() {
  if (info.num_tokens == document_begin) return Ok{};
  std::byte* entry = documents.next();
  store_u64(entry, static_cast<uint64_t>(info.num_tokens));
  store_u64(entry + 8, hash_is_streamed ? document_hash.value() : whole_hash);
  store_u64(entry + 16, static_cast<uint64_t>(document_targets));
  ++info.num_documents;
  document_begin = info.num_tokens;
  document_targets = 0;
  hash_is_streamed = false;
  return documents.full() ? spill_documents() : Status(Ok{});
}

Status ShardWriter::State::spill_documents() {
  const std::span<const std::byte> taken = documents.take();
  if (taken.empty()) return Ok{};
  documents_hash.add(taken.first(8));
  return spill.append(taken);
}

ShardWriter::ShardWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ShardWriter::ShardWriter(ShardWriter&&) noexcept = default;
ShardWriter& ShardWriter::operator=(ShardWriter&&) noexcept = default;
ShardWriter::~ShardWriter() = default;
int64_t ShardWriter::num_tokens() const { return state_->info.num_tokens; }
int64_t ShardWriter::num_documents() const { return state_->info.num_documents; }

Result<ShardWriter> ShardWriter::create(const std::string& path, const ShardOptions& options) {
  PLIMSOLL_CHECK(options.vocab_size > 0 && options.vocab_size <= INT32_MAX, "a shard without a vocabulary");
  PLIMSOLL_ASSIGN(SequentialFile file, SequentialFile::create(path, kHeaderBytes));
  PLIMSOLL_ASSIGN(SpillFile spill, SpillFile::create(path));
  return ShardWriter(std::make_unique<State>(path, std::move(file), std::move(spill), options));
}

Status ShardWriter::add(std::span<const int32_t> ids, std::span<const uint8_t> in_loss, bool continues) {
  State& s = *state_;
  PLIMSOLL_CHECK(in_loss.empty() || (s.info.has_mask && in_loss.size() == ids.size()),
                 "a loss mask of another length, or for a shard without one");
  uint32_t largest = 0;  // a negative id becomes a huge one
  for (const int32_t id : ids) largest = std::max(largest, static_cast<uint32_t>(id));
  if (!ids.empty() && largest >= s.info.vocab_size)
    return outside(s.path, ids, s.info.vocab_size, s.info.num_documents);
  if (static_cast<int64_t>(ids.size()) > kMaxTokens - s.info.num_tokens)
    return Error{ErrorCode::kBadData, "a shard holds at most 2^48 tokens", s.path, "write several shards"};
  if (!ids.empty()) {
    const bool first = s.info.num_tokens == s.document_begin;
    if (first && !continues) {
      s.whole_hash = io::checksum(std::as_bytes(ids));
    } else {
      if (first) s.document_hash.reset();
      s.hash_is_streamed = true;
      s.document_hash.add(std::as_bytes(ids));
    }
  }
  while (!ids.empty()) {
    const auto count = std::min(ids.size(), static_cast<size_t>(kShardBlockTokens - s.in_block));
    PLIMSOLL_TRY(s.put(ids.first(count), in_loss.empty() ? in_loss : in_loss.first(count)));
    ids = ids.subspan(count);
    if (!in_loss.empty()) in_loss = in_loss.subspan(count);
  }
  return continues ? Status(Ok{}) : s.end_document();
}

Result<ShardInfo> ShardWriter::finish() {
  State& s = *state_;
  PLIMSOLL_TRY(s.end_document());
  if (s.in_block > 0) PLIMSOLL_TRY(s.end_block());
  PLIMSOLL_TRY(s.spill_documents());
  PLIMSOLL_TRY(s.spill.replay([&](std::span<const std::byte> bytes) { return s.file.append(bytes); }));
  s.info.content_hash = content_hash(s.blocks_hash.value(), s.documents_hash.value());
  s.info.file_bytes = s.file.offset();
  PLIMSOLL_TRY(s.file.commit(format_header(s.info)));
  return s.info;
}

}  // namespace plimsoll::datasets
