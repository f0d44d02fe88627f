// models--<owner>--<name>/refs/main names a commit, snapshots/<commit>/ holds the files.
#include "io/hub_cache.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "io/file.h"
#include "io/missing_file.h"
#include "io/suggest.h"

namespace plimsoll::io {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read at start-up
  return value ? value : "";
}

std::string cache_folder() {
  if (std::string cache = environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  const std::string cache = user_cache_folder();
  return (cache.empty() ? "/.cache" : cache) + "/huggingface/hub";
}

/// A path that has the form of a hub id and whose parent is there was meant as a path.
std::optional<Error> missing_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code code;
  if (parent.empty() || !std::filesystem::is_directory(parent, code)) return std::nullopt;
  std::vector<std::string> siblings;
  for (std::filesystem::directory_iterator it(parent, code), end; !code && it != end; it.increment(code))
    if (std::error_code ignored; it->is_directory(ignored)) siblings.push_back(it->path().string());
  std::sort(siblings.begin(), siblings.end());
  const std::string near = did_you_mean(path, siblings);
  return Error{
      ErrorCode::kBadData, "there is no such folder", path,
      (near.empty() ? "look into " + parent.string() : near) + "; if it is a hub id: hf download " + path};
}

/// Of a model or of an adapter.
bool has_config(const std::filesystem::path& folder) {
  std::error_code code;
  return std::filesystem::exists(folder / "config.json", code) ||
         std::filesystem::exists(folder / "adapter_config.json", code);
}

/// The model of a folder that may be a run's, which holds final/ and checkpoint-<step>/.
Result<std::string> within_run(const std::string& folder) {
  namespace fs = std::filesystem;
  if (has_config(folder)) return folder;
  if (has_config(fs::path(folder) / "final")) return (fs::path(folder) / "final").string();
  std::error_code code;
  int64_t last = -1;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    constexpr std::string_view kPrefix = "checkpoint-";
    const std::string name = it->path().filename().string();
    int64_t step = -1;
    if (name.starts_with(kPrefix) && has_config(it->path()))
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
    last = std::max(last, step);
  }
  if (last < 0) return folder;
  return Error{ErrorCode::kBadData, "a run's folder without final/", folder,
               "the run has not come to its end; its last checkpoint: " +
                   (fs::path(folder) / ("checkpoint-" + std::to_string(last))).string()};
}

/// Named as files are and no model is: nothing to be downloaded.
bool is_file_name(const std::string& path) {
  constexpr std::string_view kEndings[] = {".yaml", ".yml", ".json", ".jsonl", ".safetensors", ".gguf",
                                           ".txt",  ".npy", ".csv",  ".shard", ".pack",        ".jinja"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace

bool is_hub_id(const std::string& text) {
  const auto ok = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const size_t slash = text.find('/');
  const bool two_words = slash == std::string::npos || (slash > 0 && slash + 1 < text.size() &&
                                                        text.find('/', slash + 1) == std::string::npos);
  return !text.empty() && text.size() <= 200 && text[0] != '.' && two_words &&
         std::all_of(text.begin(), text.end(), ok);
}

Result<std::string> find_cached_model(const std::string& id) {
  const Error missing{ErrorCode::kBadData,
                      "the model is neither a folder nor in the local Hugging Face cache", id,
                      "download it first: hf download " + id};
  std::string folder = "models--" + id;
  if (const size_t slash = folder.find('/'); slash != std::string::npos) folder.replace(slash, 1, "--");
  const std::string base = cache_folder() + "/" + folder;
  auto revision = read_small_file(base + "/refs/main", 200);
  if (!revision) return revision.error().code == ErrorCode::kIo ? std::move(revision).error() : missing;
  const std::string commit = revision->substr(0, revision->find_first_of(" \r\n"));
  const std::string snapshot = base + "/snapshots/" + commit;
  if (commit.empty() || commit.find('/') != std::string::npos) return missing;
  PLIMSOLL_ASSIGN(const bool is_there, is_folder(snapshot));
  return is_there ? Result(snapshot) : missing;
}

Result<std::string> find_model_folder(const std::string& path_or_id) {
  PLIMSOLL_ASSIGN(const bool is_folder_there, is_folder(path_or_id));
  if (is_folder_there) return within_run(path_or_id);
  PLIMSOLL_ASSIGN(const bool is_there, path_exists(path_or_id));
  if (is_there)
    return Error{ErrorCode::kBadData, "not a folder", path_or_id, "name the folder that holds config.json"};
  if (is_file_name(path_or_id))
    return Error{ErrorCode::kBadData, "there is no such file", path_or_id, missing_hint(path_or_id)};
  if (is_hub_id(path_or_id)) {
    auto cached = find_cached_model(path_or_id);
    if (cached) return cached;
    if (auto missing = missing_folder(path_or_id)) return *std::move(missing);
    return cached;
  }
  return Error{ErrorCode::kBadData, "there is no such folder", path_or_id,
               "name a Hugging Face model directory, or a hub id that was downloaded"};
}

}  // namespace plimsoll::io
