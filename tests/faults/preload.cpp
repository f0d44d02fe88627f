// A library to be preloaded (preload.h): the calls by which a process changes files below one folder, and a
// watch over descriptors: a write to one that was closed, or that is closed meanwhile, is told on stderr as
// "fault: …".
#include "preload.h"

#include <cstdarg>

namespace {

using faults::half;
using faults::judge;
using faults::Side;
using faults::Verdict;

constexpr int kWatched = 4096;
std::atomic<int> writers[kWatched];  ///< that are within a call, by descriptor

void tell(const char* what, int fd) {
  char line[128];
  const int size = std::snprintf(line, sizeof line, "fault: %s descriptor %d\n", what, fd);
  (void)!::syscall(SYS_write, STDERR_FILENO, line, static_cast<size_t>(size));
}

/// A write in the midst of its call, slowed down where that is asked for.
class Watch {
 public:
  explicit Watch(int fd) : fd_(fd) {
    if (!faults::is_active() || fd < 0 || fd >= kWatched) return;
    writers[fd].fetch_add(1);
    counted_ = true;
    char path[PATH_MAX];
    if (faults::plan().slow > 0 && faults::path_of(fd, path) && faults::is_below(path))
      ::usleep(static_cast<useconds_t>(faults::plan().slow));
  }
  ~Watch() {
    if (counted_) writers[fd_].fetch_sub(1);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ssize_t told(ssize_t written) const {
    if (counted_ && written < 0 && errno == EBADF) {
      tell("a write to a closed", fd_);
      errno = EBADF;
    }
    return written;
  }

 private:
  int fd_;
  bool counted_ = false;
};

}  // namespace

extern "C" {

int close(int fd) {
  PLIMSOLL_REAL(close);
  if (faults::is_active() && fd >= 0 && fd < kWatched && writers[fd].load() > 0)
    tell("a close beside a write to", fd);
  return next(fd);
}

ssize_t write(int fd, const void* data, size_t size) {
  PLIMSOLL_REAL(write);
  const Watch watch(fd);
  const Verdict verdict = judge(Side::kWrite, "write", fd, true);
  return verdict == Verdict::kFail ? -1 : watch.told(next(fd, data, half(verdict, size)));
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  PLIMSOLL_REAL(pwrite);
  const Watch watch(fd);
  const Verdict verdict = judge(Side::kWrite, "pwrite", fd, true);
  return verdict == Verdict::kFail ? -1 : watch.told(next(fd, data, half(verdict, size), offset));
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  PLIMSOLL_REAL(pwrite64);
  const Watch watch(fd);
  const Verdict verdict = judge(Side::kWrite, "pwrite", fd, true);
  return verdict == Verdict::kFail ? -1 : watch.told(next(fd, data, half(verdict, size), offset));
}

int fsync(int fd) {
  PLIMSOLL_REAL(fsync);
  return judge(Side::kWrite, "fsync", fd, false) == Verdict::kFail ? -1 : next(fd);
}

int fdatasync(int fd) {
  PLIMSOLL_REAL(fdatasync);
  return judge(Side::kWrite, "fdatasync", fd, false) == Verdict::kFail ? -1 : next(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t size) {
  PLIMSOLL_REAL(fallocate);
  return judge(Side::kWrite, "fallocate", fd, true) == Verdict::kFail ? -1 : next(fd, mode, offset, size);
}

int ftruncate(int fd, off_t size) noexcept {
  PLIMSOLL_REAL(ftruncate);
  return judge(Side::kWrite, "ftruncate", fd, false) == Verdict::kFail ? -1 : next(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  PLIMSOLL_REAL(rename);
  return judge(Side::kWrite, "rename", to, false) == Verdict::kFail ? -1 : next(from, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  PLIMSOLL_REAL(renameat2);
  return judge(Side::kWrite, "renameat2", to, false) == Verdict::kFail
             ? -1
             : next(from_fd, from, to_fd, to, flags);
}

int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) noexcept {
  PLIMSOLL_REAL(linkat);
  return judge(Side::kWrite, "linkat", to, true) == Verdict::kFail ? -1
                                                                   : next(from_fd, from, to_fd, to, flags);
}

int unlink(const char* path) noexcept {
  PLIMSOLL_REAL(unlink);
  return judge(Side::kWrite, "unlink", path, false) == Verdict::kFail ? -1 : next(path);
}

int unlinkat(int fd, const char* path, int flags) noexcept {
  PLIMSOLL_REAL(unlinkat);
  const bool by_folder = fd != AT_FDCWD && path[0] != '/';
  const Verdict verdict =
      by_folder ? judge(Side::kWrite, "unlinkat", fd, false) : judge(Side::kWrite, "unlinkat", path, false);
  return verdict == Verdict::kFail ? -1 : next(fd, path, flags);
}

int rmdir(const char* path) noexcept {
  PLIMSOLL_REAL(rmdir);
  return judge(Side::kWrite, "rmdir", path, false) == Verdict::kFail ? -1 : next(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  PLIMSOLL_REAL(mkdir);
  return judge(Side::kWrite, "mkdir", path, true) == Verdict::kFail ? -1 : next(path, mode);
}

/// Of both sides: a file that is made, and one that is read.
static bool may_open(const char* name, const char* path, int flags) {
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return judge(makes ? Side::kWrite : Side::kRead, name, path, makes) != Verdict::kFail;
}

int open(const char* path, int flags, ...) {
  PLIMSOLL_REAL(open);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned));  // meaningless where nothing is made
  va_end(arguments);
  return may_open("open", path, flags) ? next(path, flags, mode) : -1;
}

int open64(const char* path, int flags, ...) {
  PLIMSOLL_REAL(open64);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned));
  va_end(arguments);
  return may_open("open", path, flags) ? next(path, flags, mode) : -1;
}

int openat(int folder, const char* path, int flags, ...) {
  PLIMSOLL_REAL(openat);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned));
  va_end(arguments);
  const bool absolute = folder == AT_FDCWD || path[0] == '/';
  return !absolute || may_open("openat", path, flags) ? next(folder, path, flags, mode) : -1;
}

}  // extern "C"
