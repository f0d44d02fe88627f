// The device's side of the kernels: the sources of kernels/*.cu, which the program carries, compiled for the
// card that is found.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/api.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// common.cuh and all .cu files of kernels/, one behind the other: one translation unit.
std::string kernel_source();

/// Machine code for cards of compute capability `capability` (90: H100). Takes seconds, and some hundred MiB
/// while it does: see load_image. Errors: kIo with the compiler's log.
Result<std::string> compile_kernels(const Compiler& compiler, int capability);

/// The same out of $XDG_CACHE_HOME/plimsoll/cuda, named by a checksum of source, capability and the
/// compiler's version; compiled and put there where it is not, or is damaged: in a process of its own, or,
/// where threads of this one run, within it. A cache that cannot be written is no error.
Result<std::string> load_image(const Compiler& compiler, int capability);

/// Functions of an image in a context.
class Module {
 public:
  /// The context is current. Errors: kIo of the driver.
  static Result<Module> load(const Driver& driver, const std::string& image);
  Module(Module&& other) noexcept;
  Module& operator=(Module&&) = delete;
  ~Module();
  /// `shared_bytes`: of dynamic shared memory that it is to be launched with. Errors: kIo with the name.
  Result<Handle> function(const char* name, uint32_t shared_bytes);

 private:
  Module(const Driver& driver, Handle module) : driver_(&driver), module_(module) {}
  struct Function {
    Handle handle = nullptr;
    uint32_t shared_bytes = 0;  ///< that it was allowed
  };
  const Driver* driver_;
  Handle module_ = nullptr;
  std::map<std::string, Function, std::less<>> functions_;
};

}  // namespace plimsoll::cuda
