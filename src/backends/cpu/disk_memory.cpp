#include "backends/cpu/disk_memory.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/check.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kDiskPage = 4096;
constexpr int64_t kBounce = 256 << 10;  // on the stack
// What is asked of the system at once: from here on the rate grows no further (docs/offload.md), and a copy
// the other way comes between two of them.
constexpr int64_t kRequest = 4 << 20;

/// One transfer of whole pages around bytes of a file.
struct Window {
  alignas(kDiskPage) std::array<std::byte, kBounce> pages;
};

constexpr const char* kHint = "free space there, name another folder, or move less to the disk";

/// Bytes [begin, end) of a transfer that are whole pages of the file and of memory, which need no detour.
struct WholePages {
  int64_t begin = 0, end = 0;
};
WholePages whole_pages(int64_t offset, const std::byte* data, size_t size) {
  const auto address = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  const int64_t begin = round_up(offset, kDiskPage) - offset;
  const int64_t end = (offset + static_cast<int64_t>(size)) / kDiskPage * kDiskPage - offset;
  if ((address - offset) % kDiskPage != 0 || end <= begin) return {};
  return {begin, end};
}

// "/data/run (ext4 on /data)"; the folder alone where the mount is not found.
std::string describe(const std::string& folder) {
  struct stat of_folder {};
  FILE* mounts = stat(folder.c_str(), &of_folder) == 0 ? setmntent("/proc/self/mounts", "r") : nullptr;
  if (mounts == nullptr) return folder;
  std::string found;
  mntent entry{};
  char text[4096];
  while (getmntent_r(mounts, &entry, text, sizeof text) != nullptr) {
    struct stat of_mount {};
    if (stat(entry.mnt_dir, &of_mount) == 0 && of_mount.st_dev == of_folder.st_dev)
      found = std::string(" (") + entry.mnt_type + " on " + entry.mnt_dir + ")";
  }
  endmntent(mounts);
  return folder + found;
}

// Where the file system knows no file without a name, one that loses its name at once.
int open_nameless(const std::string& folder, int direct) {
  const int file = open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | direct, 0600);
  if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  std::string path = folder + "/.plimsoll-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC | direct);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// The room is asked for first: a refusal after the last free block would have taken it from everyone else.
int reserve(int file, int64_t bytes) {
  struct statvfs room {};
  if (fstatvfs(file, &room) != 0) return errno;
  const bool counts = room.f_blocks > 0;  // file systems without a size of their own do not
  if (counts && bytes / static_cast<int64_t>(room.f_frsize) >= static_cast<int64_t>(room.f_bavail))
    return ENOSPC;
  int error = 0;
  while ((error = posix_fallocate(file, 0, bytes)) == EINTR) {
  }
  return error;
}

}  // namespace

Result<std::unique_ptr<runtime::Memory>> DiskMemory::create(Bytes bytes, const std::string& folder) {
  PLIMSOLL_CHECK(bytes.count >= 0 && !folder.empty(), "disk memory without a folder");
  const auto refusal = [&](int error) {
    return Error{ErrorCode::kIo, "cannot reserve " + to_string(bytes) + " of disk: " + std::strerror(error),
                 describe(folder), kHint};
  };
  int file = open_nameless(folder, O_DIRECT);
  const bool direct = file >= 0;
  if (!direct && errno == EINVAL) file = open_nameless(folder, 0);  // as memory file systems say
  if (file < 0) return refusal(errno);
  std::unique_ptr<runtime::Memory> memory(new DiskMemory(file, direct, bytes, describe(folder)));
  const int64_t pages = round_up(bytes.count, kDiskPage);
  if (const int error = bytes.count > 0 ? reserve(file, pages) : 0; error != 0) return refusal(error);
  return memory;
}

DiskMemory::~DiskMemory() { close(file_); }

Error DiskMemory::failure(const char* what, int64_t bytes, int error) const {
  return {ErrorCode::kIo,
          std::string("cannot ") + what + " " + to_string(Bytes(bytes)) +
              " of disk: " + (error == 0 ? "the file ends early" : std::strerror(error)),
          place_, "the disk or its file system fails; name another folder"};
}

/// Blocks are larger here than pages, or a transfer fell short within one (network and user file systems,
/// quotas): from here on through the cache after all. False where that was so already.
bool DiskMemory::goes_through_cache() const {
  const int flags = fcntl(file_, F_GETFL);
  return flags != -1 && (flags & O_DIRECT) != 0 && fcntl(file_, F_SETFL, flags & ~O_DIRECT) == 0;
}

Status DiskMemory::read_file(int64_t offset, std::span<std::byte> to) const {
  for (size_t done = 0; done < to.size();) {
    const ssize_t n = pread(file_, to.data() + done, to.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && (errno == EINTR || (errno == EINVAL && goes_through_cache()))) continue;
    if (n <= 0) return failure("read", static_cast<int64_t>(to.size()), n < 0 ? errno : 0);
    done += static_cast<size_t>(n);
  }
  return Ok{};
}

Status DiskMemory::write_file(int64_t offset, std::span<const std::byte> from) const {
  for (size_t done = 0; done < from.size();) {
    const ssize_t n =
        pwrite(file_, from.data() + done, from.size() - done, offset + static_cast<int64_t>(done));
    if (n < 0 && (errno == EINTR || (errno == EINVAL && goes_through_cache()))) continue;
    if (n <= 0) return failure("write", static_cast<int64_t>(from.size()), n < 0 ? errno : ENOSPC);
    done += static_cast<size_t>(n);
  }
  return Ok{};
}

Status DiskMemory::read(int64_t offset, std::span<std::byte> to) const {
  if (to.empty()) return Ok{};
  if (!direct_) {
    PLIMSOLL_TRY(read_file(offset, to));
    (void)posix_fadvise(file_, offset, static_cast<off_t>(to.size()), POSIX_FADV_DONTNEED);
    return Ok{};
  }
  const auto [begin, end] = whole_pages(offset, to.data(), to.size());
  for (int64_t at = begin; at < end; at += kRequest)
    PLIMSOLL_TRY(read_file(
        offset + at, to.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(kRequest, end - at)))));
  PLIMSOLL_TRY(read_through(offset, to.first(static_cast<size_t>(begin))));
  return read_through(offset + end, to.subspan(static_cast<size_t>(end)));
}

Status DiskMemory::read_through(int64_t offset, std::span<std::byte> to) const {
  if (to.empty()) return Ok{};
  Window window;
  const int64_t end = offset + static_cast<int64_t>(to.size());
  for (int64_t begin = offset / kDiskPage * kDiskPage; begin < end; begin += kBounce) {
    const int64_t stop = std::min(begin + kBounce, round_up(end, kDiskPage));
    PLIMSOLL_TRY(read_file(begin, {window.pages.data(), static_cast<size_t>(stop - begin)}));
    const int64_t from = std::max(begin, offset), until = std::min(stop, end);
    std::memcpy(to.data() + (from - offset), window.pages.data() + (from - begin),
                static_cast<size_t>(until - from));
  }
  return Ok{};
}

Status DiskMemory::write(int64_t offset, std::span<const std::byte> from) const {
  if (from.empty()) return Ok{};
  if (!direct_) {
    PLIMSOLL_TRY(write_file(offset, from));
    (void)posix_fadvise(file_, offset, static_cast<off_t>(from.size()), POSIX_FADV_DONTNEED);
    return Ok{};
  }
  const auto [begin, end] = whole_pages(offset, from.data(), from.size());
  for (int64_t at = begin; at < end; at += kRequest)
    PLIMSOLL_TRY(write_file(offset + at, from.subspan(static_cast<size_t>(at),
                                                      static_cast<size_t>(std::min(kRequest, end - at)))));
  PLIMSOLL_TRY(write_through(offset, from.first(static_cast<size_t>(begin))));
  return write_through(offset + end, from.subspan(static_cast<size_t>(end)));
}

Status DiskMemory::write_through(int64_t offset, std::span<const std::byte> from) const {
  if (from.empty()) return Ok{};
  Window window;
  const auto page = [&](int64_t begin, int64_t at) -> Status {
    return read_file(at, {window.pages.data() + (at - begin), kDiskPage});
  };
  const int64_t end = offset + static_cast<int64_t>(from.size());
  for (int64_t begin = offset / kDiskPage * kDiskPage; begin < end; begin += kBounce) {
    const int64_t stop = std::min(begin + kBounce, round_up(end, kDiskPage));
    const int64_t first = std::max(begin, offset), until = std::min(stop, end);
    std::unique_lock turn(edges_, std::defer_lock);
    if (first > begin || until < stop) turn.lock();
    if (first > begin) PLIMSOLL_TRY(page(begin, begin));
    if (until < stop && (first == begin || stop - begin > kDiskPage))
      PLIMSOLL_TRY(page(begin, stop - kDiskPage));
    std::memcpy(window.pages.data() + (first - begin), from.data() + (first - offset),
                static_cast<size_t>(until - first));
    PLIMSOLL_TRY(write_file(begin, {window.pages.data(), static_cast<size_t>(stop - begin)}));
  }
  return Ok{};
}

}  // namespace plimsoll::cpu
