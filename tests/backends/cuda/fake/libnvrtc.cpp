// A runtime compiler for tests: the image that it makes for the fake driver is the text itself.
// PLIMSOLL_FAKE_CUDA=broken: it finds an error; compiles-early: in a process that has a context.
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "backends/cuda/api.h"

using plimsoll::cuda::Handle;

namespace {
constexpr char kLog[] = "plimsoll.cu(1): error: as asked";
bool broken() {
  const char* text = std::getenv("PLIMSOLL_FAKE_CUDA");
  if (text == nullptr) return false;
  const bool is_late = std::getenv("PLIMSOLL_FAKE_CONTEXT") != nullptr;  // which the driver sets
  return std::strcmp(text, "broken") == 0 || (is_late && std::strcmp(text, "compiles-early") == 0);
}
std::string& image(Handle program) { return *static_cast<std::string*>(program); }
}  // namespace

extern "C" {
int nvrtcVersion(int* major, int* minor) { return *major = 0, *minor = 1, 0; }
const char* nvrtcGetErrorString(int) { return "NVRTC_ERROR_COMPILATION"; }
int nvrtcCreateProgram(Handle* program, const char* source, const char*, int headers, const char** contents,
                       const char**) {
  auto* text = new std::string("fake ");
  text->append(source);
  for (int i = 0; i < headers; ++i) text->append(contents[i]);
  text->push_back('\0');  // the image is told its end by this
  return *program = text, 0;
}
int nvrtcDestroyProgram(Handle* program) {
  delete static_cast<std::string*>(*program);
  return *program = nullptr, 0;
}
int nvrtcCompileProgram(Handle, int, const char**) { return broken() ? 6 : 0; }
int nvrtcGetProgramLogSize(Handle, size_t* bytes) { return *bytes = sizeof kLog, 0; }
int nvrtcGetProgramLog(Handle, char* text) { return std::memcpy(text, kLog, sizeof kLog), 0; }
constexpr int kKnown[] = {75, 80, 86, 89, 90, 100, 120};
int nvrtcGetNumSupportedArchs(int* count) { return *count = static_cast<int>(std::size(kKnown)), 0; }
int nvrtcGetSupportedArchs(int* known) { return std::memcpy(known, kKnown, sizeof kKnown), 0; }
int nvrtcGetPTXSize(Handle program, size_t* bytes) { return *bytes = image(program).size(), 0; }
int nvrtcGetPTX(Handle program, char* text) {
  return std::memcpy(text, image(program).data(), image(program).size()), 0;
}
int nvrtcGetCUBINSize(Handle program, size_t* bytes) { return *bytes = image(program).size(), 0; }
int nvrtcGetCUBIN(Handle program, char* text) {
  return std::memcpy(text, image(program).data(), image(program).size()), 0;
}
}
