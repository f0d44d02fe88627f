// A library to be preloaded: counts the calls by which a process changes files below one folder, and at the
// N-th of them kills the process, fails, or writes less than it was asked to.
//
//   PLIMSOLL_FAULT_DIR   the folder, absolute; without it nothing happens
//   PLIMSOLL_FAULT_KIND  list: a line "name path" a call into PLIMSOLL_FAULT_LIST, nothing else
//                        kill: SIGKILL before the call
//                        eio: the call fails with EIO, later ones do not
//                        enospc: it and all later ones that take space fail with ENOSPC
//                        short: a write writes half; other calls are as ever
//   PLIMSOLL_FAULT_AT    N, from 1
//
// Only what takes space or changes a name is counted; reads, seeks and closes are not.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum class Kind { kNone, kList, kKill, kEio, kEnospc, kShort };
enum class Verdict { kPass, kFail, kHalf };

struct Plan {
  Plan() {
    const char* folder = std::getenv("PLIMSOLL_FAULT_DIR");
    const char* word = std::getenv("PLIMSOLL_FAULT_KIND");
    if (folder == nullptr || word == nullptr) return;
    directory = folder;
    const std::string_view name = word;
    kind = name == "list"     ? Kind::kList
           : name == "kill"   ? Kind::kKill
           : name == "eio"    ? Kind::kEio
           : name == "enospc" ? Kind::kEnospc
           : name == "short"  ? Kind::kShort
                              : Kind::kNone;
    if (const char* number = std::getenv("PLIMSOLL_FAULT_AT")) at = std::atol(number);
    if (const char* file = std::getenv("PLIMSOLL_FAULT_LIST"); file != nullptr && kind == Kind::kList)
      list = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  }
  Kind kind = Kind::kNone;
  std::string_view directory;
  long at = 0;
  int list = -1;
};

const Plan& plan() {
  static const Plan the_plan;
  return the_plan;
}
std::atomic<long> calls{0};

bool is_below(const char* path) {
  char absolute[PATH_MAX];
  if (path[0] != '/') {
    if (::getcwd(absolute, sizeof absolute / 2) == nullptr) return false;
    std::strncat(absolute, "/", 2);
    std::strncat(absolute, path, sizeof absolute / 2 - 2);
    path = absolute;
  }
  const std::string_view directory = plan().directory;
  return std::strncmp(path, directory.data(), directory.size()) == 0 &&
         (path[directory.size()] == '/' || path[directory.size()] == '\0');
}

/// What to do with a call that concerns `path`.
Verdict judge(const char* name, const char* path, bool takes_space) {
  const Plan& p = plan();
  if (p.kind == Kind::kNone || !is_below(path)) return Verdict::kPass;
  const long number = calls.fetch_add(1) + 1;
  if (p.kind == Kind::kList) {
    char line[PATH_MAX + 64];
    const int size = std::snprintf(line, sizeof line, "%s %s\n", name, path);
    (void)!::syscall(SYS_write, p.list, line, std::min(static_cast<size_t>(size), sizeof line - 1));
    return Verdict::kPass;
  }
  if (p.kind == Kind::kEnospc && number >= p.at && takes_space) return errno = ENOSPC, Verdict::kFail;
  if (number != p.at) return Verdict::kPass;
  if (p.kind == Kind::kKill) ::kill(::getpid(), SIGKILL);
  if (p.kind == Kind::kEio) return errno = EIO, Verdict::kFail;
  return p.kind == Kind::kShort ? Verdict::kHalf : Verdict::kPass;
}

Verdict judge(const char* name, int fd, bool takes_space) {
  if (plan().kind == Kind::kNone) return Verdict::kPass;
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  if (size <= 0) return Verdict::kPass;
  path[size] = '\0';
  return judge(name, path, takes_space);
}

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

size_t half(Verdict verdict, size_t size) { return verdict == Verdict::kHalf ? (size + 1) / 2 : size; }

}  // namespace

#define PLIMSOLL_REAL(name) static auto* const next = real<decltype(name)>(#name)

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  PLIMSOLL_REAL(write);
  const Verdict verdict = judge("write", fd, true);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size));
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  PLIMSOLL_REAL(pwrite);
  const Verdict verdict = judge("pwrite", fd, true);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size), offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  PLIMSOLL_REAL(pwrite64);
  const Verdict verdict = judge("pwrite", fd, true);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size), offset);
}

int fsync(int fd) {
  PLIMSOLL_REAL(fsync);
  return judge("fsync", fd, false) == Verdict::kFail ? -1 : next(fd);
}

int fdatasync(int fd) {
  PLIMSOLL_REAL(fdatasync);
  return judge("fdatasync", fd, false) == Verdict::kFail ? -1 : next(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t size) {
  PLIMSOLL_REAL(fallocate);
  return judge("fallocate", fd, true) == Verdict::kFail ? -1 : next(fd, mode, offset, size);
}

int ftruncate(int fd, off_t size) noexcept {
  PLIMSOLL_REAL(ftruncate);
  return judge("ftruncate", fd, false) == Verdict::kFail ? -1 : next(fd, size);
}

int rename(const char* from, const char* to) noexcept {
  PLIMSOLL_REAL(rename);
  return judge("rename", to, false) == Verdict::kFail ? -1 : next(from, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) noexcept {
  PLIMSOLL_REAL(renameat2);
  return judge("renameat2", to, false) == Verdict::kFail ? -1 : next(from_fd, from, to_fd, to, flags);
}

int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) noexcept {
  PLIMSOLL_REAL(linkat);
  return judge("linkat", to, true) == Verdict::kFail ? -1 : next(from_fd, from, to_fd, to, flags);
}

int unlink(const char* path) noexcept {
  PLIMSOLL_REAL(unlink);
  return judge("unlink", path, false) == Verdict::kFail ? -1 : next(path);
}

int unlinkat(int fd, const char* path, int flags) noexcept {
  PLIMSOLL_REAL(unlinkat);
  const bool by_folder = fd != AT_FDCWD && path[0] != '/';
  const Verdict verdict = by_folder ? judge("unlinkat", fd, false) : judge("unlinkat", path, false);
  return verdict == Verdict::kFail ? -1 : next(fd, path, flags);
}

int rmdir(const char* path) noexcept {
  PLIMSOLL_REAL(rmdir);
  return judge("rmdir", path, false) == Verdict::kFail ? -1 : next(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  PLIMSOLL_REAL(mkdir);
  return judge("mkdir", path, true) == Verdict::kFail ? -1 : next(path, mode);
}

int open(const char* path, int flags, ...) {
  PLIMSOLL_REAL(open);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = static_cast<mode_t>(va_arg(arguments, unsigned));  // meaningless where nothing is made
  va_end(arguments);
  const bool makes = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  if (makes && judge("open", path, true) == Verdict::kFail) return -1;
  return next(path, flags, mode);
}

}  // extern "C"
