// Ranks exchange bytes by messages of MPI, on one machine or several: all-to-all and all-gather from messages
// between two ranks, so that no sum is the library's and the bits are those of any other transport.
//
//   step i of R - 1:   send to rank + i        receive from rank - i        (modulo R)
//
// Both go through windows of a few chunks, in that order on every rank; so the chunk that is furthest behind
// always has its other end waiting for it, and nobody deadlocks.
#pragma once

#include <functional>
#include <memory>

#include "ranks/mpi_calls.h"
#include "ranks/transport.h"

namespace plimsoll::ranks {

class MpiTransport final : public Transport {
 public:
  /// `check` is asked while it waits and returns why there is nothing more to wait for.
  MpiTransport(int rank, int ranks, std::shared_ptr<MpiCalls> calls, std::function<Status()> check);

  Status open() override;
  void close() override;
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override;
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override;
  Status broadcast(int root, std::span<std::byte> bytes) override;

 private:
  template <typename Begin>
  struct Lane;
  template <typename PieceTo, typename PlaceOf>
  Status move(const PieceTo& piece_to, const PlaceOf& place_of);
  template <typename Begin>
  Result<bool> advance(Lane<Begin>& lane);
  Status pause(int idle, double& asked_at);
  Status why_failed(const Error& error);

  int rank_, ranks_;
  std::shared_ptr<MpiCalls> calls_;
  std::function<Status()> check_;
  bool is_open_ = false;
};

}  // namespace plimsoll::ranks
