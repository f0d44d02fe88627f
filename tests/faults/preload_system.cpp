// Threads, processes and memory that the operating system refuses (preload.h), and where the program's main
// begins.
//
// The heap is glibc's by its own names. Beside the address sanitizer, which is loaded first, its heap comes
// first too, and only mappings are refused.
#include <pthread.h>
#include <spawn.h>

#include "preload.h"

using faults::judge;
using faults::Side;
using faults::Verdict;

extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  PLIMSOLL_REAL(pthread_create);
  if (judge(Side::kThread, "pthread_create") == Verdict::kFail) return EAGAIN;
  return next(thread, attributes, body, argument);
}

pid_t fork() noexcept {
  PLIMSOLL_REAL(fork);
  return judge(Side::kProcess, "fork") == Verdict::kFail ? -1 : next();
}

int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) noexcept {
  PLIMSOLL_REAL(posix_spawn);
  if (judge(Side::kProcess, "posix_spawn") == Verdict::kFail) return EAGAIN;
  return next(child, path, actions, attributes, arguments, environment);
}

int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) noexcept {
  PLIMSOLL_REAL(posix_spawnp);
  if (judge(Side::kProcess, "posix_spawn") == Verdict::kFail) return EAGAIN;
  return next(child, file, actions, attributes, arguments, environment);
}

void* __libc_malloc(size_t size);                      // NOLINT: reserved, and theirs
void* __libc_calloc(size_t count, size_t size);        // NOLINT
void* __libc_realloc(void* memory, size_t size);       // NOLINT
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT

void* malloc(size_t size) noexcept {
  return judge(Side::kMemory, "malloc") == Verdict::kFail ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  return judge(Side::kMemory, "calloc") == Verdict::kFail ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) noexcept {
  return judge(Side::kMemory, "realloc") == Verdict::kFail ? nullptr : __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  return judge(Side::kMemory, "aligned_alloc") == Verdict::kFail ? nullptr : __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) noexcept {
  return judge(Side::kMemory, "memalign") == Verdict::kFail ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  if (judge(Side::kMemory, "posix_memalign") == Verdict::kFail) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

using Main = int(int, char**, char**);
static Main* program_main = nullptr;
static int counted_main(int count, char** arguments, char** environment) {
  faults::in_main = true;
  return program_main(count, arguments, environment);
}
int __libc_start_main(Main* main, int count, char** arguments, void (*begin)(), void (*end)(),
                      void (*unload)(),  // NOLINT
                      void* stack) {
  static auto* const next = faults::real<decltype(__libc_start_main)>("__libc_start_main");
  program_main = main;
  return next(counted_main, count, arguments, begin, end, unload, stack);
}

}  // extern "C"
