// The data of a run: which files it reads and how, and text made ready - tokenized once into shards that lie
// in a cache, packed - in a process of its own, whose memory is in no plan.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "datasets/loader.h"
#include "datasets/training_data.h"
#include "io/label_fields.h"
#include "settings/run_config.h"

namespace plimsoll::preprocessing {

/// What tokenizing asks of a run's settings: "bytes", or the folder or file of the tokenizer. Errors:
/// kBadData where model.path names nothing.
Result<std::string> tokenizer_path(const settings::RunConfig& config);

/// Texts that data.tokenizer: auto reads as bytes for want of a tokenizer.
struct UnaskedBytes {
  std::string what = {};  ///< empty: there are none, or bytes are meant (the setting, the vocabulary's size)
  bool refused = false;   ///< pretrained weights know nothing of bytes
  [[nodiscard]] Error error(const std::string& text) const;
};
/// `tokenizer`: tokenizer_path's. Errors: kBadData of a config.json that cannot be read.
Result<UnaskedBytes> unasked_bytes(const settings::RunConfig& config, const std::string& tokenizer);
/// The same as a remark for plans, which take any model: empty where no text that is named is concerned.
std::string unasked_bytes_note(const settings::RunConfig& config);

/// Whether sequences hold several documents, kept apart: what the programs are built for. Looks at the
/// settings and at the names of files, and into those that are there.
bool packs_documents(const settings::DataSettings& data);

/// The lengths that a run has programs for, and what they save, as far as it is known.
struct Buckets {
  std::vector<int64_t> lengths = {};  ///< ascending, the last data.sequence_length; one: no buckets
  int64_t sequences = 0;              ///< counted in the data; 0: the data is not known
  int64_t tokens = 0;                 ///< of them
  int64_t positions = 0;              ///< of them, each padded to its bucket
};
/// As far as the settings alone say: where data.buckets is a number, lengths at even distances.
Buckets buckets_by_settings(const settings::DataSettings& data);
/// What they leave open follows from the lengths of the documents of one side, made ready; `whole_rows`: each
/// is a sequence, cut at its end. Errors: kBadData, kIo.
Result<Buckets> buckets_of(const settings::RunConfig& config, const std::vector<datasets::DataFiles>& files,
                           bool eval, bool whole_rows = false);

/// Files that TrainingData opens: .npy, byte texts, shards.
struct RunData {
  std::vector<datasets::DataFiles> train = {};
  std::vector<datasets::DataFiles> eval = {};
  /// A name for each of eval: its set's, or the entry of data.train that it is held out of; none: it is one.
  std::vector<std::string> eval_names = {};
  Buckets buckets = {};  ///< of train; where that is not wanted, of eval
  /// Where sequences or images are classified: the labels of all of it. Its files are shards or lists of
  /// images, with labels beside them.
  std::optional<io::Labels> labels = {};
  /// Where tokens are masked; else null.
  std::shared_ptr<const datasets::TokenKinds> token_kinds = {};
  int64_t num_eval = 0;       ///< and how many examples are evaluated
  int64_t reading_bytes = 0;  ///< of images: scratch that reading the largest takes; 0: not known
};

/// How far the tokenizing of a set of files has come; `text` names it in a few words, and is empty at the
/// end.
using DataProgress = std::function<void(double fraction, const std::string& text)>;

struct PrepareDataOptions {
  bool train = true;       ///< data.train is wanted too, not only what is evaluated
  int64_t vocab_size = 0;  ///< the model's; 0: a tokenizer of any size is taken
  int num_threads = 1;
  /// What tokenizing may hold of memory: memory.budget where one is given; 0: no bound.
  int64_t budget_bytes = 0;
  DataProgress progress = {};
  std::function<void(const std::string&)> note = {};
  Stop stop = {};  ///< ends with kInterrupted; asked in the process that the work runs in
};

/// Resolves patterns, tokenizes what is text, packs. Call while no other thread runs. The cache is
/// data.cache_dir; what is there already of the same files and settings is used. Errors: kBadData of files
/// and tokenizer, kInvalidArgument where kinds or settings disagree, kIo, kInterrupted.
Result<RunData> prepare_data(const settings::RunConfig& config, const PrepareDataOptions& options);

/// The buckets as prepare_data will find them, where the data is tokenized already; else by the settings.
/// Writes nothing, and whatever is wrong with the data is left to prepare_data.
Buckets find_buckets(const settings::RunConfig& config, bool train);

/// How TrainingData is to read one of the two sides; with `buckets` (lengths) also in which order.
datasets::TrainingDataOptions training_data_options(const settings::RunConfig& config, bool eval,
                                                    const std::vector<int64_t>& buckets = {});
/// Errors: kBadData for the first entry of data.train (with `train`) or data.eval that is not there.
Status check_data_is_there(const settings::DataSettings& data, bool train);
/// A line for each entry of the data that is not there, for who plans without reading it. `images`: they are
/// trained on, so that folders are data too.
std::vector<std::string> missing_data(const settings::DataSettings& data, bool images = false);
/// A line for each packed source: what packing made, and what of the data does not stand in it.
std::vector<std::string> packing_notes(const datasets::TrainingData& data);
/// The buckets in a line; empty where there are none.
std::string bucket_note(const Buckets& buckets);
/// Scratch through which one thread reads sequences, of whatever kind; `num_labels` of an example.
int64_t data_scratch_bytes(const settings::RunConfig& config, int64_t num_labels = 0);
/// What the order of one set of data takes beside its scratch: windows of buckets.
int64_t order_host_bytes(const settings::RunConfig& config);
/// How the training reads ahead; what it takes is in the plan.
datasets::LoaderOptions loader_options(const settings::RunConfig& config,
                                       std::vector<datasets::TensorSpec> tensors, int64_t num_labels = 0);

}  // namespace plimsoll::preprocessing
