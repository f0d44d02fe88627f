// The data of a run: which files it reads and how, and text made ready - tokenized once into shards that lie
// in a cache, packed - in a process of its own, whose memory is in no plan.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/loader.h"
#include "data/training_data.h"
#include "train/run_config.h"

namespace plimsoll::train {

/// Whether sequences hold several documents, kept apart: what the programs are built for. Looks at the
/// settings and at the names of files, and into those that are there.
bool packs_documents(const DataSettings& data);

/// Files that TrainingData opens: .npy, byte texts, shards.
struct RunData {
  std::vector<DataFiles> train = {};
  std::vector<DataFiles> eval = {};
};

/// How far the tokenizing of a set of files has come; `text` names it in a few words, and is empty at the
/// end.
using DataProgress = std::function<void(double fraction, const std::string& text)>;

struct PrepareDataOptions {
  bool train = true;       ///< data.train is wanted too, not only what is evaluated
  int64_t vocab_size = 0;  ///< the model's; 0: a tokenizer of any size is taken
  int num_threads = 1;
  DataProgress progress = {};
  std::function<void(const std::string&)> note = {};
};

/// Resolves patterns, tokenizes what is text, packs. Call while no other thread runs. The cache is
/// data.cache_dir; what is there already of the same files and settings is used. Errors: kBadData of files
/// and tokenizer, kInvalidArgument where kinds or settings disagree, kIo, kInterrupted.
Result<RunData> prepare_data(const RunConfig& config, const PrepareDataOptions& options);

/// How TrainingData is to read one of the two sides.
TrainingDataOptions training_data_options(const RunConfig& config, int64_t vocab_size, bool eval);
/// A line for each packed source: what packing made, and what of the data does not stand in it.
std::vector<std::string> packing_notes(const TrainingData& data);
/// Scratch through which one thread reads sequences, of whatever kind.
int64_t data_scratch_bytes(const RunConfig& config);
/// How the training reads ahead; what it takes is in the plan.
LoaderOptions loader_options(const RunConfig& config);

}  // namespace plimsoll::train
