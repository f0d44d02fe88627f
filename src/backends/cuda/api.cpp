#include "backends/cuda/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>

namespace plimsoll::cuda {

void* open_library(std::initializer_list<const char*> names) {
  const char* text = std::getenv("PLIMSOLL_CUDA_LIBRARIES");
  std::string_view folders = text == nullptr ? "" : text;
  while (!folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    for (const char* name : names)
      if (void* library = dlopen((std::string(folders.substr(0, end)) + "/" + name).c_str(), RTLD_NOW))
        return library;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  for (const char* name : names)
    if (void* library = dlopen(name, RTLD_NOW)) return library;
  return nullptr;
}

namespace {

/// Looks functions up and keeps the first that is missing.
class Lookup {
 public:
  explicit Lookup(void* library) : library_(library) {}
  template <typename Function>
  Lookup& operator()(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
    return *this;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

Error absent(const std::string& what, const std::string& hint) {
  return {ErrorCode::kIo, what, "runtime.device", hint};
}

Result<Driver> find_driver() {
  void* library = open_library({"libcuda.so.1"});
  if (library == nullptr)
    return absent("NVIDIA's driver is not installed: there is no libcuda.so.1",
                  "install the card's driver, or set runtime.device=cpu");
  Driver d;
  Lookup find(library);
  find(d.init, "cuInit")(d.version, "cuDriverGetVersion")(d.error_name, "cuGetErrorName");
  find(d.error_text, "cuGetErrorString")(d.device_count, "cuDeviceGetCount")(d.device_get, "cuDeviceGet");
  find(d.device_name, "cuDeviceGetName")(d.device_attribute, "cuDeviceGetAttribute");
  find(d.device_total_memory, "cuDeviceTotalMem_v2")(d.context_retain, "cuDevicePrimaryCtxRetain");
  find(d.context_release, "cuDevicePrimaryCtxRelease_v2")(d.context_set, "cuCtxSetCurrent");
  find(d.memory_allocate, "cuMemAlloc_v2")(d.memory_free, "cuMemFree_v2");
  find(d.host_allocate, "cuMemHostAlloc")(d.host_free, "cuMemFreeHost")(d.copy, "cuMemcpyAsync");
  find(d.set8, "cuMemsetD8Async")(d.set32, "cuMemsetD32Async")(d.host_function, "cuLaunchHostFunc");
  find(d.stream_create, "cuStreamCreate");
  find(d.stream_destroy, "cuStreamDestroy_v2")(d.stream_synchronize, "cuStreamSynchronize");
  find(d.stream_query, "cuStreamQuery")(d.event_query, "cuEventQuery");
  find(d.stream_wait, "cuStreamWaitEvent")(d.event_create, "cuEventCreate");
  find(d.event_destroy, "cuEventDestroy_v2")(d.event_record, "cuEventRecord");
  find(d.event_record_with, "cuEventRecordWithFlags")(d.event_elapsed, "cuEventElapsedTime");
  find(d.event_synchronize, "cuEventSynchronize");
  find(d.capture_begin, "cuStreamBeginCapture_v2")(d.capture_end, "cuStreamEndCapture");
  find(d.graph_instantiate, "cuGraphInstantiateWithFlags")(d.graph_launch, "cuGraphLaunch");
  find(d.graph_destroy, "cuGraphDestroy")(d.graph_executable_destroy, "cuGraphExecDestroy");
  find(d.module_load, "cuModuleLoadData")(d.module_unload, "cuModuleUnload");
  find(d.module_function, "cuModuleGetFunction")(d.function_set, "cuFuncSetAttribute");
  find(d.launch, "cuLaunchKernelEx");
  if (!find.missing().empty())
    return absent("NVIDIA's driver is too old: it has no " + find.missing(),
                  "install a driver of CUDA 12 or later");
  return d;
}

/// "libnvrtc.so." or another library of the toolkit.
void* open_toolkit_library(const std::string& stem) {
  int version = 0;
  if (const auto driver = load_driver()) (void)(*driver)->version(&version);
  const std::array<std::string, 2> names = toolkit_names(stem, version);
  return open_library({names[0].c_str(), names[1].c_str()});
}

Result<Compiler> find_compiler() {
  void* library = open_toolkit_library("libnvrtc.so.");
  if (library == nullptr)
    return absent("CUDA's runtime compiler is not found: there is no libnvrtc.so.13 or .12",
                  "install CUDA's toolkit or the wheel nvidia-cuda-nvrtc, and name its folder in "
                  "PLIMSOLL_CUDA_LIBRARIES");
  Compiler c;
  Lookup find(library);
  find(c.version, "nvrtcVersion")(c.error_text, "nvrtcGetErrorString")(c.create, "nvrtcCreateProgram");
  find(c.destroy, "nvrtcDestroyProgram")(c.compile, "nvrtcCompileProgram");
  find(c.log_size, "nvrtcGetProgramLogSize")(c.log, "nvrtcGetProgramLog");
  find(c.cubin_size, "nvrtcGetCUBINSize")(c.cubin, "nvrtcGetCUBIN");
  find(c.ptx_size, "nvrtcGetPTXSize")(c.ptx, "nvrtcGetPTX");
  find(c.num_architectures, "nvrtcGetNumSupportedArchs")(c.architectures, "nvrtcGetSupportedArchs");
  if (!find.missing().empty())
    return absent("CUDA's runtime compiler has no " + find.missing(), "install one of CUDA 12 or later");
  return c;
}

Result<Blas> find_blas() {
  void* library = open_toolkit_library("libcublasLt.so.");
  if (library == nullptr)
    return absent("cuBLASLt is not found: there is no libcublasLt.so.13 or .12",
                  "install CUDA's toolkit or the wheel nvidia-cublas, and name its folder in "
                  "PLIMSOLL_CUDA_LIBRARIES");
  Blas b;
  Lookup find(library);
  find(b.version, "cublasLtGetVersion");
  find(b.create, "cublasLtCreate")(b.destroy, "cublasLtDestroy");
  find(b.product_create, "cublasLtMatmulDescCreate")(b.product_destroy, "cublasLtMatmulDescDestroy");
  find(b.product_set, "cublasLtMatmulDescSetAttribute")(b.layout_create, "cublasLtMatrixLayoutCreate");
  find(b.layout_destroy, "cublasLtMatrixLayoutDestroy");
  find(b.preference_create, "cublasLtMatmulPreferenceCreate");
  find(b.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  find(b.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(b.choose, "cublasLtMatmulAlgoGetHeuristic")(b.check, "cublasLtMatmulAlgoCheck");
  find(b.multiply, "cublasLtMatmul");
  if (!find.missing().empty())
    return absent("cuBLASLt has no " + find.missing(), "install one of CUDA 12 or later");
  return b;
}

template <typename T>
Result<const T*> pointer_to(const Result<T>& found) {
  if (!found) return found.error();
  return &found.value();
}

}  // namespace

Result<const Driver*> load_driver() {
  static const Result<Driver> found = find_driver();
  return pointer_to(found);
}

Result<const Compiler*> load_compiler() {
  static const Result<Compiler> found = find_compiler();
  return pointer_to(found);
}

Result<const Blas*> load_blas() {
  static const Result<Blas> found = find_blas();
  return pointer_to(found);
}

Result<const Api*> load_api() {
  static const Result<Api> found = []() -> Result<Api> {
    Api api;
    PLIMSOLL_ASSIGN(const Driver* driver, load_driver());
    PLIMSOLL_ASSIGN(const Compiler* compiler, load_compiler());
    PLIMSOLL_ASSIGN(const Blas* blas, load_blas());
    api.driver = *driver;
    api.compiler = *compiler;
    api.blas = *blas;
    return api;
  }();
  return pointer_to(found);
}

std::array<std::string, 2> toolkit_names(const std::string& stem, int driver_version) {
  constexpr int kCuda13 = 13000;
  const bool older = driver_version > 0 && driver_version < kCuda13;
  return {stem + (older ? "12" : "13"), stem + (older ? "13" : "12")};
}

std::string error_text(const Driver& driver, int error) {
  const char *name = nullptr, *text = nullptr;
  driver.error_name(error, &name);
  driver.error_text(error, &text);
  return std::string(name == nullptr ? "an unknown error" : name) + (text == nullptr ? "" : ": ") +
         (text == nullptr ? "" : text);
}

}  // namespace plimsoll::cuda
