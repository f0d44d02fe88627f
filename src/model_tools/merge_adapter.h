// A model with adapters as a model of its own: base + adapter, tensor by tensor, in the base's dtypes and
// files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::model_tools {

struct MergeRequest {
  std::string model = {};                                     ///< a folder or a hub id of the local cache
  std::vector<std::pair<std::string, double>> adapters = {};  ///< PEFT's directories and their weights
  std::string output = {};
  int num_threads = 1;
};

struct MergeReport {
  int64_t num_tensors = 0;
  int64_t num_changed = 0;            ///< of them
  int64_t num_dequantized = 0;        ///< of them, that the base has in few bits
  std::string dequantized_from = {};  ///< "nf4 with double quantization"; empty: the base is whole
  int64_t num_proven = 0;             ///< rows that were read again and held against base + adapter
  int64_t bytes = 0;                  ///< written
  double seconds = 0;
  std::vector<std::string> notes = {};  ///< of an adapter that names another base
};

/// Writes `output`: each adapted W becomes W + sum of weight * scale * B A, what an adapter saves whole W +
/// sum of weight * (saved - W), rounded once to the base's dtype; everything else is copied. A
/// base in few bits becomes a whole one: what its codes and scales stand for, adapted or not, in the dtype
/// that they were made from, and without quantization_config. Before the
/// folder has its name, rows of every changed or dequantised tensor are read again: their products with a
/// sampled input are held against base and adapter, computed apart. Memory: the adapters' matrices of one
/// tensor and a block of its rows a thread. The same bits for any number of threads. Errors: kInvalidArgument
/// where the output is there, the source above all; kBadData for adapters of another base; kIo.
Result<MergeReport> merge_adapters(const MergeRequest& request);

}  // namespace plimsoll::model_tools
