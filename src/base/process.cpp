#include "base/process.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

std::atomic<size_t> num_threads{0};
constinit thread_local HeapCounters* mine = nullptr;  // of this thread

/// A locked addition is a tenth of what small allocations take: a thread that alone writes needs none.
void add_one(std::atomic<int64_t>& counter, bool is_shared) {
  if (is_shared)
    counter.fetch_add(1, std::memory_order_relaxed);
  else
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

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

void count_allocation(size_t bytes) {
  if (mine == nullptr) [[unlikely]]
    mine = &heap_counters[std::min(num_threads.fetch_add(1, std::memory_order_relaxed), kOwned)];
  const bool is_shared = mine == &heap_counters[kOwned];
  add_one(mine->all, is_shared);
  if (bytes >= static_cast<size_t>(kLargeAllocation)) add_one(mine->large, is_shared);
}

int64_t num_allocations() { return sum_of(&HeapCounters::all); }
int64_t num_large_allocations() { return sum_of(&HeapCounters::large); }

}  // namespace plimsoll
