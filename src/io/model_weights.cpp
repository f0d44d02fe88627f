// The index is JSON with {"metadata": {…}, "weight_map": {tensor: file}}; every file in it is a plain name,
// so that nothing outside the folder is opened (links, as the hub's cache has them, are the owner's affair).
#include "io/model_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "io/checksum.h"
#include "io/json_cursor.h"

namespace plimsoll::io {
namespace {

constexpr int64_t kMaxIndexBytes = 100'000'000;
/// Far more than any model has; a bound on files held open and names kept.
constexpr size_t kMaxShards = 10'000;
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

Error bad_index(std::string what) {
  return {
      ErrorCode::kBadData, "index: " + std::move(what), {}, "download or write the model directory again"};
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

using Visitor = std::function<Status(const std::string&, const std::string&)>;

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

/// There are no safetensors: what there is instead decides the hint.
Error no_weights(const std::string& directory) {
  Error error{ErrorCode::kBadData, fmt::format("there are no weights: neither {} nor {}", kSingle, kIndex),
              directory, "set model.init=random to start from random weights, or name a folder with weights"};
  constexpr std::array<const char*, 2> kPickles = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
  for (const char* pickle : kPickles)
    if (exists(directory + "/" + pickle)) {
      error.what = fmt::format("the weights are a pickle ({}), which is not read: it can run code", pickle);
      error.hint =
          "convert them: load the model with transformers and call save_pretrained(…, "
          "safe_serialization=True)";
    }
  if (exists(directory + "/adapter_model.safetensors")) {
    error.what = "this folder holds an adapter, not a model's weights";
    error.hint = "name the base model's folder (adapter_config.json says which)";
  }
  return error;
}

bool by_name(const WeightRef& a, const WeightRef& b) { return a.tensor->name < b.tensor->name; }

Status each_of_map(JsonCursor& json, const Visitor& visit) {
  std::string name, file;
  if (!json.expect('{')) return bad_index(json.error());
  if (json.take('}')) return Ok{};
  do {
    if (!json.string(name) || !json.expect(':') || !json.string(file)) return bad_index(json.error());
    if (!is_plain_name(file))
      return bad_index(fmt::format("'{}', the file of tensor '{}', is no name in this folder",
                                   shown_name(file), shown_name(name)));
    PLIMSOLL_TRY(visit(name, file));
  } while (json.take(','));
  if (!json.expect('}')) return bad_index(json.error());
  return Ok{};
}

}  // namespace

Status visit_safetensors_index(std::string_view text, const Visitor& visit) {
  if (const int64_t at = utf8_error_at(text); at >= 0)
    return bad_index(fmt::format("not valid UTF-8 (byte {})", at));
  JsonCursor json(text);
  bool has_map = false;
  if (!json.expect('{')) return bad_index(json.error());
  if (json.take('}')) return bad_index("there is no weight_map");
  do {
    std::string key;
    if (!json.string(key) || !json.expect(':')) return bad_index(json.error());
    if (key != "weight_map") {
      if (!json.skip()) return bad_index(json.error());
      continue;
    }
    if (std::exchange(has_map, true)) return bad_index("weight_map stands twice");
    PLIMSOLL_TRY(each_of_map(json, visit));
  } while (json.take(','));
  if (!json.expect('}')) return bad_index(json.error());
  if (!json.at_end()) return bad_index("something follows the object");
  if (!has_map) return bad_index("there is no weight_map");
  return Ok{};
}

Status ModelWeights::open_files(const std::vector<std::string>& names) {
  std::vector<std::string> missing;
  for (const std::string& name : names)
    if (!exists(directory_ + "/" + name)) missing.push_back(name);
  if (!missing.empty())
    return Error{ErrorCode::kBadData,
                 fmt::format("{} of {} shards that the index names are missing, the first is {}",
                             missing.size(), names.size(), shown_name(missing.front())),
                 directory_, "download the rest of the model"};
  files_.reserve(names.size());
  for (const std::string& name : names) {
    PLIMSOLL_ASSIGN(SafetensorsFile file, SafetensorsFile::open(directory_ + "/" + name));
    files_.push_back(std::move(file));
  }
  return Ok{};
}

Status ModelWeights::open_shards(std::string_view index) {
  std::set<std::string> names;
  PLIMSOLL_TRY(visit_safetensors_index(index, [&](const std::string&, const std::string& file) -> Status {
    names.insert(file);
    if (names.size() > kMaxShards) return bad_index(fmt::format("more than {} shards", kMaxShards));
    return Ok{};
  }));
  if (names.empty()) return bad_index("the weight_map is empty");
  const std::vector<std::string> sorted(names.begin(), names.end());
  PLIMSOLL_TRY(open_files(sorted));
  PLIMSOLL_TRY(
      visit_safetensors_index(index, [&](const std::string& name, const std::string& file) -> Status {
        const auto at = std::lower_bound(sorted.begin(), sorted.end(), file) - sorted.begin();
        const SafetensorsFile& shard = files_[static_cast<size_t>(at)];
        const SafetensorsTensor* tensor = shard.find(name);
        if (!tensor)
          return bad_index(fmt::format("the tensor '{}' is not in {}, where the index places it",
                                       shown_name(name), shown_name(file)));
        by_name_.push_back({&shard, tensor});
        return Ok{};
      }));
  std::sort(by_name_.begin(), by_name_.end(), by_name);
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [](const auto& a, const auto& b) {
    return a.tensor->name == b.tensor->name;
  });
  if (twice != by_name_.end())
    return bad_index(fmt::format("the name '{}' stands twice", shown_name(twice->tensor->name)));
  return add_unlisted();
}

Status ModelWeights::add_unlisted() {
  std::vector<WeightRef> unlisted;
  for (const SafetensorsFile& file : files_)
    for (const SafetensorsTensor& tensor : file.tensors())
      if (!find(tensor.name)) unlisted.push_back({&file, &tensor});
  std::sort(unlisted.begin(), unlisted.end(), by_name);
  for (size_t i = 1; i < unlisted.size(); ++i)
    if (unlisted[i].tensor->name == unlisted[i - 1].tensor->name)
      return bad_index(fmt::format("the tensor '{}' stands in two shards, and the index does not say which",
                                   shown_name(unlisted[i].tensor->name)));
  const auto listed = static_cast<std::ptrdiff_t>(by_name_.size());
  by_name_.insert(by_name_.end(), unlisted.begin(), unlisted.end());
  std::inplace_merge(by_name_.begin(), by_name_.begin() + listed, by_name_.end(), by_name);
  return Ok{};
}

bool ModelWeights::are_in(const std::string& directory) {
  return exists(directory + "/" + kSingle) || exists(directory + "/" + kIndex);
}

Result<ModelWeights> ModelWeights::open(const std::string& directory) {
  ModelWeights weights(directory);
  const std::string single = directory + "/" + kSingle, index = directory + "/" + kIndex;
  PLIMSOLL_ASSIGN(const bool is_single, path_exists(single));
  if (is_single) {
    PLIMSOLL_TRY(weights.open_files({kSingle}));
    PLIMSOLL_TRY(weights.add_unlisted());
    return weights;
  }
  PLIMSOLL_ASSIGN(const bool is_sharded, path_exists(index));
  if (!is_sharded) return no_weights(directory);
  PLIMSOLL_ASSIGN(const std::string text, read_small_file(index, kMaxIndexBytes));
  if (const Status status = weights.open_shards(text); !status) {
    Error error = status.error();
    return error.where.empty() ? std::move(error).at(index) : error;
  }
  return weights;
}

std::optional<WeightRef> ModelWeights::find(std::string_view name) const {
  const auto it = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                   [](const WeightRef& w, std::string_view n) { return w.tensor->name < n; });
  if (it == by_name_.end() || it->tensor->name != name) return std::nullopt;
  return *it;
}

Result<uint64_t> ModelWeights::fingerprint() const {
  constexpr int64_t kSample = 256, kSamples = 3;
  std::array<std::byte, kSample> bytes;
  Checksum sum;
  for (const WeightRef& w : by_name_) {
    sum.add(w.tensor->name + " " + w.tensor->dtype);
    sum.add(std::as_bytes(std::span(w.tensor->shape)));
    const int64_t size = w.tensor->bytes, count = std::min(kSample, size);
    for (int64_t i = 0; i < kSamples; ++i) {
      const auto piece = std::span(bytes).first(static_cast<size_t>(count));
      PLIMSOLL_TRY(w.file->read(*w.tensor, (size - count) * i / (kSamples - 1), piece));
      sum.add(piece);
    }
  }
  return sum.value();
}

std::vector<std::string_view> ModelWeights::names() const {
  std::vector<std::string_view> names;
  names.reserve(by_name_.size());
  for (const WeightRef& w : by_name_) names.emplace_back(w.tensor->name);
  return names;
}

}  // namespace plimsoll::io
