// Ranks on cards exchange bytes through NCCL, card to card: all-to-all and all-gather from messages between
// two ranks, so that no sum is the library's and the bits are those of any other transport.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/collectives.h"
#include "backends/cuda/nccl.h"
#include "base/thread.h"
#include "runtime/communicator.h"

namespace plimsoll::cuda {

class NcclCollectives final : public Collectives {
 public:
  /// `host` connects the same ranks and outlives it, as what was captured goes before it.
  NcclCollectives(const Nccl& nccl, runtime::Communicator& host) : nccl_(nccl), host_(host) {}
  /// Gives up within seconds, whatever the other ranks do.
  ~NcclCollectives() override;
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  [[nodiscard]] int rank() const override { return host_.rank(); }
  [[nodiscard]] int ranks() const override { return host_.ranks(); }
  [[nodiscard]] bool connects() const override { return true; }
  Status connect() override;
  Status exchange(const std::byte* own, int64_t own_bytes, int64_t piece_bytes, std::byte* received,
                  Stream& stream) override;
  Status gather(const std::byte* piece, int64_t piece_bytes, std::byte* whole, int64_t whole_bytes,
                Stream& stream) override;
  Status broadcast(int root, std::byte* data, int64_t bytes, Stream& stream) override;
  [[nodiscard]] Status status() const override;
  [[nodiscard]] bool is_watched() const override { return true; }
  Status look() override;

 private:
  /// An abort of the library's, on a thread of its own: it waits for graphs that hold messages.
  struct Abort {
    std::atomic<bool> is_done{false};
    Thread thread;
  };
  Status checked(int error, const char* what) const;
  Status send(const std::byte* from, int64_t bytes, int to, Stream& stream);
  Status receive(std::byte* to, int64_t bytes, int from, Stream& stream);
  template <typename Queue>
  Status grouped(const Queue& queue);
  Status fail(Error error);
  void abort();

  const Nccl& nccl_;
  runtime::Communicator& host_;
  Handle communicator_ = nullptr;
  std::shared_ptr<Abort> abort_;
  mutable std::mutex mutex_;
  std::optional<Error> failure_;
};

}  // namespace plimsoll::cuda
