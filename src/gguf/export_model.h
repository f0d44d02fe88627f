// A model's folder as one GGUF file, for llama.cpp and what is built on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_file.h"

namespace plimsoll::gguf {

struct ExportRequest {
  std::string model = {};               ///< a folder, or a hub id of the local cache
  std::optional<TensorType> type = {};  ///< of the matrices; nothing: as the first of them is stored
  std::string output = {};
};

struct ExportReport {
  std::string architecture = {};
  TensorType type = TensorType::kF32;
  int64_t num_tensors = 0;
  int64_t bytes = 0;
  double seconds = 0;
  std::vector<std::string> notes = {};  ///< for people
};

/// Writes the file beside its place and renames it when it is whole. Of one dimension, norms and positions
/// are f32, as llama.cpp has them; q8_0 is f16 where a row is no multiple of 32. Memory: 4 MiB and the
/// tokenizer's, beside the list of tensors. The same bytes for the same folder. Errors: kBadData of the
/// folder's files, and for values that fp16 cannot hold; kInvalidArgument for what llama.cpp has no place
/// for; kIo.
Result<ExportReport> export_model(const ExportRequest& request);

}  // namespace plimsoll::gguf
