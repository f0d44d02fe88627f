#include "backends/cuda/host_collectives.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace plimsoll::cuda {
namespace {

/// Of the parts of all ranks at a time: copies of less are slow for what it costs to queue them.
constexpr int64_t kSentBytes = int64_t{4} << 20, kLeastChunk = int64_t{16} << 10;

int64_t chunk_bytes(int64_t ranks) { return std::max(kLeastChunk, round_up(kSentBytes / ranks, 4096)); }

}  // namespace

int64_t HostCollectives::staging_bytes(int64_t ranks) { return 2 * ranks * chunk_bytes(ranks); }

HostCollectives::HostCollectives(runtime::Communicator& communicator, std::span<std::byte> staging)
    : communicator_(communicator), chunk_(chunk_bytes(communicator.ranks())) {
  PLIMSOLL_CHECK(std::ssize(staging) >= staging_bytes(ranks()), "staging memory of ranks");
  sent_ = staging.first(staging.size() / 2);
  received_ = staging.subspan(staging.size() / 2);
}

Status HostCollectives::status() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return *failure_;
  return Ok{};
}

/// Behind an error nothing is moved any more: the other ranks may have gone.
template <typename Move>
Status HostCollectives::on_host(Stream& stream, Move move) {
  return stream.run_on_host([this, move] {
    if (!status()) return;
    Status moved = move();
    if (moved) return;
    const std::lock_guard lock(mutex_);
    failure_ = std::move(moved).error();
  });
}

/// Of every piece the same part at a time, so that only the last pieces' parts are shorter or empty.
Status HostCollectives::exchange(const std::byte* own, int64_t own_bytes, int64_t piece_bytes,
                                 std::byte* received, Stream& stream) {
  for (int64_t at = 0; at < piece_bytes; at += chunk_) {
    const int64_t bytes = std::min(chunk_, piece_bytes - at);
    int64_t sent = 0;
    for (int64_t to = 0; to < ranks(); ++to) {
      const int64_t begin = to * piece_bytes + at, count = part_bytes(begin, bytes, own_bytes);
      if (count > 0) PLIMSOLL_TRY(stream.copy(sent_.data() + sent, own + begin, count));
      sent += count;
    }
    PLIMSOLL_TRY(on_host(stream, [this, sent, bytes] {
      return communicator_.exchange(sent_.first(static_cast<size_t>(sent)), bytes,
                                    received_.first(static_cast<size_t>(ranks() * bytes)));
    }));
    for (int64_t from = 0; from < ranks(); ++from)
      PLIMSOLL_TRY(stream.copy(received + from * piece_bytes + at, received_.data() + from * bytes, bytes));
  }
  return Ok{};
}

Status HostCollectives::gather(const std::byte* piece, int64_t piece_bytes, std::byte* whole,
                               int64_t whole_bytes, Stream& stream) {
  for (int64_t at = 0; at < piece_bytes; at += chunk_) {
    const int64_t bytes = std::min(chunk_, piece_bytes - at);
    PLIMSOLL_TRY(stream.copy(sent_.data(), piece + at, bytes));
    PLIMSOLL_TRY(on_host(stream, [this, bytes] {
      return communicator_.gather(sent_.first(static_cast<size_t>(bytes)),
                                  received_.first(static_cast<size_t>(ranks() * bytes)));
    }));
    for (int64_t from = 0; from < ranks(); ++from) {
      const int64_t begin = from * piece_bytes + at, count = part_bytes(begin, bytes, whole_bytes);
      if (count > 0) PLIMSOLL_TRY(stream.copy(whole + begin, received_.data() + from * bytes, count));
    }
  }
  return Ok{};
}

Status HostCollectives::broadcast(int root, std::byte* data, int64_t bytes, Stream& stream) {
  for (int64_t at = 0; at < bytes; at += std::ssize(sent_)) {
    const int64_t count = std::min(std::ssize(sent_), bytes - at);
    if (rank() == root) PLIMSOLL_TRY(stream.copy(sent_.data(), data + at, count));
    PLIMSOLL_TRY(on_host(stream, [this, root, count] {
      return communicator_.broadcast(root, sent_.first(static_cast<size_t>(count)));
    }));
    if (rank() != root) PLIMSOLL_TRY(stream.copy(data + at, sent_.data(), count));
  }
  return Ok{};
}

}  // namespace plimsoll::cuda
