// Ranks of one machine exchange bytes by reading each other's memory: each publishes where its tensor lies,
// and the others copy their parts of it straight to where they belong. A block of memory that all have mapped
// holds the addresses and a barrier; it has no name in the file system, so nothing is left of it after a
// kill.
//
//   publish ─ all are there ─ read the others' ─ all have read
//
// Where the kernel lets no process read another's (containers, kernel.yama.ptrace_scope), the bytes go
// through slots of the block, in rounds.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ranks/transport.h"

namespace plimsoll::ranks {

class HostMemory final : public Transport {
 public:
  /// Rank 0 makes the block, the others open it by what `place` of rank 0 says. `check` is asked while it
  /// waits and returns why there is nothing more to wait for. Errors: kIo.
  static Result<std::unique_ptr<HostMemory>> create(int ranks, std::function<Status()> check);
  static Result<std::unique_ptr<HostMemory>> open(int rank, int ranks, const std::string& place,
                                                  std::function<Status()> check);
  ~HostMemory() override;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  [[nodiscard]] const std::string& place() const { return place_; }
  /// Whether ranks may read each other; all find out together. `staged` asks for the slots in any case.
  Status find_way(bool staged);
  Status open() override;
  [[nodiscard]] bool is_staged() const { return staged_; }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  Status exchange(std::span<const std::byte> own, int64_t piece_bytes,
                  std::span<std::byte> received) override;
  Status gather(std::span<const std::byte> piece, std::span<std::byte> whole) override;
  Status broadcast(int root, std::span<std::byte> bytes) override;

 private:
  struct Block;
  HostMemory(int rank, int ranks, std::function<Status()> check);
  Status map(int fd);
  /// Until all ranks have come here.
  Status meet();
  Status publish(std::span<const std::byte> own);
  Status why_unreadable(int from, int error);
  Status read(int from, int64_t offset, std::span<std::byte> to);
  [[nodiscard]] std::span<std::byte> slot(int from, int to) const;
  template <typename Range>
  Status in_rounds(int64_t most, const Range& parts);

  int rank_, ranks_;
  std::function<Status()> check_;
  std::string place_;
  Block* block_ = nullptr;
  std::byte* slots_ = nullptr;
  size_t mapped_ = 0;
  int fd_ = -1;
  bool staged_ = false;
};

}  // namespace plimsoll::ranks
