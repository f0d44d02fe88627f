#include "base/process.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace plimsoll {
namespace {

/// The start of a small kernel file, in a buffer on the stack: these are called while allocations are
/// counted.
struct KernelFile {
  explicit KernelFile(const char* path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = read(fd, text.data(), text.size() - 1);
    text[static_cast<size_t>(std::max<ssize_t>(n, 0))] = '\0';
    close(fd);
  }
  /// The number after `key`, -1 where it is absent.
  [[nodiscard]] int64_t number_after(const char* key) const {
    const char* at = std::strstr(text.data(), key);
    return at == nullptr ? -1 : std::strtoll(at + std::strlen(key), nullptr, 10);
  }
  std::array<char, 8192> text{};
};

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

int64_t cgroup_number(const char* v2, const char* v1) {
  for (const char* path : {v2, v1}) {
    const KernelFile file(path);
    char* end = nullptr;
    const int64_t value = std::strtoll(file.text.data(), &end, 10);
    if (end != file.text.data()) return value;
  }
  return kNone;
}

std::atomic<int64_t> large_allocations{0};

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t peak_resident_bytes() { return KernelFile("/proc/self/status").number_after("VmHWM:") * 1024; }

int64_t virtual_bytes() {
  const KernelFile file("/proc/self/statm");
  return std::strtoll(file.text.data(), nullptr, 10) * sysconf(_SC_PAGESIZE);
}

int64_t total_memory_bytes() {
  const int64_t physical = KernelFile("/proc/meminfo").number_after("MemTotal:") * 1024;
  return std::min(physical,
                  cgroup_number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

int64_t available_memory_bytes() {
  const int64_t available = KernelFile("/proc/meminfo").number_after("MemAvailable:") * 1024;
  const int64_t limit =
      cgroup_number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const int64_t used =
      cgroup_number("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes");
  return limit == kNone || used == kNone ? available : std::min(available, limit - used);
}

std::string executable_path() {
  std::array<char, 4096> buffer{};
  const ssize_t n = readlink("/proc/self/exe", buffer.data(), buffer.size() - 1);
  return n > 0 ? std::string(buffer.data(), static_cast<size_t>(n)) : "plimsoll";
}

int num_available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

int64_t num_large_allocations() { return large_allocations.load(std::memory_order_relaxed); }

}  // namespace plimsoll

// The replaced global operators count; sanitizers bring their own, which must stay.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

void* allocate(std::size_t bytes) {
  if (bytes >= static_cast<std::size_t>(plimsoll::kLargeAllocation))
    plimsoll::large_allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::malloc(bytes == 0 ? 1 : bytes);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
#endif
