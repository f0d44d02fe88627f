// Memory on a disk: a file without a name, so that nothing is left of it after any end, SIGKILL included.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "runtime/device.h"

namespace plimsoll::cpu {

/// Read and written at any offset by any number of threads, past the system's cache where the file system
/// can: whole pages of the file that lie on whole pages of memory are moved as they are, some MiB at a time,
/// all else goes through a page-aligned buffer on the stack; a page that is written in part is read first.
/// Elsewhere through the cache, which is told to let go.
class DiskMemory final : public runtime::Memory {
 public:
  /// A file in `folder` whose blocks are all reserved, so that a disk that is full says so here and not in
  /// the middle of a step. Errors: kIo with the size, the folder and its file system.
  static Result<std::unique_ptr<runtime::Memory>> create(Bytes bytes, const std::string& folder);
  ~DiskMemory() override;
  DiskMemory(const DiskMemory&) = delete;
  DiskMemory& operator=(const DiskMemory&) = delete;

  [[nodiscard]] ir::MemorySpace space() const override { return ir::MemorySpace::kDisk; }
  [[nodiscard]] Bytes size() const override { return bytes_; }
  [[nodiscard]] std::byte* address() const override { return nullptr; }
  [[nodiscard]] std::span<std::byte> host() const override { return {}; }

  /// Errors: kIo with the file system. Allocate nothing unless they fail.
  [[nodiscard]] Status read(int64_t offset, std::span<std::byte> to) const override;
  [[nodiscard]] Status write(int64_t offset, std::span<const std::byte> from) const;

 private:
  DiskMemory(int file, bool direct, Bytes bytes, std::string place)
      : file_(file), direct_(direct), bytes_(bytes), place_(std::move(place)) {}
  Status read_file(int64_t offset, std::span<std::byte> to) const;
  Status write_file(int64_t offset, std::span<const std::byte> from) const;
  Status read_through(int64_t offset, std::span<std::byte> to) const;
  Status write_through(int64_t offset, std::span<const std::byte> from) const;
  [[nodiscard]] bool goes_through_cache() const;
  [[nodiscard]] Error failure(const char* what, int64_t bytes, int error) const;

  int file_;
  bool direct_;
  mutable std::mutex edges_;  ///< of pages that are written in part
  Bytes bytes_;
  std::string place_;  ///< the file system, as errors name it
};

}  // namespace plimsoll::cpu
