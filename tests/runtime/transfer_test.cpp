// States move piece by piece; a disk that cannot be read is its reader's error, and the device goes on.
#include "runtime/transfer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backends/cpu/cpu_device.h"

namespace plimsoll::runtime {
namespace {

/// A disk of known bytes, of which those from `broken` on cannot be read.
class FakeDisk final : public Memory {
 public:
  FakeDisk(int64_t bytes, int64_t broken) : bytes_(bytes), broken_(broken) {}
  [[nodiscard]] ir::MemorySpace space() const override { return ir::MemorySpace::kDisk; }
  [[nodiscard]] Bytes size() const override { return Bytes(bytes_); }
  [[nodiscard]] std::byte* address() const override { return nullptr; }
  [[nodiscard]] std::span<std::byte> host() const override { return {}; }
  [[nodiscard]] Status read(int64_t offset, std::span<std::byte> to) const override {
    if (offset + static_cast<int64_t>(to.size()) > broken_) return Error{ErrorCode::kIo, "cannot read"};
    for (size_t i = 0; i < to.size(); ++i)
      to[i] = static_cast<std::byte>((offset + static_cast<int64_t>(i)) * 7);
    return Ok{};
  }

 private:
  int64_t bytes_, broken_;
};

TEST(Transfer, ReadsADiskPieceByPieceAndTellsItsReaderAlone) {
  constexpr int64_t kBuffer = 1024, kBytes = 10 * kBuffer;
  cpu::CpuDevice device(1);
  const auto staging = device.allocate(ir::MemorySpace::kHostPinned, Bytes(2 * kBuffer));
  ASSERT_TRUE(staging);
  Transfer transfer(device, ir::Queue::kCopyOut, {staging->get(), 0}, kBuffer);
  const FakeDisk disk(kBytes, 6 * kBuffer);
  std::vector<std::byte> taken;
  const TakePiece take = [&](std::span<const std::byte> piece, int64_t at) -> Status {
    EXPECT_EQ(at, static_cast<int64_t>(taken.size()));
    taken.insert(taken.end(), piece.begin(), piece.end());
    return Ok{};
  };
  ASSERT_TRUE(transfer.read({&disk, 100}, 3 * kBuffer + 5, take));
  ASSERT_EQ(taken.size(), static_cast<size_t>(3 * kBuffer + 5));
  for (size_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i], static_cast<std::byte>((i + 100) * 7));
  taken.clear();
  const Status broken = transfer.read({&disk, 0}, kBytes, take);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().what, "cannot read");
  EXPECT_EQ(taken.size(), static_cast<size_t>(6 * kBuffer));
  taken.clear();
  EXPECT_TRUE(transfer.read({&disk, 0}, kBuffer, take)) << "an error of one read is none of the next";
}

}  // namespace
}  // namespace plimsoll::runtime
