#include "io/adapter_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "io/hub_cache.h"
#include "io/json.h"
#include "io/model_config.h"
#include "io/model_weights.h"

namespace plimsoll::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdapterConfig = "adapter_config.json";

bool has(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

/// A folder that a model lies in, its own or a run's.
std::optional<std::string> model_at(const fs::path& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) return std::nullopt;
  auto folder = find_model_folder(path.lexically_normal().string());
  if (!folder || !has(fs::path(*folder) / "config.json") || is_adapter_folder(*folder)) return std::nullopt;
  return *folder;
}

/// Where the base of an adapter lies, by its name.
std::optional<std::string> find_base(const std::string& base, const std::string& adapter) {
  if (base.empty()) return std::nullopt;
  if (auto here = model_at(base)) return here;
  std::error_code code;
  const fs::path from = fs::absolute(adapter, code);
  if (!code && !fs::path(base).is_absolute())
    for (fs::path above = from.lexically_normal(); above.has_relative_path(); above = above.parent_path())
      if (auto found = model_at(above / base)) return found;
  if (!is_hub_id(base)) return std::nullopt;
  auto cached = find_cached_model(base);
  return cached ? std::optional(*cached) : std::nullopt;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// "models--Qwen--Qwen3-0.6B" in a path of the hub's cache: "qwen/qwen3-0.6b". Else empty.
std::string hub_id_of(const std::string& folder) {
  constexpr std::string_view kPrefix = "models--";
  std::error_code code;
  for (const fs::path& part : fs::absolute(folder, code)) {
    std::string name = part.string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
    return lower(name);
  }
  return {};
}

/// Some bytes from a tensor's middle; empty where they cannot be read.
std::vector<std::byte> sample_of(const WeightRef& ref) {
  constexpr int64_t kBytes = 64;
  const int64_t bytes = ref.tensor->bytes;
  std::vector<std::byte> sample(static_cast<size_t>(std::min(kBytes, bytes)));
  const int64_t at = (bytes - static_cast<int64_t>(sample.size())) / 2;
  if (!ref.file->read(*ref.tensor, at, sample)) sample.clear();
  return sample;
}

/// Whether a tensor of both folders holds other values: they are different models for sure. A copy in another
/// dtype, or one of the two in few bits, may be the same model.
bool differ(const std::string& a, const std::string& b) {
  std::error_code code;
  if (fs::equivalent(a, b, code)) return false;
  const auto one = ModelWeights::open(a), other = ModelWeights::open(b);
  if (!one || !other) return false;
  const auto is_other = [&](std::string_view name) {
    const auto mine = one->find(name), theirs = other->find(name);
    return theirs && mine->tensor->dtype == theirs->tensor->dtype &&
           mine->tensor->shape == theirs->tensor->shape && sample_of(*mine) != sample_of(*theirs);
  };
  const auto names = one->names();
  return std::any_of(names.begin(), names.end(), is_other);
}

std::string both(const std::string& base, const std::string& adapter) {
  return "--model " + (base.empty() ? "BASE" : base) + " --adapter " + adapter;
}

/// A string of adapter_config.json.
std::string named_by(const std::string& adapter, std::string_view field) {
  const auto config = read_config_json(adapter + "/" + kAdapterConfig);
  const Tree* value = config ? config->fields().find(field) : nullptr;
  return value == nullptr || value->kind != Tree::Kind::kString ? std::string() : value->text;
}

}  // namespace

bool is_adapter_folder(const std::string& folder) {
  return has(fs::path(folder) / kAdapterConfig) && !ModelWeights::are_in(folder);
}

Result<std::string> find_adapter_folder(const std::string& path_or_id) {
  std::error_code code;
  if (fs::is_directory(path_or_id, code)) {
    if (!has(fs::path(path_or_id) / kAdapterConfig) && has(fs::path(path_or_id) / "final" / kAdapterConfig))
      return (fs::path(path_or_id) / "final").string();
    return path_or_id;
  }
  if (!is_hub_id(path_or_id)) return path_or_id;  // who opens it names what is missing
  auto cached = find_cached_model(path_or_id);
  return cached ? *cached : path_or_id;
}

std::string base_named_by(const std::string& adapter) { return named_by(adapter, "base_model_name_or_path"); }
std::string task_named_by(const std::string& adapter) { return named_by(adapter, "task_type"); }

Result<NamedModel> find_named_model(const std::string& path_or_id, const std::string& adapter) {
  PLIMSOLL_ASSIGN(std::string folder, find_model_folder(path_or_id));
  if (!adapter.empty()) {
    PLIMSOLL_ASSIGN(std::string apart, find_adapter_folder(adapter));
    if (is_adapter_folder(folder))
      return Error{ErrorCode::kBadData, "this folder holds an adapter itself, and --adapter names another",
                   folder,
                   "name the base's folder with --model; plimsoll merge makes one model of several adapters"};
    auto note = other_base_note(apart, folder);
    return NamedModel{std::move(folder), std::move(apart), std::move(note)};
  }
  if (!is_adapter_folder(folder)) return NamedModel{std::move(folder)};
  const std::string base = base_named_by(folder);
  auto found = find_base(base, folder);
  if (found) return NamedModel{*found, folder, folder + " is an adapter: its base is " + *found};
  return Error{ErrorCode::kBadData,
               base.empty() ? "this folder holds an adapter, and nothing names its base"
                            : "this folder holds an adapter, and its base " + base + " is not found",
               folder,
               "name the base's folder: " + both("", folder) +
                   (is_hub_id(base) ? "; or download it first: hf download " + base : "")};
}

Result<std::string> find_whole_model(const std::string& path_or_id) {
  PLIMSOLL_ASSIGN(std::string folder, find_model_folder(path_or_id));
  if (!is_adapter_folder(folder)) return folder;
  const std::string base = base_named_by(folder);
  return Error{ErrorCode::kBadData, "this folder holds an adapter, not a model", folder,
               "make one model of adapter and base: plimsoll merge " + both(base, folder) +
                   " --output DIR; in a run file model.path names the base and lora.adapter the adapter"};
}

std::optional<std::string> other_base_note(const std::string& adapter, const std::string& model) {
  const std::string base = base_named_by(adapter);
  if (base.empty()) return std::nullopt;
  bool other = false;
  if (const auto found = find_base(base, adapter)) {
    other = differ(*found, model);
  } else if (const std::string id = hub_id_of(model); !id.empty() && is_hub_id(base)) {
    other = id != lower(base) && base.find('/') != std::string::npos;
  }
  if (!other) return std::nullopt;
  return "the adapter " + adapter + " was trained on " + base + ", which is another model than " + model;
}

Error of_adapter(Error error, const std::string& adapter) {
  const std::string base = base_named_by(adapter);
  Error placed = std::move(error).at(adapter);
  if (base.empty()) return placed;
  placed.hint += (placed.hint.empty() ? "" : "; ") + ("the adapter was trained on " + base);
  return placed;
}

}  // namespace plimsoll::io
