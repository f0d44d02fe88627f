// The calls by which a process reads files below the folder, looks at them or opens them (preload.h).
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "preload.h"

namespace {

using faults::half;
using faults::judge;
using faults::Side;
using faults::Verdict;

bool fails(const char* name, const char* path) { return judge(Side::kRead, name, path) == Verdict::kFail; }
bool fails(const char* name, int fd) { return judge(Side::kRead, name, fd) == Verdict::kFail; }
/// A name in a folder that is open counts as the folder's.
bool fails_at(const char* name, int folder, const char* path) {
  if (path[0] == '\0' || (path[0] != '/' && folder != AT_FDCWD)) return fails(name, folder);
  return fails(name, path);
}

}  // namespace

extern "C" {

ssize_t read(int fd, void* data, size_t size) {
  PLIMSOLL_REAL(read);
  const Verdict verdict = judge(Side::kRead, "read", fd);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size));
}

ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  PLIMSOLL_REAL(pread);
  const Verdict verdict = judge(Side::kRead, "pread", fd);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size), offset);
}

ssize_t pread64(int fd, void* data, size_t size, off64_t offset) {
  PLIMSOLL_REAL(pread64);
  const Verdict verdict = judge(Side::kRead, "pread", fd);
  return verdict == Verdict::kFail ? -1 : next(fd, data, half(verdict, size), offset);
}

int stat(const char* path, struct stat* info) noexcept {
  PLIMSOLL_REAL(stat);
  return fails("stat", path) ? -1 : next(path, info);
}

int stat64(const char* path, struct stat64* info) noexcept {
  PLIMSOLL_REAL(stat64);
  return fails("stat", path) ? -1 : next(path, info);
}

int lstat(const char* path, struct stat* info) noexcept {
  PLIMSOLL_REAL(lstat);
  return fails("lstat", path) ? -1 : next(path, info);
}

int fstat(int fd, struct stat* info) noexcept {
  PLIMSOLL_REAL(fstat);
  return fails("fstat", fd) ? -1 : next(fd, info);
}

int fstat64(int fd, struct stat64* info) noexcept {
  PLIMSOLL_REAL(fstat64);
  return fails("fstat", fd) ? -1 : next(fd, info);
}

int fstatat(int folder, const char* path, struct stat* info, int flags) noexcept {
  PLIMSOLL_REAL(fstatat);
  return fails_at("fstatat", folder, path) ? -1 : next(folder, path, info, flags);
}

int statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) noexcept {
  PLIMSOLL_REAL(statx);
  return fails_at("statx", folder, path) ? -1 : next(folder, path, flags, mask, info);
}

DIR* opendir(const char* path) {
  PLIMSOLL_REAL(opendir);
  return fails("opendir", path) ? nullptr : next(path);
}

FILE* fopen(const char* path, const char* mode) {
  PLIMSOLL_REAL(fopen);
  return fails("fopen", path) ? nullptr : next(path, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  PLIMSOLL_REAL(fopen64);
  return fails("fopen", path) ? nullptr : next(path, mode);
}

/// Of a file it is a read, of nothing a request for memory.
static void* mapped(void* (*next)(void*, size_t, int, int, int, off64_t), void* at, size_t size,
                    int protection, int flags, int fd, off64_t offset) {
  const bool refused =
      (flags & MAP_ANONYMOUS) != 0 ? judge(Side::kMemory, "mmap") == Verdict::kFail : fails("mmap", fd);
  return refused ? MAP_FAILED : next(at, size, protection, flags, fd, offset);
}

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  PLIMSOLL_REAL(mmap);
  return mapped(next, at, size, protection, flags, fd, offset);
}

void* mmap64(void* at, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  PLIMSOLL_REAL(mmap64);
  return mapped(next, at, size, protection, flags, fd, offset);
}

}  // extern "C"
