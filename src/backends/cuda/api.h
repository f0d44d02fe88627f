// The calls of NVIDIA's driver, of its runtime compiler and of cuBLASLt that this backend makes, looked up
// when a device is made: Plimsoll is built without CUDA, and runs where there is none. Names, arguments and
// numbers as in cuda.h, nvrtc.h and cublasLt.h of CUDA 13.0; the functions chosen have kept their binary form
// since CUDA 12.0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/result.h"

namespace plimsoll::cuda {

using DevicePointer = unsigned long long;  // CUdeviceptr
using Handle = void*;                      // CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUgraph, …

/// Opens one of `names`: in the folders of PLIMSOLL_CUDA_LIBRARIES, then as the linker finds it. Null where
/// there is none.
void* open_library(std::initializer_list<const char*> names);

/// CUlaunchAttribute: the value is a union of 64 bytes.
struct alignas(8) LaunchAttribute {
  int id = 0, padding = 0, value = 0;
  int rest[15] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);
/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid_x = 1, grid_y = 1, grid_z = 1, block_x = 1, block_y = 1, block_z = 1, shared_bytes = 0;
  Handle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned num_attributes = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

/// libcuda.so.1, which comes with the driver. Each returns a CUresult, 0 where all is well.
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;  ///< 13000: of CUDA that it is made for. Before init too
  int (*error_name)(int error, const char** name) = nullptr;
  int (*error_text)(int error, const char** text) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_total_memory)(size_t* bytes, int device) = nullptr;
  int (*context_retain)(Handle* context, int device) = nullptr;
  int (*context_release)(int device) = nullptr;
  int (*context_set)(Handle context) = nullptr;
  int (*memory_allocate)(DevicePointer* at, size_t bytes) = nullptr;
  int (*memory_free)(DevicePointer at) = nullptr;
  int (*host_allocate)(void** at, size_t bytes, unsigned flags) = nullptr;
  int (*host_free)(void* at) = nullptr;
  int (*copy)(DevicePointer to, DevicePointer from, size_t bytes, Handle stream) = nullptr;
  int (*set8)(DevicePointer at, unsigned char value, size_t count, Handle stream) = nullptr;
  int (*set32)(DevicePointer at, unsigned value, size_t count, Handle stream) = nullptr;
  int (*host_function)(Handle stream, void (*function)(void*), void* data) = nullptr;
  int (*stream_create)(Handle* stream, unsigned flags) = nullptr;
  int (*stream_destroy)(Handle stream) = nullptr;
  int (*stream_synchronize)(Handle stream) = nullptr;
  int (*stream_query)(Handle stream) = nullptr;  ///< kNotReady while it works
  int (*stream_wait)(Handle stream, Handle event, unsigned flags) = nullptr;
  int (*event_create)(Handle* event, unsigned flags) = nullptr;
  int (*event_destroy)(Handle event) = nullptr;
  int (*event_record)(Handle event, Handle stream) = nullptr;
  int (*event_record_with)(Handle event, Handle stream, unsigned flags) = nullptr;
  int (*event_synchronize)(Handle event) = nullptr;
  int (*event_query)(Handle event) = nullptr;  ///< as stream_query
  /// Of two that were made with timing and have been reached.
  int (*event_elapsed)(float* milliseconds, Handle from, Handle to) = nullptr;
  int (*capture_begin)(Handle stream, int mode) = nullptr;
  int (*capture_end)(Handle stream, Handle* graph) = nullptr;
  int (*graph_instantiate)(Handle* executable, Handle graph, unsigned long long flags) = nullptr;
  int (*graph_launch)(Handle executable, Handle stream) = nullptr;
  int (*graph_destroy)(Handle graph) = nullptr;
  int (*graph_executable_destroy)(Handle executable) = nullptr;
  int (*module_load)(Handle* module, const void* image) = nullptr;
  int (*module_unload)(Handle module) = nullptr;
  int (*module_function)(Handle* function, Handle module, const char* name) = nullptr;
  int (*function_set)(Handle function, int attribute, int value) = nullptr;
  int (*launch)(const LaunchConfig* config, Handle function, void** arguments, void** extra) = nullptr;
};
inline constexpr int kNotReady = 600;                         // CUDA_ERROR_NOT_READY
inline constexpr int kComputeMajor = 75, kComputeMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
inline constexpr int kMaxDynamicShared = 8;     // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
inline constexpr unsigned kNonBlocking = 1;     // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kNoTiming = 2;        // CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kWithTiming = 0;      // CU_EVENT_DEFAULT
inline constexpr unsigned kRecordExternal = 1;  // CU_EVENT_RECORD_EXTERNAL
inline constexpr int kCaptureRelaxed = 2;       // CU_STREAM_CAPTURE_MODE_RELAXED
inline constexpr int kEarlyBegin = 6;           // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

/// libnvrtc.so.13 or .12: that of the driver's major version where both are there. Each returns an
/// nvrtcResult, 0 where all is well.
struct Compiler {
  int (*version)(int* major, int* minor) = nullptr;
  const char* (*error_text)(int error) = nullptr;
  int (*create)(Handle* program, const char* source, const char* name, int headers, const char** contents,
                const char** names) = nullptr;
  int (*destroy)(Handle* program) = nullptr;
  int (*compile)(Handle program, int options, const char** texts) = nullptr;
  int (*log_size)(Handle program, size_t* bytes) = nullptr;
  int (*log)(Handle program, char* text) = nullptr;
  int (*cubin_size)(Handle program, size_t* bytes) = nullptr;
  int (*cubin)(Handle program, char* image) = nullptr;
  int (*ptx_size)(Handle program, size_t* bytes) = nullptr;
  int (*ptx)(Handle program, char* text) = nullptr;
  int (*num_architectures)(int* count) = nullptr;
  int (*architectures)(int* capabilities) = nullptr;  ///< ascending, as capabilities: 75, 80, …
};

/// libcublasLt.so.13 or .12, chosen as the compiler. Each returns a cublasStatus_t, 0 where all is well.
struct Blas {
  size_t (*version)() = nullptr;  ///< 130100 of 13.1.0
  int (*create)(Handle* handle) = nullptr;
  int (*destroy)(Handle handle) = nullptr;
  int (*product_create)(Handle* product, int compute_type, int scale_type) = nullptr;
  int (*product_destroy)(Handle product) = nullptr;
  int (*product_set)(Handle product, int attribute, const void* value, size_t bytes) = nullptr;
  int (*layout_create)(Handle* layout, int type, uint64_t rows, uint64_t columns, int64_t pitch) = nullptr;
  int (*layout_destroy)(Handle layout) = nullptr;
  int (*preference_create)(Handle* preference) = nullptr;
  int (*preference_destroy)(Handle preference) = nullptr;
  int (*preference_set)(Handle preference, int attribute, const void* value, size_t bytes) = nullptr;
  int (*choose)(Handle handle, Handle product, Handle a, Handle b, Handle c, Handle d, Handle preference,
                int wanted, void* results, int* found) = nullptr;
  /// `result`: as those of `choose`.
  int (*check)(Handle handle, Handle product, Handle a, Handle b, Handle c, Handle d, const void* algorithm,
               void* result) = nullptr;
  int (*multiply)(Handle handle, Handle product, const void* alpha, const void* a, Handle a_layout,
                  const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout, void* d,
                  Handle d_layout, const void* algorithm, void* workspace, size_t workspace_bytes,
                  Handle stream) = nullptr;
};

struct Api {
  Driver driver;
  Compiler compiler;
  Blas blas;
};

/// Loads the three libraries, once for the process; they stay. Looked for as the dynamic linker does, and in
/// the folders of PLIMSOLL_CUDA_LIBRARIES (colons between). Errors: kIo with the library's or function's name
/// and which package has it.
Result<const Api*> load_api();
/// The driver alone.
Result<const Driver*> load_driver();
/// The compiler alone, which needs no card.
Result<const Compiler*> load_compiler();
/// cuBLASLt alone.
Result<const Blas*> load_blas();

/// The names of a library of the toolkit, "libnvrtc.so." with the versions that will do, the best first. A
/// library works with drivers of its major version and later ones, so that a driver of CUDA 12 (12080) gets
/// that of CUDA 12 where both are there; 0: no driver is known.
std::array<std::string, 2> toolkit_names(const std::string& stem, int driver_version);

/// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
std::string error_text(const Driver& driver, int error);

}  // namespace plimsoll::cuda
