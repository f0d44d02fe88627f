// Loaded before the C library (LD_PRELOAD), it makes a loader's reads of planted.npy as slow as those of a slow disk:
// PLANT_SECONDS each, past the cache with PLANT_DROP, the first PLANT_READS of them where it is set. The main thread's
// are left alone: before step 1 it holds all tokens against the vocabulary.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_long reads;

static void plant(int fd, size_t bytes) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n <= 0) return;
  path[n] = 0;
  if (!strstr(path, "planted.npy") || bytes < 16 || gettid() == getpid()) return;
  const char* most = getenv("PLANT_READS");
  if (most && atomic_fetch_add(&reads, 1) >= atol(most)) return;
  if (getenv("PLANT_DROP")) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);  // all: a part of a large folio stays
  const double seconds = atof(getenv("PLANT_SECONDS"));
  const struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (long)seconds))};
  nanosleep(&t, 0);
}

#define READ(name, type)                                                             \
  ssize_t name(int fd, void* to, size_t bytes, type offset) {                        \
    static ssize_t (*next)(int, void*, size_t, type);                                \
    if (!next) next = (ssize_t(*)(int, void*, size_t, type))dlsym(RTLD_NEXT, #name); \
    plant(fd, bytes);                                                                \
    return next(fd, to, bytes, offset);                                              \
  }
READ(pread, off_t)
READ(pread64, off_t)
