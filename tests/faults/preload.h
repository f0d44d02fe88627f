// What the preloaded libraries' parts share: which calls are counted, and what happens to the N-th.
//
//   PLIMSOLL_FAULT_DIR   the folder, absolute, of the files that count; without it nothing happens
//   PLIMSOLL_FAULT_SIDE  which calls are counted, from the program's main on:
//                        write (the default): what takes space below the folder or changes a name there
//                        read: what reads a file below it, looks at it or opens it
//                        thread: pthread_create       process: fork, posix_spawn
//                        memory: requests of the heap, and mappings
//   PLIMSOLL_FAULT_KIND  list: a line "name path" a call into PLIMSOLL_FAULT_LIST, nothing else
//                        kill: SIGKILL before the call
//                        eio: the call fails, later ones do not (EIO; EAGAIN of threads and processes, ENOMEM
//                        of memory) gone: it and all later ones fail so enospc: it and all later ones that
//                        take space fail with ENOSPC short: a read or a write moves half of its bytes; other
//                        calls are as ever
//   PLIMSOLL_FAULT_AT    N, from 1
//   PLIMSOLL_FAULT_MATCH only files whose path has this within it count, "(deleted)": those without a name
//   PLIMSOLL_FAULT_SLOW  microseconds that each write below the folder takes longer
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace faults {

enum class Kind { kNone, kList, kKill, kEio, kGone, kEnospc, kShort };
enum class Side { kWrite, kRead, kThread, kProcess, kMemory };
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
           : name == "gone"   ? Kind::kGone
           : name == "enospc" ? Kind::kEnospc
           : name == "short"  ? Kind::kShort
                              : Kind::kNone;
    if (const char* chosen = std::getenv("PLIMSOLL_FAULT_SIDE")) {
      const std::string_view s = chosen;
      side = s == "read"      ? Side::kRead
             : s == "thread"  ? Side::kThread
             : s == "process" ? Side::kProcess
             : s == "memory"  ? Side::kMemory
                              : Side::kWrite;
    }
    if (const char* number = std::getenv("PLIMSOLL_FAULT_AT")) at = std::atol(number);
    if (const char* number = std::getenv("PLIMSOLL_FAULT_SLOW")) slow = std::atol(number);
    if (const char* file = std::getenv("PLIMSOLL_FAULT_LIST"))
      list = static_cast<int>(
          ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644));
  }
  Kind kind = Kind::kNone;
  Side side = Side::kWrite;
  std::string_view directory;
  const char* match = std::getenv("PLIMSOLL_FAULT_MATCH");
  long at = 0, slow = 0;
  int list = -1;
};

/// Before main there need not be an environment.
inline std::atomic<bool> in_main{false};
inline const Plan& plan() {
  static const Plan the_plan;
  return the_plan;
}
inline std::atomic<long> calls{0};
inline bool is_active() { return in_main.load(std::memory_order_relaxed) && plan().kind != Kind::kNone; }

/// An absolute path, or one below the working folder, of what is counted.
inline bool is_below(const char* path) {
  char absolute[PATH_MAX];
  if (path[0] != '/') {
    if (::syscall(SYS_getcwd, absolute, sizeof absolute / 2) < 0) return false;
    std::strncat(absolute, "/", 2);
    std::strncat(absolute, path, sizeof absolute / 2 - 2);
    path = absolute;
  }
  const std::string_view directory = plan().directory;
  return std::strncmp(path, directory.data(), directory.size()) == 0 &&
         (path[directory.size()] == '/' || path[directory.size()] == '\0');
}

inline int refusal(Side side) {
  return side == Side::kMemory ? ENOMEM : side == Side::kThread || side == Side::kProcess ? EAGAIN : EIO;
}

inline void write_line(const char* name, const char* path) {
  if (plan().list < 0) return;
  char line[PATH_MAX + 64];
  const int size = std::snprintf(line, sizeof line, "%s %s\n", name, path);
  const int before = errno;
  (void)!::syscall(SYS_write, plan().list, line, std::min(static_cast<size_t>(size), sizeof line - 1));
  errno = before;
}

/// What to do with a call of the side that is looked at.
inline Verdict count(const char* name, const char* path, bool takes_space) {
  const Plan& p = plan();
  const long number = calls.fetch_add(1) + 1;
  if (p.kind == Kind::kList || number == p.at) write_line(name, path);
  if (p.kind == Kind::kList) return Verdict::kPass;
  if (p.kind == Kind::kEnospc && number >= p.at && takes_space) return errno = ENOSPC, Verdict::kFail;
  if (p.kind == Kind::kGone && number >= p.at) return errno = refusal(p.side), Verdict::kFail;
  if (number != p.at) return Verdict::kPass;
  if (p.kind == Kind::kKill) ::kill(::getpid(), SIGKILL);
  if (p.kind == Kind::kEio) return errno = refusal(p.side), Verdict::kFail;
  return p.kind == Kind::kShort ? Verdict::kHalf : Verdict::kPass;
}

inline bool looks_at(Side side) { return is_active() && plan().side == side; }

/// What to do with a call that concerns `path`, or an open file.
inline Verdict judge(Side side, const char* name, const char* path, bool takes_space = false) {
  if (!looks_at(side) || path == nullptr || !is_below(path)) return Verdict::kPass;
  if (plan().match != nullptr && std::strstr(path, plan().match) == nullptr) return Verdict::kPass;
  return count(name, path, takes_space);
}
inline bool path_of(int fd, char (&path)[PATH_MAX]) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = ::syscall(SYS_readlink, link, path, sizeof path - 1);
  if (size <= 0) return false;
  path[size] = '\0';
  return path[0] == '/';  // a pipe has no folder
}
inline Verdict judge(Side side, const char* name, int fd, bool takes_space = false) {
  char path[PATH_MAX];
  return looks_at(side) && path_of(fd, path) ? judge(side, name, path, takes_space) : Verdict::kPass;
}
/// What is no file's.
inline Verdict judge(Side side, const char* name) {
  return looks_at(side) ? count(name, "", false) : Verdict::kPass;
}

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

inline size_t half(Verdict verdict, size_t size) { return verdict == Verdict::kHalf ? (size + 1) / 2 : size; }

}  // namespace faults

#define PLIMSOLL_REAL(name) static auto* const next = faults::real<decltype(name)>(#name)
