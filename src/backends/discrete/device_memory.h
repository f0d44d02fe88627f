// Memory of a discrete device. With checks on, its pages are mapped twice: where Memory::address() points
// they fault under every hand, and the device's own threads go through a second mapping that nobody else is
// told of.
//
//   address() ──► [ no access ]──┐
//                                ├── the same pages
//   reach()   ──► [ read, write ]┘
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/thread_pool.h"
#include "runtime/device.h"

namespace plimsoll::discrete {

class DevicePool;

class DeviceMemory final : public runtime::Memory {
 public:
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] ir::MemorySpace space() const override { return ir::MemorySpace::kDevice; }
  [[nodiscard]] Bytes size() const override { return bytes_; }
  [[nodiscard]] std::byte* address() const override { return address_; }
  [[nodiscard]] std::span<std::byte> host() const override { return {}; }
  /// Where the device's threads find it.
  [[nodiscard]] std::byte* reach() const { return reach_; }

 private:
  friend class DevicePool;
  DeviceMemory(DevicePool& pool, Bytes bytes) : pool_(pool), bytes_(bytes) {}

  DevicePool& pool_;
  Bytes bytes_;
  std::byte* address_ = nullptr;
  std::byte* reach_ = nullptr;
  std::unique_ptr<runtime::Memory> plain_;  ///< where it is mapped once
};

/// What a device has, and what of it lies where. Goes behind its memories.
/// Threads: any number at a time.
class DevicePool {
 public:
  /// `size` of 0 is no bound. `checks`: the host's touch faults.
  DevicePool(Bytes size, bool checks) : size_(size), checks_(checks) {}

  /// Touched and undefined. Errors: kDoesNotFit beyond the device's size; kIo where the system refuses.
  Result<std::unique_ptr<DeviceMemory>> allocate(Bytes bytes, cpu::ThreadPool& threads);

  /// The most that was taken at one time.
  [[nodiscard]] Bytes peak() const;
  [[nodiscard]] bool checks() const { return checks_; }
  /// The call as the device's threads make it, its operands in `operands`. Checked to lie in this pool. Call
  /// where checks() holds.
  [[nodiscard]] runtime::KernelCall reach(const runtime::KernelCall& call,
                                          std::vector<runtime::TensorRef>& operands) const;

 private:
  friend class DeviceMemory;
  Status take(Bytes bytes);
  void give_back(Bytes bytes);
  Status map_twice(DeviceMemory& memory);
  void forget(const DeviceMemory& memory);
  [[nodiscard]] std::byte* reach(const std::byte* address, const ir::Op& op) const;

  const Bytes size_;
  const bool checks_;
  mutable std::mutex mutex_;
  Bytes taken_{}, peak_{};
  std::vector<const DeviceMemory*> mapped_twice_;
};

}  // namespace plimsoll::discrete
