// Writes an image model's directory as timm has it: config.json with an architecture, timm's names of
// tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::model_tools {

struct TimmExport {
  std::string model = {};  ///< a folder, or a hub id of the local cache
  std::string output = {};
};

struct TimmReport {
  std::string architecture = {};
  int64_t num_tensors = 0;
  int64_t bytes = 0;
  double seconds = 0;
  std::vector<std::string> notes = {};  ///< for people
};

/// Writes `output`, which timm.create_model("local-dir:output", pretrained=True) opens: query, key and value
/// as one tensor, the processor as pretrained_cfg, the classes as label_names. Values keep their dtype and
/// bits. Memory: a piece of a tensor. Errors: kInvalidArgument for a model or a processor that timm has no
/// form for; kBadData of the folder's files; kIo.
Result<TimmReport> export_timm(const TimmExport& request);

}  // namespace plimsoll::model_tools
