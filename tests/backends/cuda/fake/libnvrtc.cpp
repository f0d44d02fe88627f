// A runtime compiler that makes the image that the fake driver loads, for tests. PLIMSOLL_FAKE_CUDA=broken:
// it finds an error.
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "backends/cuda/api.h"

using plimsoll::cuda::Handle;

namespace {
constexpr char kImage[] = "fake image of all kernels";
constexpr char kLog[] = "plimsoll.cu(1): error: as asked";
bool broken() {
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA");
  return text != nullptr && std::strcmp(text, "broken") == 0;
}
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 0, *minor = 1, 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(Handle* program, const char*, const char*, int, const char**, const char**) {
  static int one = 0;
  return *program = &one, 0;
}
int nvrtcDestroyProgram(Handle* program) { return *program = nullptr, 0; }
int nvrtcCompileProgram(Handle, int, const char**) { return broken() ? 6 : 0; }
int nvrtcGetProgramLogSize(Handle, size_t* bytes) { return *bytes = sizeof kLog, 0; }
int nvrtcGetProgramLog(Handle, char* text) { return std::memcpy(text, kLog, sizeof kLog), 0; }
constexpr int kKnown[] = {75, 80, 86, 89, 90, 100, 120};
int nvrtcGetNumSupportedArchs(int* count) { return *count = static_cast<int>(std::size(kKnown)), 0; }
int nvrtcGetSupportedArchs(int* known) { return std::memcpy(known, kKnown, sizeof kKnown), 0; }
int nvrtcGetPTXSize(Handle, size_t* bytes) { return *bytes = sizeof kImage, 0; }
int nvrtcGetPTX(Handle, char* image) { return std::memcpy(image, kImage, sizeof kImage), 0; }
int nvrtcGetCUBINSize(Handle, size_t* bytes) { return *bytes = sizeof kImage, 0; }
int nvrtcGetCUBIN(Handle, char* image) { return std::memcpy(image, kImage, sizeof kImage), 0; }
}
