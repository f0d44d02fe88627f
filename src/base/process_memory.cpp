#include "base/process_memory.h"

#include <sys/mman.h>

#include "base/kernel_file.h"

namespace plimsoll {
namespace {

int64_t status_kib(const char* key) {
  return std::max<int64_t>(0, KernelFile("/proc/self/status").number_after(key));
}

bool can_reserve(int64_t bytes) {
  if (bytes <= 0) return true;
  const auto length = static_cast<size_t>(bytes);
  void* at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return false;
  munmap(at, length);
  return true;
}

}  // namespace

int64_t resident_bytes() { return status_kib("VmRSS:") * 1024; }
int64_t swapped_bytes() { return status_kib("VmSwap:") * 1024; }

int64_t reservable_bytes(int64_t wanted) {
  constexpr int64_t kClose = int64_t{1} << 20;
  if (can_reserve(wanted)) return wanted;
  int64_t low = 0, high = wanted;
  while (high - low > kClose) {
    const int64_t middle = low + (high - low) / 2;
    (can_reserve(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace plimsoll
