// As much of NVML as a monitor asks, with two cards: figures that a test knows, and a second card that tells
// hardly anything.
#include <cstring>

extern "C" {

struct Utilization {
  unsigned gpu, memory;
};
struct MemoryInfo {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static char cards[2];
  if (index > 1) return 2;
  *device = &cards[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  if (std::strcmp(uuid, "GPU-first") != 0) return 6;
  return nvmlDeviceGetHandleByIndex_v2(0, device);
}

static bool is_first(void* device) {
  void* first = nullptr;
  nvmlDeviceGetHandleByIndex_v2(0, &first);
  return device == first;
}
constexpr int kNotSupported = 3;

int nvmlDeviceGetUtilizationRates(void* device, Utilization* u) {
  if (!is_first(device)) return kNotSupported;
  *u = {87, 41};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, MemoryInfo* m) {
  if (!is_first(device)) return kNotSupported;
  *m = {80ULL << 30, 60ULL << 30, 20ULL << 30};
  return 0;
}
int nvmlDeviceGetClockInfo(void* /*device*/, int type, unsigned* mhz) {
  *mhz = type == 1 ? 1755 : 2619;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 412500;
  return is_first(device) ? 0 : kNotSupported;
}
int nvmlDeviceGetTemperature(void* device, int /*sensor*/, unsigned* celsius) {
  *celsius = 71;
  return is_first(device) ? 0 : kNotSupported;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* bits) {
  *bits = 0x1 | 0x4 | 0x20;  // idle, power cap, heat
  return is_first(device) ? 0 : kNotSupported;
}

}  // extern "C"
