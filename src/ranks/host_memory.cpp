#include "ranks/host_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/process.h"
#include "base/units.h"
#include "ranks/pieces.h"

namespace plimsoll::ranks {
namespace {

/// Of what is read at once: small against what a kill has to wait for.
constexpr size_t kReadBytes = size_t{1} << 20;
/// Of a slot between two ranks.
constexpr int64_t kSlotBytes = int64_t{256} << 10;
/// Between two looks at whether the others live.
constexpr long kTickNanoseconds = 20'000'000;

Error refused(const char* what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno)), "memory between ranks"};
}

}  // namespace

struct HostMemory::Block {
  struct Rank {
    std::atomic<uint64_t> address{0};
    std::atomic<int32_t> pid{0};
    std::atomic<uint32_t> refused{0};
  };
  std::atomic<uint32_t> arrived{0}, generation{0};
  Rank ranks[1];  // as many as there are

  static size_t bytes_for(int ranks) { return sizeof(Block) + sizeof(Rank) * static_cast<size_t>(ranks); }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");

HostMemory::HostMemory(int rank, int ranks, std::function<Status()> check)
    : rank_(rank), ranks_(ranks), check_(std::move(check)) {}

HostMemory::~HostMemory() {
  if (block_ != nullptr) ::munmap(block_, mapped_);
  if (slots_ != nullptr) ::munmap(slots_, static_cast<size_t>(ranks_ * ranks_ * kSlotBytes));
  if (fd_ >= 0) ::close(fd_);
}

Result<std::unique_ptr<HostMemory>> HostMemory::create(int ranks, std::function<Status()> check) {
  std::unique_ptr<HostMemory> memory(new HostMemory(0, ranks, std::move(check)));
  const int fd = ::memfd_create("plimsoll ranks", MFD_CLOEXEC);
  if (fd < 0) return refused("cannot make memory");
  memory->fd_ = fd;
  if (::ftruncate(fd, static_cast<off_t>(Block::bytes_for(ranks))) != 0) return refused("cannot size memory");
  PLIMSOLL_TRY(memory->map(fd));
  memory->place_ = fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
  return memory;
}

Result<std::unique_ptr<HostMemory>> HostMemory::open(int rank, int ranks, const std::string& place,
                                                     std::function<Status()> check) {
  std::unique_ptr<HostMemory> memory(new HostMemory(rank, ranks, std::move(check)));
  memory->fd_ = ::open(place.c_str(), O_RDWR | O_CLOEXEC);
  if (memory->fd_ < 0)
    return Error{ErrorCode::kIo, fmt::format("cannot open {}: {}", place, std::strerror(errno)),
                 "memory between ranks", "run the ranks as one user, in one container"};
  struct stat found = {};
  const bool is_block = ::fstat(memory->fd_, &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink == 0 &&
                        found.st_size >= static_cast<off_t>(Block::bytes_for(ranks));
  if (!is_block)  // it is written to, and a file with a name is somebody's
    return Error{ErrorCode::kIo, fmt::format("{} is not the shared memory of these ranks", place),
                 "memory between ranks", "set distributed.address to where rank 0 listens"};
  PLIMSOLL_TRY(memory->map(memory->fd_));
  return memory;
}

Status HostMemory::map(int fd) {
  mapped_ = Block::bytes_for(ranks_);
  void* address = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return refused("cannot map memory");
  block_ = static_cast<Block*>(address);
  block_->ranks[rank_].pid = ::getpid();
  // Who may open this process's descriptors may read its memory as well, where the kernel asks for a
  // permission.
  (void)::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  return Ok{};
}

Status HostMemory::open() {
  const char* staged = std::getenv("PLIMSOLL_RANKS_STAGED");  // for tests of what a container refuses
  return find_way(staged != nullptr && *staged == '1');
}

Status HostMemory::find_way(bool staged) {
  static const uint64_t kProbe = 0x504c494d534f4c4cULL;
  PLIMSOLL_TRY(publish(std::as_bytes(std::span(&kProbe, 1))));
  uint64_t seen = 0;
  bool may = !staged;
  for (int from = 0; from < ranks_ && may; ++from) {
    may = read(from, 0, std::as_writable_bytes(std::span(&seen, 1))).ok() && seen == kProbe;
  }
  block_->ranks[rank_].refused = may ? 0 : 1;
  PLIMSOLL_TRY(meet());
  for (int from = 0; from < ranks_; ++from) staged_ = staged_ || block_->ranks[from].refused != 0;
  if (!staged_) return meet();
  const auto bytes = static_cast<size_t>(ranks_ * ranks_ * kSlotBytes);
  const auto first = static_cast<off_t>(round_up(static_cast<int64_t>(mapped_), ::sysconf(_SC_PAGESIZE)));
  if (rank_ == 0 && ::ftruncate(fd_, first + static_cast<off_t>(bytes)) != 0)
    return refused("cannot size memory");
  PLIMSOLL_TRY(meet());
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, first);
  if (address == MAP_FAILED) return refused("cannot map memory");
  slots_ = static_cast<std::byte*>(address);
  return meet();
}

Status HostMemory::meet() {
  const uint32_t generation = block_->generation.load(std::memory_order_acquire);
  if (block_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<uint32_t>(ranks_)) {
    block_->arrived.store(0, std::memory_order_relaxed);
    block_->generation.store(generation + 1, std::memory_order_release);
    ::syscall(SYS_futex, &block_->generation, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
    return Ok{};
  }
  const WaitClock::Wait wait(waits_);
  while (block_->generation.load(std::memory_order_acquire) == generation) {
    PLIMSOLL_TRY(check_());
    const timespec tick{0, kTickNanoseconds};
    ::syscall(SYS_futex, &block_->generation, FUTEX_WAIT, generation, &tick, nullptr, 0);
  }
  return Ok{};
}

Status HostMemory::publish(std::span<const std::byte> own) {
  block_->ranks[rank_].address.store(reinterpret_cast<uint64_t>(own.data()), std::memory_order_release);
  return meet();
}

Status HostMemory::read(int from, int64_t offset, std::span<std::byte> to) {
  const auto& rank = block_->ranks[from];
  uint64_t address = rank.address.load(std::memory_order_acquire) + static_cast<uint64_t>(offset);
  if (to.empty()) return Ok{};  // of no memory, whose address may be null
  if (from == rank_) {
    std::memcpy(to.data(), reinterpret_cast<const std::byte*>(address), to.size());
    return Ok{};
  }
  while (!to.empty()) {
    iovec here{to.data(), std::min(to.size(), kReadBytes)};
    iovec there{reinterpret_cast<void*>(address), here.iov_len};
    const ssize_t n = ::process_vm_readv(rank.pid, &here, 1, &there, 1, 0);
    if (n <= 0) return why_unreadable(from, errno);
    address += static_cast<uint64_t>(n);
    to = to.subspan(static_cast<size_t>(n));
  }
  return Ok{};
}

/// A rank that has just ended is named by who watches it.
Status HostMemory::why_unreadable(int from, int error) {
  for (double end = now_seconds() + kNamedSeconds; error == ESRCH && now_seconds() < end;) {
    PLIMSOLL_TRY(check_());
    const timespec tick{0, kTickNanoseconds};
    ::nanosleep(&tick, nullptr);
  }
  PLIMSOLL_TRY(check_());
  return Error{ErrorCode::kIo,
               fmt::format("cannot read the memory of rank {}: {}", from, std::strerror(error)),
               "memory between ranks", "run again"};
}

std::span<std::byte> HostMemory::slot(int from, int to) const {
  return {slots_ + (int64_t{from} * ranks_ + to) * kSlotBytes, static_cast<size_t>(kSlotBytes)};
}

/// `parts(offset, bytes, writes)` moves the part of each piece that begins there, through the slots.
template <typename Range>
Status HostMemory::in_rounds(int64_t most, const Range& parts) {
  for (int64_t at = 0; at < most; at += kSlotBytes) {
    parts(at, std::min(kSlotBytes, most - at), true);
    PLIMSOLL_TRY(meet());
    parts(at, std::min(kSlotBytes, most - at), false);
    PLIMSOLL_TRY(meet());
  }
  return Ok{};
}

Status HostMemory::exchange(std::span<const std::byte> own, int64_t piece_bytes,
                            std::span<std::byte> received) {
  const std::span<const std::byte> mine = part(own, rank_ * piece_bytes, piece_bytes);
  for (int from = 0; from < ranks_; ++from) {
    const auto rest = part(received, from * piece_bytes + std::ssize(mine), piece_bytes - std::ssize(mine));
    if (!rest.empty()) std::memset(rest.data(), 0, rest.size());
  }
  if (staged_)
    return in_rounds(piece_bytes, [&](int64_t at, int64_t bytes, bool writes) {
      for (int other = 0; other < ranks_; ++other) {
        if (writes) {
          const auto from = part(part(own, other * piece_bytes, piece_bytes), at, bytes);
          std::ranges::copy(from, slot(rank_, other).begin());
        } else {
          const auto to = part(part(received, other * piece_bytes, std::ssize(mine)), at, bytes);
          std::ranges::copy(slot(other, rank_).first(to.size()), to.begin());
        }
      }
    });
  PLIMSOLL_TRY(publish(own));
  for (int i = 0; i < ranks_; ++i) {  // each begins with itself: not all read one rank at a time
    const int from = (rank_ + i) % ranks_;
    PLIMSOLL_TRY(read(from, rank_ * piece_bytes, part(received, from * piece_bytes, std::ssize(mine))));
  }
  return meet();
}

Status HostMemory::gather(std::span<const std::byte> piece, std::span<std::byte> whole) {
  const int64_t piece_bytes = std::ssize(piece);
  if (staged_)
    return in_rounds(piece_bytes, [&](int64_t at, int64_t bytes, bool writes) {
      if (writes) std::ranges::copy(part(piece, at, bytes), slot(rank_, rank_).begin());
      for (int from = 0; from < ranks_ && !writes; ++from) {
        const auto to = part(part(whole, from * piece_bytes, piece_bytes), at, bytes);
        std::ranges::copy(slot(from, from).first(to.size()), to.begin());
      }
    });
  PLIMSOLL_TRY(publish(piece));
  for (int i = 0; i < ranks_; ++i) {
    const int from = (rank_ + i) % ranks_;
    PLIMSOLL_TRY(read(from, 0, part(whole, from * piece_bytes, piece_bytes)));
  }
  return meet();
}

Status HostMemory::broadcast(int root, std::span<std::byte> bytes) {
  if (staged_)
    return in_rounds(std::ssize(bytes), [&](int64_t at, int64_t count, bool writes) {
      const std::span<std::byte> now = part(bytes, at, count);
      if (writes && rank_ == root) std::ranges::copy(now, slot(root, root).begin());
      if (!writes && rank_ != root) std::ranges::copy(slot(root, root).first(now.size()), now.begin());
    });
  PLIMSOLL_TRY(publish(bytes));
  if (rank_ != root) PLIMSOLL_TRY(read(root, 0, bytes));
  return meet();
}

}  // namespace plimsoll::ranks
