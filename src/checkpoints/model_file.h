// A small file of a model's directory, as a checkpoint and final/ hold it beside the weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::checkpoints {

struct ModelFile {
  std::string name = {};
  std::string text = {};    ///< its content; where `source` is named, that file's
  std::string source = {};  ///< copied when it is saved
};

/// All of them.
struct ModelFileSet {
  std::vector<ModelFile> files = {};
  /// What config.json is given where it names none and the model is a classifier: transformers runs no batch
  /// of it without.
  std::optional<int64_t> pad_token = {};
  std::vector<std::string> notes = {};  ///< for people, about the files
};

}  // namespace plimsoll::checkpoints
