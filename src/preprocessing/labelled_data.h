// Examples with labels made ready: tokenized once into shards that lie in the cache, their labels beside
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/labelled/label_file.h"
#include "data/labelled/resolve_labels.h"
#include "data/labelled/tokenize_labelled.h"
#include "data/tokenizer/tokenizer.h"
#include "preprocessing/data_cache.h"
#include "preprocessing/run_data.h"

namespace plimsoll::train {

/// Makes the data ready; runs in the child.
class LabelledPreparation {
 public:
  /// `tokenizer`: "bytes" for none, or where it lies. `model`: the model's config.json. `lease`: of the cache
  /// folder; null: none. All outlive it.
  LabelledPreparation(const RunConfig& config, const PrepareDataOptions& options,
                      const std::string& tokenizer, const ConfigJson& model,
                      const CacheLease* lease = nullptr)
      : config_(config), options_(options), tokenizer_(tokenizer), model_(model), lease_(lease) {}

  /// Everything that RunData has of it. Errors: as prepare_data; kBadData for labels, with the place.
  Result<RunData> operator()();
  /// The same where all of it lies in the cache; else nothing. Writes nothing. Errors: as above.
  Result<std::optional<RunData>> look();

 private:
  /// Which of the examples.
  struct Part {
    SplitSide split = SplitSide::kAll;
    int64_t most = 0;  ///< the first of them; 0: all
  };
  struct Side {
    const std::vector<std::string>& entries;
    const std::vector<double>& weights;  ///< none: the entries are one source
    Part part;
    std::string setting;
  };
  Result<std::vector<DataFiles>> sources(const Side& side);
  /// The shard of these files' examples, made where it is missing or damaged.
  Result<std::string> tokenized(const std::vector<std::string>& files, Part part);
  Result<std::string> path_of(const std::vector<std::string>& files, Part part) const;
  Result<LabelledOptions> encoding(SplitSide split) const;
  Status open_tokenizer();

  const RunConfig& config_;
  const PrepareDataOptions& options_;
  const std::string& tokenizer_;
  const ConfigJson& model_;
  const CacheLease* const lease_;
  bool tokenizes_ = true;              ///< false: only looks what is there
  bool is_missing_ = false;            ///< files that have not been tokenized
  std::unique_ptr<Tokenizer> opened_;  ///< null: lines hold tokens
  std::string tokenizer_folder_;       ///< what its special tokens follow from is not in its hash
};

/// What preparing the data of a classifier's run would find, where it has been done before; nothing also
/// where something is wrong with it. `train`: the training data is wanted too.
std::optional<RunData> find_labelled(const RunConfig& config, const ConfigJson& model, bool train);

}  // namespace plimsoll::train
