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
#include <utility>
#include <vector>

#include "backends/cpu/thread_pool.h"
#include "backends/cpu/work.h"
#include "runtime/device.h"

namespace plimsoll::discrete {

class DeviceMemory;

/// What of a device's memory is taken and where it lies. Lives as long as the last of those who keep it, so
/// that a memory may go after its device. Threads: any number at a time.
class MemoryBook {
 public:
  explicit MemoryBook(Bytes size) : size_(size) {}
  /// Errors: kDoesNotFit beyond the device's size.
  Status take(Bytes bytes);
  void give_back(Bytes bytes);
  [[nodiscard]] Bytes peak() const;

  void add(const DeviceMemory& mapped_twice);
  void forget(const DeviceMemory& memory);
  /// Where the device's threads find what is mapped twice; null where nothing of it holds that address.
  [[nodiscard]] std::byte* reach(const std::byte* address) const;

 private:
  const Bytes size_;
  mutable std::mutex mutex_;
  Bytes taken_{}, peak_{};
  std::vector<const DeviceMemory*> mapped_twice_;
};

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
  DeviceMemory(std::shared_ptr<MemoryBook> book, Bytes bytes) : book_(std::move(book)), bytes_(bytes) {}

  std::shared_ptr<MemoryBook> book_;
  Bytes bytes_;
  std::byte* address_ = nullptr;
  std::byte* reach_ = nullptr;
  std::unique_ptr<runtime::Memory> plain_;  ///< where it is mapped once
};

/// Makes a device's memory. Threads: any number at a time.
class DevicePool {
 public:
  /// `size` of 0 is no bound. `checks`: the host's touch faults.
  DevicePool(Bytes size, bool checks) : book_(std::make_shared<MemoryBook>(size)), checks_(checks) {}

  /// Touched and undefined. Errors: kDoesNotFit beyond the device's size; kIo where the system refuses.
  Result<std::unique_ptr<DeviceMemory>> allocate(Bytes bytes, cpu::ThreadPool& threads);

  /// The most that was taken at one time.
  [[nodiscard]] Bytes peak() const { return book_->peak(); }
  [[nodiscard]] bool checks() const { return checks_; }
  /// Whether the operands of that work are to be looked up: with checks, those of the device's kernels.
  [[nodiscard]] bool looks_up(const cpu::Work& work, ir::Queue queue) const {
    return checks_ && work.kind == cpu::Work::Kind::kLaunch && queue != ir::Queue::kHost;
  }
  /// The call as the device's threads make it, its operands in `operands`. Checked to lie in this pool. Call
  /// where looks_up holds.
  [[nodiscard]] runtime::KernelCall reach(const runtime::KernelCall& call,
                                          std::vector<runtime::TensorRef>& operands) const;

 private:
  static Status map_twice(DeviceMemory& memory);
  [[nodiscard]] std::byte* reach(const std::byte* address, const ir::Op& op) const;

  const std::shared_ptr<MemoryBook> book_;
  const bool checks_;
};

}  // namespace plimsoll::discrete
