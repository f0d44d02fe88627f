// Ranks of several machines without a library of MPI exchange bytes over the connections by which they
// control each other, by way of rank 0. That is slow, and serves what ranks whose cards exchange by NCCL
// still ask of their hosts: an identity of 128 bytes, and what rank 0 collects for a checkpoint.
//
//   rank ── what it has ──► rank 0 ── one text for all, what the others want ──► rank
#pragma once

#include "ranks/transport.h"

namespace plimsoll::ranks {

class Group;

class ChannelTransport final : public Transport {
 public:
  /// `group` outlives it; its texts and these are of one thread.
  explicit ChannelTransport(Group& group) : group_(group) {}

  Status open() override { return Ok{}; }
  [[nodiscard]] int rank() const override;
  [[nodiscard]] int ranks() const override;
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override;
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override;

 private:
  struct Round;
  Status exchange_part(const Round& round, std::span<std::byte> received);

  Group& group_;
};

}  // namespace plimsoll::ranks
