#include "base/process.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/kernel_file.h"

namespace plimsoll {
namespace {

/// Counters of one thread, on a cache line of their own; the last are shared by all threads that came when
/// the others were taken.
struct alignas(64) HeapCounters {
  std::atomic<int64_t> all{0}, large{0};
};
constexpr size_t kOwned = 63;
std::array<HeapCounters, kOwned + 1> heap_counters;

int64_t sum_of(std::atomic<int64_t> HeapCounters::*counter) {
  int64_t sum = 0;
  for (const HeapCounters& c : heap_counters) sum += (c.*counter).load(std::memory_order_relaxed);
  return sum;
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t peak_resident_bytes() { return KernelFile("/proc/self/status").number_after("VmHWM:") * 1024; }

int64_t virtual_bytes() {
  const KernelFile file("/proc/self/statm");
  return std::strtoll(file.text.data(), nullptr, 10) * sysconf(_SC_PAGESIZE);
}

std::string executable_path() {
  std::array<char, 4096> buffer{};
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n)) : "plimsoll";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return {};
}

std::string user_cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') return cache;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache";
  return {};
}

int num_available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int64_t num_allocations() { return sum_of(&HeapCounters::all); }
int64_t num_large_allocations() { return sum_of(&HeapCounters::large); }

}  // namespace plimsoll

// The C library's allocator with a count before it: operator new and every library end here. Sanitizers bring
// their own, which must stay.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PLIMSOLL_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLIMSOLL_SANITIZED
#endif

#if defined(__GLIBC__) && !defined(PLIMSOLL_SANITIZED)
namespace {

std::atomic<std::size_t> num_threads{0};
constinit thread_local plimsoll::HeapCounters* mine = nullptr;  // of this thread

/// A locked addition is a tenth of what small allocations take: a thread that alone writes needs none.
void add_one(std::atomic<int64_t>& counter, bool is_shared) {
  if (is_shared)
    counter.fetch_add(1, std::memory_order_relaxed);
  else
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void count(std::size_t bytes) {
  using plimsoll::kOwned;
  if (mine == nullptr) [[unlikely]]
    mine = &plimsoll::heap_counters[std::min(num_threads.fetch_add(1, std::memory_order_relaxed), kOwned)];
  const bool is_shared = mine == &plimsoll::heap_counters[kOwned];
  add_one(mine->all, is_shared);
  if (bytes >= static_cast<std::size_t>(plimsoll::kLargeAllocation)) add_one(mine->large, is_shared);
}

}  // namespace

extern "C" {
// glibc's own names of what is replaced here.
void* __libc_malloc(std::size_t bytes);                           // NOLINT: reserved, and theirs
void* __libc_calloc(std::size_t n, std::size_t bytes);            // NOLINT
void* __libc_realloc(void* p, std::size_t bytes);                 // NOLINT
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT

void* malloc(std::size_t bytes) {
  count(bytes);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t n, std::size_t bytes) {
  count(n * bytes);
  return __libc_calloc(n, bytes);
}
void* realloc(void* p, std::size_t bytes) {
  count(bytes);
  return __libc_realloc(p, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** p, std::size_t alignment, std::size_t bytes) {
  const bool is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!is_power || alignment % sizeof(void*) != 0) return EINVAL;
  count(bytes);
  void* got = __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *p = got;
  return 0;
}
}
#endif
