// The device's side of the kernels, compiled for the card that is found: each .cu file of kernels/ is a
// module, a program of the compiler by itself.
#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "backends/cuda/api.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// What is compiled as one.
struct ModuleId {
  std::string module;   ///< "norm/norm"
  std::string defines;  ///< macros that specialise it: "HEAD_DIM=128 CAUSAL=1"; empty: none
  auto operator<=>(const ModuleId&) const = default;
};

/// Of the card's, the newest compute capability that the compiler makes code for. 0: it knows none.
int compiled_capability(const Compiler& compiler, int capability);

/// Machine code for cards of compute capability `capability` (90: H100), or PTX, which the driver compiles,
/// where the compiler is older than the card. Takes a second, and a hundred MiB while it does: see
/// load_images. Errors: kIo with the compiler's log.
Result<std::string> compile_module(const Compiler& compiler, const ModuleId& id, int capability);

/// The machine code of each, out of $XDG_CACHE_HOME/plimsoll/cuda, where a file is named by a checksum of a
/// module's text, its macros, the capability and the compiler's version. What is not there, or is damaged, is
/// compiled and put there: all of it side by side, in a process of its own, or, where threads of this one
/// run, within it. A cache that cannot be written is no error. Errors: as compile_module.
Result<std::vector<std::string>> load_images(const Compiler& compiler, std::span<const ModuleId> ids,
                                             int capability);

/// All modules, without macros.
std::vector<ModuleId> plain_modules();
/// The modules that read the first of these macros, specialised by all of them.
std::vector<ModuleId> modules_reading(const std::string& defines);

/// The modules of a context, and their functions.
class Modules {
 public:
  /// `is_cached`: images come by load_images; otherwise each is compiled in this process when it is first
  /// asked for.
  Modules(const Driver& driver, const Compiler& compiler, int capability, bool is_cached);
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  /// Finds or compiles the images of these. Needs no context. Errors: as load_images.
  Status find_images(std::span<const ModuleId> ids);
  /// Loads what find_images found. The context is current. Errors: kIo of the driver.
  Status load();
  /// All of them. The context is current.
  void unload();
  /// `shared_bytes`: of dynamic shared memory that it is to be launched with. A module that is not there is
  /// compiled and loaded; those that read the same macros are compiled beside it, for they are wanted soon.
  /// The context is current. Errors: kIo with the name; as compile_module.
  Result<Handle> function(std::string_view module, std::string_view defines, std::string_view name,
                          uint32_t shared_bytes);

 private:
  struct Function {
    Handle handle = nullptr;
    uint32_t shared_bytes = 0;  ///< that it was allowed
  };
  using Key = std::tuple<std::string, std::string, std::string>;  ///< module, macros, name
  using KeyView = std::tuple<std::string_view, std::string_view, std::string_view>;
  struct Less {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const { return a < b; }
  };
  Result<Handle> module(const ModuleId& id);
  Status load(const ModuleId& id, const std::string& image);

  const Driver& driver_;
  const Compiler& compiler_;
  int capability_;
  bool is_cached_;
  std::map<ModuleId, std::string> images_;  ///< that are to be loaded
  std::map<ModuleId, Handle> modules_;
  std::map<Key, Function, Less> functions_;
};

}  // namespace plimsoll::cuda
