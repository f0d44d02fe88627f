// Ranks on cards exchange bytes through the memory of their hosts, chunk by chunk:
//
//   card ─ copy ─► sent │ the communicator, in a function of the stream's │ received ─ copy ─► card
#pragma once

#include <mutex>
#include <optional>
#include <span>

#include "backends/cuda/collectives.h"
#include "runtime/communicator.h"

namespace plimsoll::cuda {

class HostCollectives final : public Collectives {
 public:
  /// Of pinned memory of the host that it takes.
  static int64_t staging_bytes(int64_t ranks);

  /// Both outlive it, and all that was captured. `staging` has staging_bytes().
  HostCollectives(runtime::Communicator& communicator, std::span<std::byte> staging);

  [[nodiscard]] int rank() const override { return communicator_.rank(); }
  [[nodiscard]] int ranks() const override { return communicator_.ranks(); }
  Status exchange(const std::byte* own, int64_t own_bytes, int64_t piece_bytes, std::byte* received,
                  Stream& stream) override;
  Status gather(const std::byte* piece, int64_t piece_bytes, std::byte* whole, int64_t whole_bytes,
                Stream& stream) override;
  Status broadcast(int root, std::byte* data, int64_t bytes, Stream& stream) override;
  [[nodiscard]] Status status() const override;

 private:
  template <typename Move>
  Status on_host(Stream& stream, Move move);

  runtime::Communicator& communicator_;
  int64_t chunk_;  ///< bytes of a rank's part at a time
  std::span<std::byte> sent_, received_;
  mutable std::mutex mutex_;
  std::optional<Error> failure_;
};

}  // namespace plimsoll::cuda
