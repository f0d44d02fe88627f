// A driver without a card, for tests: libcuda.so.1 as backends/cuda/api.h calls it, with the rules that a
// real one enforces. Memory is the host's, ends where it ends and holds no numbers at first; kernels are
// those of twin/. PLIMSOLL_FAKE_CUDA=no-card, or small: a card of 1 MiB. PLIMSOLL_FAKE_CUDA_FAULT=N: the N-th
// call since it was set is refused, and does nothing. PLIMSOLL_FAKE_CARDS=2: so many cards.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "driver.h"

namespace fake {
namespace {

/// A mapping whose last page cannot be touched; the memory ends before it, aligned as a card aligns it.
struct Allocation {
  char* mapping;
  size_t mapped, bytes;
  bool is_device;
};
constexpr size_t kAlignment = 256, kPage = 4096, kSpoiled = size_t{4} << 20;

thread_local bool current = false;
size_t taken = 0;
std::map<DevicePointer, Allocation> allocations;
int context = 0;

int cards() {
  const char* given = std::getenv("PLIMSOLL_FAKE_CARDS");
  return given == nullptr ? 1 : std::atoi(given);
}
size_t total() { return is("small") ? size_t{1} << 20 : size_t{8} << 30; }

/// A file of pages of all ones, which are no numbers.
int spoiled_pages() {
  static const int file = [] {
    const int made = memfd_create("fake card", 0);
    const std::vector<unsigned char> ones(kSpoiled, 0xff);
    if (made < 0 || write(made, ones.data(), kSpoiled) != static_cast<ssize_t>(kSpoiled)) std::abort();
    return made;
  }();
  return file;
}
/// Makes whole pages hold no numbers until somebody writes there.
void spoil(char* begin, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kSpoiled)
    if (mmap(begin + at, std::min(kSpoiled, bytes - at), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
             spoiled_pages(), 0) == MAP_FAILED)
      std::abort();
}

DevicePointer take(size_t bytes, bool is_device) {
  const size_t used = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const size_t pages = (used + kPage - 1) / kPage * kPage, mapped = pages + kPage;
  void* at =
      mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  char* mapping = static_cast<char*>(at);
  mprotect(mapping + pages, kPage, PROT_NONE);
  char* begin = mapping + pages - used;
  if (is_device) spoil(mapping, pages);
  allocations[reinterpret_cast<DevicePointer>(begin)] = {mapping, mapped, bytes, is_device};
  if (is_device) taken += bytes;
  return reinterpret_cast<DevicePointer>(begin);
}
bool give_back(DevicePointer given) {
  const auto found = allocations.find(given);
  if (found == allocations.end()) return false;
  finish_all();  // as a driver waits for what may still use it
  munmap(found->second.mapping, found->second.mapped);
  if (found->second.is_device) taken -= found->second.bytes;
  allocations.erase(found);
  return true;
}

}  // namespace

bool is(const char* word) {
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA");
  return text != nullptr && std::strcmp(text, word) == 0;
}

bool refused() {
  static std::string before;
  static long calls = 0;
  const std::lock_guard lock(turn());
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA_FAULT");
  const std::string asked = text == nullptr ? "" : text;
  if (asked != before) before = asked, calls = 0;
  return !asked.empty() && ++calls == std::atol(asked.c_str());
}

std::recursive_mutex& turn() {
  static std::recursive_mutex mutex;
  return mutex;
}

bool has_context() { return current; }

bool is_reached(DevicePointer at, size_t bytes) {
  const std::lock_guard lock(turn());
  auto behind = allocations.upper_bound(at);
  if (behind == allocations.begin()) return false;
  const auto& [begin, allocation] = *--behind;
  return at + bytes <= begin + allocation.bytes;
}

}  // namespace fake

using namespace fake;

extern "C" {

int cuInit(unsigned) {
  // What waits in queues is allocated as it comes. A program counts a heap that grows as its own allocation.
  mallopt(M_TOP_PAD, 8 << 20);
  if (refused()) return kRefused;
  return is("no-card") ? kNoDevice : kOk;
}
int cuDriverGetVersion(int* version) { return *version = 13000, kOk; }
int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory    ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kNoDevice     ? "CUDA_ERROR_NO_DEVICE"
          : error == kInvalid      ? "CUDA_ERROR_INVALID_VALUE"
          : error == kLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED"
                                   : "CUDA_ERROR_FAKE";
  return kOk;
}
int cuGetErrorString(int error, const char** text) {
  static thread_local std::string words;
  words = "error " + std::to_string(error);
  if (error == kLaunchFailed) words += ": " + loss();
  return *text = words.c_str(), kOk;
}
int cuDeviceGetCount(int* count) {
  if (refused()) return kRefused;
  return *count = cards(), kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  if (refused()) return kRefused;
  return *device = ordinal, ordinal >= 0 && ordinal < cards() ? kOk : kInvalid;
}
int cuDeviceGetName(char* name, int length, int) {
  if (refused()) return kRefused;
  return std::strncpy(name, "Fake card", static_cast<size_t>(length)), kOk;
}
int plimsollFakeCapability() {
  const char* given = std::getenv("PLIMSOLL_FAKE_CAPABILITY");
  return given == nullptr ? 90 : std::atoi(given);
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  if (refused()) return kRefused;
  const int capability = plimsollFakeCapability();
  return *value = attribute == plimsoll::cuda::kComputeMajor   ? capability / 10
                  : attribute == plimsoll::cuda::kComputeMinor ? capability % 10
                                                               : 0,
         kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  if (refused()) return kRefused;
  return *bytes = total(), kOk;
}
int cuDevicePrimaryCtxRetain(Handle* made, int) {
  if (refused()) return kRefused;
  setenv("PLIMSOLL_FAKE_CONTEXT", "1", 1);
  return *made = &context, kOk;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  if (refused()) return kRefused;
  return kOk;
}
int cuCtxSetCurrent(Handle given) {
  if (refused()) return kRefused;
  return current = given == &context, kOk;
}
int cuMemAlloc_v2(DevicePointer* made, size_t bytes) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  if (!current) return kInvalidContext;
  if (bytes == 0) return kInvalid;
  if (bytes > total() - taken) return kOutOfMemory;
  *made = take(bytes, true);
  return *made == 0 ? kOutOfMemory : kOk;
}
int cuMemFree_v2(DevicePointer given) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  return give_back(given) ? kOk : kInvalid;
}
int cuMemHostAlloc(void** made, size_t bytes, unsigned) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  *made = reinterpret_cast<void*>(take(bytes, false));
  return *made == nullptr ? kOutOfMemory : kOk;
}
int cuMemFreeHost(void* given) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  return give_back(reinterpret_cast<DevicePointer>(given)) ? kOk : kInvalid;
}

}  // extern "C"
