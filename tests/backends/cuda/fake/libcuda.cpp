// A driver without a card, for tests: libcuda.so.1 as backends/cuda/api.h calls it, with the rules of capture
// that a real one enforces. Memory is the host's, and work is done when it is queued, or recorded where its
// stream is captured. Of kernels there is the one of `add` alone. PLIMSOLL_FAKE_CUDA=no-card, or small: a
// card of 1 MiB. PLIMSOLL_FAKE_CUDA_FAULT=N: the N-th call since it was set is refused, and does nothing.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"

using plimsoll::cuda::Binary;
using plimsoll::cuda::DevicePointer;
using plimsoll::cuda::Handle;

namespace {

enum {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidContext = 201,
  kNotFound = 500,
  kCaptureInvalid = 900,
  kUnjoined = 904,
  kIsolation = 905,
  kRefused = 999
};

struct Capture {
  std::vector<std::function<void()>> work;
  std::set<struct Stream*> streams, unjoined;
};
struct Stream {
  Capture* capture = nullptr;
};
struct Event {
  Capture* capture = nullptr;  ///< within which it was recorded last
  Stream* stream = nullptr;
};
struct Graph {
  std::vector<std::function<void()>> work;
};
enum class Kernel { kAdd };

std::recursive_mutex turn;
thread_local bool current = false;
size_t taken = 0;
std::vector<std::pair<DevicePointer, size_t>> allocations;
int context = 0;

bool is(const char* word) {
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA");
  return text != nullptr && std::strcmp(text, word) == 0;
}
/// Whether this call is the one that is refused; counted anew whenever another number is set.
bool refused() {
  static std::string before;
  static long calls = 0;
  const std::lock_guard lock(turn);
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA_FAULT");
  const std::string asked = text == nullptr ? "" : text;
  if (asked != before) before = asked, calls = 0;
  return !asked.empty() && ++calls == std::atol(asked.c_str());
}
size_t total() { return is("small") ? size_t{1} << 20 : size_t{8} << 30; }
void* at(DevicePointer p) { return reinterpret_cast<void*>(p); }

/// Device and pinned memory.
bool reached(DevicePointer p) {
  const std::lock_guard lock(turn);
  for (const auto& [begin, bytes] : allocations)
    if (begin <= p && p < begin + bytes) return true;
  return false;
}

int queue(Handle handle, std::function<void()> work) {
  const std::lock_guard lock(turn);
  if (!current) return kInvalidContext;
  auto* stream = static_cast<Stream*>(handle);
  if (stream->capture == nullptr) {
    work();
    return kOk;
  }
  stream->capture->work.push_back(std::move(work));
  if (stream->capture->streams.count(stream) != 0) stream->capture->unjoined.insert(stream);
  return kOk;
}

void add(const Binary& a) {
  for (int64_t i = 0; i < a.n; ++i)
    static_cast<float*>(a.out.data)[i] = static_cast<float*>(a.x.data)[i] + static_cast<float*>(a.y.data)[i];
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (refused()) return kRefused;
  return is("no-card") ? kNoDevice : kOk;
}
int cuDriverGetVersion(int* version) { return *version = 13000, kOk; }
int cuGetErrorName(int error, const char** name) {
  *name = error == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kNoDevice  ? "CUDA_ERROR_NO_DEVICE"
                                : "CUDA_ERROR_FAKE";
  return kOk;
}
int cuGetErrorString(int error, const char** text) {
  static thread_local std::string words;
  words = "error " + std::to_string(error);
  return *text = words.c_str(), kOk;
}
int cuDeviceGetCount(int* count) {
  if (refused()) return kRefused;
  return *count = 1, kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  if (refused()) return kRefused;
  return *device = ordinal, ordinal == 0 ? kOk : kInvalid;
}
int cuDeviceGetName(char* name, int length, int) {
  if (refused()) return kRefused;

  return std::strncpy(name, "Fake card", static_cast<size_t>(length)), kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  if (refused()) return kRefused;
  return *value = attribute == 75 ? 9 : 0, kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  if (refused()) return kRefused;
  return *bytes = total(), kOk;
}
int cuDevicePrimaryCtxRetain(Handle* made, int) {
  if (refused()) return kRefused;
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

  const std::lock_guard lock(turn);
  if (!current) return kInvalidContext;
  if (bytes == 0) return kInvalid;
  if (bytes > total() - taken) return kOutOfMemory;
  *made = reinterpret_cast<DevicePointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  allocations.emplace_back(*made, bytes);
  taken += bytes;
  return kOk;
}
int cuMemFree_v2(DevicePointer given) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  for (auto& [begin, bytes] : allocations)
    if (begin == given) {
      std::free(at(given));
      taken -= bytes;
      begin = 0;
      return kOk;
    }
  return kInvalid;
}
int cuMemHostAlloc(void** made, size_t bytes, unsigned) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  *made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  allocations.emplace_back(reinterpret_cast<DevicePointer>(*made), bytes);
  return kOk;
}
int cuMemFreeHost(void* given) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  for (auto& [begin, bytes] : allocations)
    if (begin == reinterpret_cast<DevicePointer>(given)) begin = bytes = 0;
  return std::free(given), kOk;
}
int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, Handle stream) {
  if (refused()) return kRefused;

  return queue(stream, [=] { std::memcpy(at(to), at(from), bytes); });
}
int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, Handle stream) {
  if (refused()) return kRefused;

  return queue(stream, [=] { std::memset(at(to), value, count); });
}
int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, Handle stream) {
  if (refused()) return kRefused;

  if (to % 4 != 0 || !reached(to)) return kInvalid;
  return queue(stream, [=] {
    for (size_t i = 0; i < count; ++i) static_cast<unsigned*>(at(to))[i] = value;
  });
}
int cuLaunchHostFunc(Handle stream, void (*function)(void*), void* data) {
  if (refused()) return kRefused;

  return queue(stream, [=] { function(data); });
}
int cuStreamCreate(Handle* made, unsigned) {
  if (refused()) return kRefused;
  return *made = new Stream, kOk;
}
int cuStreamDestroy_v2(Handle stream) {
  if (refused()) return kRefused;
  return delete static_cast<Stream*>(stream), kOk;
}
int cuStreamSynchronize(Handle stream) {
  if (refused()) return kRefused;

  return static_cast<Stream*>(stream)->capture != nullptr ? kCaptureInvalid : kOk;
}
int cuEventCreate(Handle* made, unsigned) {
  if (refused()) return kRefused;
  return *made = new Event, kOk;
}
int cuEventDestroy_v2(Handle event) {
  if (refused()) return kRefused;
  return delete static_cast<Event*>(event), kOk;
}
int cuEventRecord(Handle handle, Handle on) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  auto* event = static_cast<Event*>(handle);
  auto* stream = static_cast<Stream*>(on);
  event->capture = stream->capture;
  event->stream = stream;
  return kOk;
}
int cuStreamWaitEvent(Handle on, Handle handle, unsigned) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  auto* event = static_cast<Event*>(handle);
  auto* stream = static_cast<Stream*>(on);
  if (stream->capture != nullptr && event->capture != stream->capture) return kIsolation;
  if (event->capture != nullptr && stream->capture == nullptr) {  // joins the capture
    stream->capture = event->capture;
    event->capture->streams.insert(stream);
    event->capture->unjoined.insert(stream);
  } else if (event->capture != nullptr && event->stream != stream) {
    event->capture->unjoined.erase(event->stream);
  }
  return kOk;
}
int cuEventSynchronize(Handle event) {
  if (refused()) return kRefused;

  return static_cast<Event*>(event)->capture != nullptr ? kCaptureInvalid : kOk;
}
int cuStreamBeginCapture_v2(Handle handle, int) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  auto* stream = static_cast<Stream*>(handle);
  if (stream->capture != nullptr) return kCaptureInvalid;
  static std::vector<std::unique_ptr<Capture>> all;  // events point to them
  stream->capture = all.emplace_back(std::make_unique<Capture>()).get();
  return kOk;
}
int cuStreamEndCapture(Handle handle, Handle* made) {
  if (refused()) return kRefused;

  const std::lock_guard lock(turn);
  auto* stream = static_cast<Stream*>(handle);
  Capture* capture = stream->capture;
  *made = nullptr;
  if (capture == nullptr) return kCaptureInvalid;
  const bool joined = capture->unjoined.empty();
  stream->capture = nullptr;
  for (Stream* other : capture->streams) other->capture = nullptr;
  if (joined) *made = new Graph{capture->work};
  return joined ? kOk : kUnjoined;
}
int cuGraphInstantiateWithFlags(Handle* made, Handle graph, unsigned long long) {
  if (refused()) return kRefused;

  return *made = new Graph(*static_cast<Graph*>(graph)), kOk;
}
int cuGraphLaunch(Handle executable, Handle stream) {
  if (refused()) return kRefused;

  const auto* graph = static_cast<Graph*>(executable);
  if (static_cast<Stream*>(stream)->capture != nullptr) return kCaptureInvalid;
  return queue(stream, [=] {
    for (const auto& work : graph->work) work();
  });
}
int cuGraphDestroy(Handle graph) {
  delete static_cast<Graph*>(graph);  // whatever is answered: nobody asks twice
  return refused() ? kRefused : kOk;
}
int cuGraphExecDestroy(Handle executable) {
  delete static_cast<Graph*>(executable);  // whatever is answered: nobody asks twice
  return refused() ? kRefused : kOk;
}
int cuModuleLoadData(Handle* made, const void* image) {
  if (refused()) return kRefused;

  static int module = 0;
  return *made = &module, std::memcmp(image, "fake", 4) == 0 ? kOk : kInvalid;
}
int cuModuleUnload(Handle) {
  if (refused()) return kRefused;
  return kOk;
}
int cuModuleGetFunction(Handle* function, Handle, const char* name) {
  if (refused()) return kRefused;

  static Kernel kernel = Kernel::kAdd;
  return *function = &kernel, std::strcmp(name, "binary") == 0 ? kOk : kNotFound;
}
int cuFuncSetAttribute(Handle, int, int) {
  if (refused()) return kRefused;
  return kOk;
}
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Handle stream, void** arguments, void**) {
  if (refused()) return kRefused;

  const Binary a = *static_cast<const Binary*>(arguments[0]);
  return queue(stream, [=] { add(a); });
}

}  // extern "C"
