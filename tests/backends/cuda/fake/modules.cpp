// Modules and launches of the fake driver: kernels are looked up by name in the image, which is the text that
// was compiled (libnvrtc.cpp), and run as the host's compiler made them (twin/).
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "backends/cuda/twin/kernel.h"
#include "driver.h"

namespace fake {
namespace {

constexpr unsigned kAlwaysAllowed = 48 << 10, kMostShared = 227 << 10;  // of a block, compute capability 9.0
constexpr size_t kMostArguments = 4096;                                 // bytes, of drivers before CUDA 12.1

struct Function {
  const twin::Kernel* kernel;
  unsigned allowed = kAlwaysAllowed;  // bytes of dynamic shared memory
};
struct Module {
  std::string image;
  std::vector<std::unique_ptr<Function>> functions;
};

/// Arguments, each where it is aligned for any type.
class Arguments {
 public:
  Arguments(const twin::Kernel& kernel, void* const* given) {
    size_t words = 0;
    for (const size_t* size = kernel.sizes; *size != 0; ++size) {
      begins_.push_back(words);
      words += (*size + sizeof(Word) - 1) / sizeof(Word);
      bytes_ += *size;
    }
    words_.resize(words);
    for (size_t i = 0; i < begins_.size(); ++i) std::memcpy(&words_[begins_[i]], given[i], kernel.sizes[i]);
  }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  [[nodiscard]] std::vector<void*> pointers() const {
    std::vector<void*> all;
    for (const size_t begin : begins_) all.push_back(const_cast<Word*>(&words_[begin]));
    return all;
  }

 private:
  struct alignas(16) Word {
    unsigned char bytes[16];
  };
  std::vector<Word> words_;
  std::vector<size_t> begins_;
  size_t bytes_ = 0;
};

std::atomic<int64_t> early_launches{0};

/// Whether the launch may begin before the work before it has ended. Nothing: the attribute is no such one,
/// or the card has none.
std::optional<bool> is_early(const plimsoll::cuda::LaunchConfig& config) {
  if (config.num_attributes == 0) return false;
  const plimsoll::cuda::LaunchAttribute& attribute = *config.attributes;
  if (config.num_attributes > 1 || attribute.id != plimsoll::cuda::kEarlyBegin || attribute.value != 1)
    return std::nullopt;
  if (plimsollFakeCapability() < 90) return std::nullopt;
  return true;
}

bool is_extent(twin::Extent grid, twin::Extent block, const twin::Kernel& kernel) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  return grid.x > 0 && grid.y > 0 && grid.z > 0 && grid.x <= 0x7fffffffu && grid.y <= 65535 &&
         grid.z <= 65535 && threads > 0 && threads <= static_cast<size_t>(kernel.most_threads) &&
         block.z <= 64;
}

}  // namespace
}  // namespace fake

using namespace fake;

extern "C" {

int cuModuleLoadData(Handle* made, const void* image) {
  if (refused()) return kRefused;
  const auto* text = static_cast<const char*>(image);
  if (std::strncmp(text, "fake", 4) != 0) return kInvalid;
  return *made = new Module{text, {}}, kOk;
}
int cuModuleUnload(Handle module) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  finish_all();
  return delete static_cast<Module*>(module), kOk;
}
int cuModuleGetFunction(Handle* function, Handle handle, const char* name) {
  if (refused()) return kRefused;
  auto* module = static_cast<Module*>(handle);
  const twin::Kernel* kernel = twin::find_kernel(name);
  if (kernel == nullptr || module->image.find(std::string(" ") + name + "(") == std::string::npos)
    return kNotFound;
  return *function = module->functions.emplace_back(std::make_unique<Function>(Function{kernel})).get(), kOk;
}
int cuFuncSetAttribute(Handle function, int attribute, int value) {
  if (refused()) return kRefused;
  if (attribute != plimsoll::cuda::kMaxDynamicShared) return kOk;
  if (value < 0 || static_cast<unsigned>(value) > kMostShared) return kInvalid;
  return static_cast<Function*>(function)->allowed = static_cast<unsigned>(value), kOk;
}
int cuLaunchKernelEx(const plimsoll::cuda::LaunchConfig* config, Handle handle, void** given, void**) {
  if (refused()) return kRefused;
  const auto& function = *static_cast<Function*>(handle);
  const twin::Kernel& kernel = *function.kernel;
  const twin::Extent grid{config->grid_x, config->grid_y, config->grid_z},
      block{config->block_x, config->block_y, config->block_z};
  const unsigned shared_bytes = config->shared_bytes;
  const std::optional<bool> early = is_early(*config);
  if (!early || !is_extent(grid, block, kernel) || shared_bytes > function.allowed) return kInvalid;
  const auto arguments = std::make_shared<const Arguments>(kernel, given);
  if (arguments->bytes() > kMostArguments) return kInvalid;
  const double threads = double{1} * grid.x * grid.y * grid.z * block.x * block.y * block.z;
  if (*early) ++early_launches;
  return queue(config->stream, 1e-9 * threads, [=, &kernel] {
    if (!loss().empty()) return;
    loss() = twin::run_grid(kernel, grid, block, shared_bytes, arguments->pointers().data(), *early);
  });
}

/// How many launches might begin early.
int64_t plimsollFakeEarlyLaunches() { return early_launches; }

}  // extern "C"
