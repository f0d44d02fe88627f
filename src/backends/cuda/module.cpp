#include "backends/cuda/module.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "backends/cuda/source.h"
#include "base/check.h"
#include "base/host.h"
#include "base/process.h"
#include "base/thread.h"
#include "io/checksum.h"
#include "io/file.h"

namespace plimsoll::cuda {
namespace {

constexpr int64_t kLargestImage = int64_t{64} << 20;

Error compile_error(const std::string& what, const std::string& log) {
  return {ErrorCode::kIo, what, "CUDA kernels",
          log.empty() ? "another version of the runtime compiler may do" : log};
}

/// The card's own, or, where the compiler is older than the card, the newest before it: its PTX runs on all
/// later cards, compiled by the driver.
Result<int> architecture_for(const Compiler& compiler, int capability) {
  int count = 0;
  int error = compiler.num_architectures(&count);
  std::vector<int> known(static_cast<size_t>(std::max(count, 0)));
  if (error == 0) error = compiler.architectures(known.data());
  if (error != 0) return compile_error(compiler.error_text(error), "");
  int best = 0;
  for (const int one : known)
    if (one <= capability) best = std::max(best, one);
  if (best > 0) return best;
  return compile_error("the runtime compiler knows no card of compute capability " +
                           std::to_string(capability / 10) + "." + std::to_string(capability % 10),
                       "install libnvrtc of an older CUDA, and name its folder in PLIMSOLL_CUDA_LIBRARIES");
}

/// Hopper's matrix units are reached by code for it alone.
std::string architecture_name(int capability) {
  return capability == 90 ? "90a" : std::to_string(capability);
}

/// Owns a program of the compiler.
class Program {
 public:
  Program(const Compiler& compiler, const ModuleId& id) : compiler_(compiler), options_(macros(id.defines)) {
    status_ = compiler.create(&program_, module_source(id.module).c_str(), (id.module + ".cu").c_str(), 0,
                              nullptr, nullptr);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (program_ != nullptr) compiler_.destroy(&program_);
  }

  /// Machine code, or PTX where the compiler does not know the card.
  Result<std::string> compile(int capability) {
    if (status_ != 0) return compile_error(compiler_.error_text(status_), "");
    PLIMSOLL_ASSIGN(const int known, architecture_for(compiler_, capability));
    const bool is_known = known == capability;
    options_.push_back(is_known ? "--gpu-architecture=sm_" + architecture_name(known)
                                : "--gpu-architecture=compute_" + std::to_string(known));
    options_.push_back("--std=c++17");
    std::vector<const char*> texts;
    for (const std::string& option : options_) texts.push_back(option.c_str());
    if (const int error = compiler_.compile(program_, static_cast<int>(texts.size()), texts.data());
        error != 0)
      return compile_error(compiler_.error_text(error), log());
    size_t bytes = 0;
    (is_known ? compiler_.cubin_size : compiler_.ptx_size)(program_, &bytes);
    std::string image(bytes, '\0');
    if (const int error = (is_known ? compiler_.cubin : compiler_.ptx)(program_, image.data()); error != 0)
      return compile_error(compiler_.error_text(error), "");
    return image;
  }

 private:
  /// "HEAD_DIM=128 CAUSAL=1" as options.
  static std::vector<std::string> macros(std::string_view defines) {
    std::vector<std::string> options;
    while (!defines.empty()) {
      const std::string_view one = defines.substr(0, defines.find(' '));
      if (!one.empty()) options.push_back("-D" + std::string(one));
      defines.remove_prefix(std::min(one.size() + 1, defines.size()));
    }
    return options;
  }
  [[nodiscard]] std::string log() const {
    size_t bytes = 0;
    compiler_.log_size(program_, &bytes);
    std::string text(bytes, '\0');
    compiler_.log(program_, text.data());
    return text;
  }
  const Compiler& compiler_;
  std::vector<std::string> options_;
  Handle program_ = nullptr;
  int status_ = 0;
};

std::string cache_path(const Compiler& compiler, const ModuleId& id, int capability) {
  int major = 0, minor = 0;
  compiler.version(&major, &minor);
  io::Checksum sum;
  sum.add(module_source(id.module));
  sum.add(" " + id.defines + " sm_" + std::to_string(capability) + " nvrtc " + std::to_string(major) + "." +
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

/// Of `ids`, side by side: the compiler takes several threads. Errors: the first in the order of `ids`.
Result<std::vector<std::string>> compile_all(const Compiler& compiler, std::span<const ModuleId> ids,
                                             int capability) {
  std::vector<std::optional<Result<std::string>>> images(ids.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < ids.size(); i = next++)
      images[i] = compile_module(compiler, ids[i], capability);
  };
  {
    std::vector<Thread> others;
    const size_t wanted = std::min<size_t>(ids.size(), static_cast<size_t>(num_available_cpus()));
    while (others.size() + 1 < wanted) {
      auto thread = Thread::start("compile", work);
      if (!thread) break;  // fewer do it too
      others.push_back(std::move(*thread));
    }
    work();
  }
  std::vector<std::string> all;
  for (auto& image : images) {
    if (!*image) return std::move(*image).error();
    all.push_back(std::move(**image));
  }
  return all;
}

/// Texts as one, each behind its size, and back.
std::string join_texts(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    const uint64_t size = text.size();
    all.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
  }
  return all;
}
std::vector<std::string> split_texts(std::string_view all) {
  std::vector<std::string> texts;
  uint64_t size = 0;
  while (all.size() >= sizeof size) {
    std::memcpy(&size, all.data(), sizeof size);
    texts.emplace_back(all.substr(sizeof size, size));
    all.remove_prefix(std::min<size_t>(sizeof size + size, all.size()));
  }
  return texts;
}

}  // namespace

int compiled_capability(const Compiler& compiler, int capability) {
  const Result<int> known = architecture_for(compiler, capability);
  return known ? *known : 0;
}

Result<std::string> compile_module(const Compiler& compiler, const ModuleId& id, int capability) {
  return Program(compiler, id).compile(capability);
}

Result<std::vector<std::string>> load_images(const Compiler& compiler, std::span<const ModuleId> ids,
                                             int capability) {
  std::vector<std::string> images(ids.size()), paths;
  std::vector<ModuleId> missing;
  std::vector<size_t> places;
  for (size_t i = 0; i < ids.size(); ++i) {
    paths.push_back(cache_path(compiler, ids[i], capability));
    if (auto cached = read_cached(paths[i])) {
      images[i] = std::move(*cached);
    } else {
      missing.push_back(ids[i]);
      places.push_back(i);
    }
  }
  if (missing.empty()) return images;
  const auto compile = [&]() -> Result<std::string> {
    PLIMSOLL_ASSIGN(const std::vector<std::string> made, compile_all(compiler, missing, capability));
    return join_texts(made);
  };
  PLIMSOLL_ASSIGN(const std::string all, run_apart(compile));
  std::vector<std::string> compiled = split_texts(all);
  PLIMSOLL_CHECK(compiled.size() == missing.size(), "images of kernels");
  for (size_t i = 0; i < missing.size(); ++i) {
    write_cached(paths[places[i]], compiled[i]);
    images[places[i]] = std::move(compiled[i]);
  }
  return images;
}

std::vector<ModuleId> plain_modules() {
  std::vector<ModuleId> ids;
  for (std::string& name : module_names()) ids.push_back({std::move(name), ""});
  return ids;
}

std::vector<ModuleId> modules_reading(const std::string& defines) {
  const std::string macro = defines.substr(0, defines.find('='));
  std::vector<ModuleId> ids;
  for (std::string& name : module_names())
    if (module_source(name).find(macro) != std::string::npos) ids.push_back({std::move(name), defines});
  return ids;
}

Modules::Modules(const Driver& driver, const Compiler& compiler, int capability, bool is_cached)
    : driver_(driver), compiler_(compiler), capability_(capability), is_cached_(is_cached) {}

void Modules::unload() {
  functions_.clear();
  for (const auto& [id, module] : modules_) driver_.module_unload(module);
  modules_.clear();
}

Status Modules::find_images(std::span<const ModuleId> ids) {
  std::vector<std::string> images;
  if (is_cached_) {
    PLIMSOLL_ASSIGN(images, load_images(compiler_, ids, capability_));
  } else {
    for (const ModuleId& id : ids) {
      PLIMSOLL_ASSIGN(std::string image, compile_module(compiler_, id, capability_));
      images.push_back(std::move(image));
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) images_[ids[i]] = std::move(images[i]);
  return Ok{};
}

Status Modules::load() {
  for (const auto& [id, image] : images_) PLIMSOLL_TRY(load(id, image));
  images_.clear();
  return Ok{};
}

Status Modules::load(const ModuleId& id, const std::string& image) {
  Handle module = nullptr;
  if (const int error = driver_.module_load(&module, image.data()); error != 0)
    return Error{ErrorCode::kIo, error_text(driver_, error), "loading the CUDA kernels " + id.module,
                 "a newer driver may do"};
  modules_[id] = module;
  return Ok{};
}

Result<Handle> Modules::module(const ModuleId& id) {
  if (!modules_.contains(id)) {
    if (!images_.contains(id)) {
      const bool has_siblings = is_cached_ && !id.defines.empty();
      std::vector<ModuleId> ids = has_siblings ? modules_reading(id.defines) : std::vector<ModuleId>{};
      if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
      PLIMSOLL_TRY(find_images(ids));
    }
    PLIMSOLL_TRY(load(id, images_[id]));
    images_.erase(id);
  }
  return modules_[id];
}

Result<Handle> Modules::function(std::string_view module_name, std::string_view defines,
                                 std::string_view name, uint32_t shared_bytes) {
  constexpr uint32_t kAlwaysAllowed = 48 << 10;
  auto found = functions_.find(std::tie(module_name, defines, name));
  if (found == functions_.end()) {
    PLIMSOLL_ASSIGN(const Handle owner, module({std::string(module_name), std::string(defines)}));
    const Key key(module_name, defines, name);
    Handle handle = nullptr;
    if (const int error = driver_.module_function(&handle, owner, std::get<2>(key).c_str()); error != 0)
      return Error{ErrorCode::kIo, error_text(driver_, error), "CUDA kernel " + std::string(name)};
    found = functions_.emplace(key, Function{handle, kAlwaysAllowed}).first;
  }
  Function& function = found->second;
  if (shared_bytes > function.shared_bytes) {
    const int error =
        driver_.function_set(function.handle, kMaxDynamicShared, static_cast<int>(shared_bytes));
    if (error != 0)
      return Error{ErrorCode::kIo, error_text(driver_, error),
                   "shared memory of CUDA kernel " + std::string(name)};
    function.shared_bytes = shared_bytes;
  }
  return function.handle;
}

}  // namespace plimsoll::cuda
