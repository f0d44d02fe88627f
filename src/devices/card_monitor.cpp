#include "devices/card_monitor.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "backends/cuda/api.h"

namespace plimsoll::devices {
namespace {

// Names, numbers and layouts: https://docs.nvidia.com/deploy/nvml-api/
using Handle = void*;
struct Utilization {
  unsigned gpu = 0, memory = 0;
};
struct MemoryInfo {
  unsigned long long total = 0, free = 0, used = 0;
};
enum Clock : int { kClockSm = 1, kClockMemory = 2 };
constexpr int kOk = 0, kTemperatureOfChip = 0;

struct Reason {
  unsigned long long bit;
  const char* text;
};
constexpr std::array kReasons = {
    Reason{0x2, "clocks set by hand"}, Reason{0x4, "power cap"},      Reason{0x8, "hardware slowdown"},
    Reason{0x10, "sync boost"},        Reason{0x20, "heat"},          Reason{0x40, "heat (hardware)"},
    Reason{0x80, "power brake"},       Reason{0x100, "display clock"}};

struct Library {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_index)(unsigned, Handle*) = nullptr;
  int (*by_uuid)(const char*, Handle*) = nullptr;
  // A card, or an old driver, may not have what follows.
  int (*utilization)(Handle, Utilization*) = nullptr;
  int (*memory)(Handle, MemoryInfo*) = nullptr;
  int (*clock)(Handle, int, unsigned*) = nullptr;
  int (*power)(Handle, unsigned*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*reasons)(Handle, unsigned long long*) = nullptr;
};

template <typename Function>
void find(void* library, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

Result<Library> find_library() {
  void* library = cuda::open_library({"libnvidia-ml.so.1"});
  if (library == nullptr) return Error{ErrorCode::kIo, "there is no libnvidia-ml.so.1", "NVML", {}};
  Library l;
  find(library, l.init, "nvmlInit_v2");
  find(library, l.shutdown, "nvmlShutdown");
  find(library, l.by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(library, l.by_uuid, "nvmlDeviceGetHandleByUUID");
  find(library, l.utilization, "nvmlDeviceGetUtilizationRates");
  find(library, l.memory, "nvmlDeviceGetMemoryInfo");
  find(library, l.clock, "nvmlDeviceGetClockInfo");
  find(library, l.power, "nvmlDeviceGetPowerUsage");
  find(library, l.temperature, "nvmlDeviceGetTemperature");
  find(library, l.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (l.init == nullptr || l.shutdown == nullptr || l.by_index == nullptr || l.by_uuid == nullptr)
    return Error{ErrorCode::kIo, "libnvidia-ml.so.1 lacks what it should have", "NVML", {}};
  return l;
}

/// The `ordinal`-th entry of CUDA_VISIBLE_DEVICES; empty where there is none.
std::string_view visible(int ordinal) {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string_view left = text == nullptr ? "" : text;
  for (; ordinal > 0 && !left.empty(); --ordinal) {
    const size_t comma = left.find(',');
    left = comma == left.npos ? "" : left.substr(comma + 1);
  }
  return left.substr(0, left.find(','));
}

class NvmlMonitor final : public CardMonitor {
 public:
  NvmlMonitor(const Library& library, Handle handle) : library_(library), handle_(handle) {}
  ~NvmlMonitor() override { library_.shutdown(); }
  NvmlMonitor(const NvmlMonitor&) = delete;
  NvmlMonitor& operator=(const NvmlMonitor&) = delete;

  [[nodiscard]] CardSample sample() const override {
    CardSample s;
    if (Utilization u; library_.utilization != nullptr && library_.utilization(handle_, &u) == kOk) {
      s.busy_percent = u.gpu;
      s.memory_busy_percent = u.memory;
    }
    if (MemoryInfo m; library_.memory != nullptr && library_.memory(handle_, &m) == kOk) {
      s.memory_used_bytes = static_cast<int64_t>(m.used);
      s.memory_total_bytes = static_cast<int64_t>(m.total);
    }
    s.clock_mhz = clock(kClockSm);
    s.memory_clock_mhz = clock(kClockMemory);
    if (unsigned n = 0; library_.power != nullptr && library_.power(handle_, &n) == kOk) s.milliwatts = n;
    if (unsigned n = 0;
        library_.temperature != nullptr && library_.temperature(handle_, kTemperatureOfChip, &n) == kOk)
      s.celsius = n;
    unsigned long long bits = 0;
    if (library_.reasons != nullptr && library_.reasons(handle_, &bits) == kOk)
      for (const Reason& reason : kReasons)
        if ((bits & reason.bit) != 0) s.slowed_by.emplace_back(reason.text);
    return s;
  }

 private:
  [[nodiscard]] int64_t clock(Clock which) const {
    unsigned mhz = 0;
    return library_.clock != nullptr && library_.clock(handle_, which, &mhz) == kOk ? int64_t{mhz} : -1;
  }

  Library library_;
  Handle handle_;
};

}  // namespace

Result<std::unique_ptr<CardMonitor>> open_card_monitor(int ordinal) {
  PLIMSOLL_ASSIGN(const Library library, find_library());
  if (library.init() != kOk) return Error{ErrorCode::kIo, "NVML does not start", "nvmlInit_v2", {}};
  const std::string name(visible(ordinal));
  auto index = static_cast<unsigned>(ordinal);
  const bool is_uuid = name.starts_with("GPU-");
  if (!is_uuid) std::from_chars(name.data(), name.data() + name.size(), index);
  Handle handle = nullptr;
  const int found = is_uuid ? library.by_uuid(name.c_str(), &handle) : library.by_index(index, &handle);
  if (found != kOk) {
    library.shutdown();
    return Error{ErrorCode::kIo, fmt::format("NVML knows no card {}", ordinal), "NVML", {}};
  }
  return std::unique_ptr<CardMonitor>(std::make_unique<NvmlMonitor>(library, handle));
}

}  // namespace plimsoll::devices
