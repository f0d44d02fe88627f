// The weights of a model directory: one safetensors file, or shards with an index that maps names to files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/safetensors_reader.h"

namespace plimsoll::io {

/// A tensor and the file that holds it; valid as long as the ModelWeights.
struct WeightRef {
  const SafetensorsFile* file = nullptr;
  const SafetensorsTensor* tensor = nullptr;
};

/// Reads an index and calls visit(tensor, file) for each entry of its weight_map, in the text's order; holds
/// nothing of it. Errors: kBadData for anything but an object whose weight_map maps tensors to plain file
/// names; whatever `visit` returns.
Status visit_safetensors_index(
    std::string_view json,
    const std::function<Status(const std::string& tensor, const std::string& file)>& visit);

class ModelWeights {
 public:
  /// Opens `directory`/model.safetensors, else the shards of model.safetensors.index.json. Where shard and
  /// index disagree, a tensor that the index places in a shard must be there; one that the index does not
  /// name counts too. Errors: kBadData where there are no weights in this format, an index or a file is
  /// broken, a shard is missing, a tensor is not where the index says; kIo.
  static Result<ModelWeights> open(const std::string& directory);
  /// Whether `open` would find a file or an index, sound or not.
  static bool are_in(const std::string& directory);

  /// A number for these weights, wherever they lie: of names, shapes and a sample of each file's bytes, so
  /// that other weights of the same architecture are noticed without reading all of them. Errors: kIo.
  [[nodiscard]] Result<uint64_t> fingerprint() const;

  /// The tensor of that name, or nothing. O(log n).
  [[nodiscard]] std::optional<WeightRef> find(std::string_view name) const;
  /// All names, sorted by bytes; valid as long as this.
  [[nodiscard]] std::vector<std::string_view> names() const;
  [[nodiscard]] const std::vector<SafetensorsFile>& files() const { return files_; }
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  explicit ModelWeights(std::string directory) : directory_(std::move(directory)) {}
  Status open_shards(std::string_view index);
  Status open_files(const std::vector<std::string>& names);
  Status add_unlisted();
  std::string directory_;
  std::vector<SafetensorsFile> files_;
  std::vector<WeightRef> by_name_;  ///< sorted; refers to files_, whose elements stay where they are
};

}  // namespace plimsoll::io
