#include "backends/cuda/module.h"

#include <filesystem>
#include <utility>

#include "base/host.h"
#include "base/process.h"
#include "io/checksum.h"
#include "io/file.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kLargestImage = int64_t{64} << 20;

Error compile_error(const std::string& what, const std::string& log) {
  return {ErrorCode::kIo, what, "CUDA kernels",
          log.empty() ? "another version of the runtime compiler may do" : log};
}

/// Owns a program of the compiler.
class Program {
 public:
  Program(const Compiler& compiler, const std::string& source) : compiler_(compiler) {
    status_ = compiler.create(&program_, source.c_str(), "plimsoll.cu", 0, nullptr, nullptr);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) compiler_.destroy(&program_);
  }

  Result<std::string> compile(int capability) {
    if (status_ != 0) return compile_error(compiler_.error_text(status_), "");
    const std::string architecture = "--gpu-architecture=sm_" + std::to_string(capability);
    const char* options[] = {architecture.c_str(), "--std=c++17"};
    if (const int error = compiler_.compile(program_, 2, options); error != 0)
      return compile_error(compiler_.error_text(error), log());
    size_t bytes = 0;
    compiler_.cubin_size(program_, &bytes);
    std::string image(bytes, '\0');
    if (const int error = compiler_.cubin(program_, image.data()); error != 0)
      return compile_error(compiler_.error_text(error), "");
    return image;
  }

 private:
  [[nodiscard]] std::string log() const {
    size_t bytes = 0;
    compiler_.log_size(program_, &bytes);
    std::string text(bytes, '\0');
    compiler_.log(program_, text.data());
    return text;
  }
  const Compiler& compiler_;
  Handle program_ = nullptr;
  int status_ = 0;
};

std::string cache_path(const Compiler& compiler, int capability, const std::string& source) {
  int major = 0, minor = 0;
  compiler.version(&major, &minor);
  io::Checksum sum;
  sum.add(source);
  sum.add(" sm_" + std::to_string(capability) + " nvrtc " + std::to_string(major) + "." +
          std::to_string(minor));
  const std::string folder = user_cache_folder();
  return (folder.empty() ? "./.cache" : folder) + "/plimsoll/cuda/" + io::checksum_text(sum.value()) +
         ".cubin";
}

/// An image as the file holds it: a checksum, then the code.
constexpr size_t kDigits = 16;

Result<std::string> read_cached(const std::string& path) {
  PLIMSOLL_ASSIGN(std::string text, io::read_small_file(path, kLargestImage));
  const Error damaged{ErrorCode::kBadData, "not a whole image of kernels", path};
  if (text.size() <= kDigits) return damaged;
  const std::string image = text.substr(kDigits);
  if (io::checksum_text(io::checksum(image)) != text.substr(0, kDigits)) return damaged;
  return image;
}

void write_cached(const std::string& path, const std::string& image) {
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), code);
  (void)io::write_file_atomically(path, io::checksum_text(io::checksum(image)) + image);  // it is a cache
}

}  // namespace

Result<std::string> compile_kernels(const Compiler& compiler, int capability) {
  return Program(compiler, kernel_source()).compile(capability);
}

Result<std::string> load_image(const Compiler& compiler, int capability) {
  const std::string path = cache_path(compiler, capability, kernel_source());
  if (auto cached = read_cached(path)) return cached;
  PLIMSOLL_ASSIGN(std::string image, run_apart([&]() { return compile_kernels(compiler, capability); }));
  write_cached(path, image);
  return image;
}

Result<Module> Module::load(const Driver& driver, const std::string& image) {
  Handle module = nullptr;
  if (const int error = driver.module_load(&module, image.data()); error != 0)
    return Error{ErrorCode::kIo, error_text(driver, error), "loading the CUDA kernels",
                 "a newer driver may do"};
  return Module(driver, module);
}

Module::Module(Module&& other) noexcept
    : driver_(other.driver_),
      module_(std::exchange(other.module_, nullptr)),
      functions_(std::move(other.functions_)) {}

Module::~Module() {
  if (module_ != nullptr) driver_->module_unload(module_);
}

Result<Handle> Module::function(const char* name, uint32_t shared_bytes) {
  constexpr uint32_t kAlwaysAllowed = 48 << 10;
  auto found = functions_.find(std::string_view(name));
  if (found == functions_.end()) {
    Handle handle = nullptr;
    if (const int error = driver_->module_function(&handle, module_, name); error != 0)
      return Error{ErrorCode::kIo, error_text(*driver_, error), std::string("CUDA kernel ") + name};
    found = functions_.emplace(name, Function{handle, kAlwaysAllowed}).first;
  }
  Function& function = found->second;
  if (shared_bytes > function.shared_bytes) {
    const int error =
        driver_->function_set(function.handle, kMaxDynamicShared, static_cast<int>(shared_bytes));
    if (error != 0)
      return Error{ErrorCode::kIo, error_text(*driver_, error),
                   std::string("shared memory of CUDA kernel ") + name};
    function.shared_bytes = shared_bytes;
  }
  return function.handle;
}

}  // namespace plimsoll::cuda
