// Examples with labels made ready: tokenized once into shards that lie in the cache, their labels and token
// types beside them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "corpora/labelled/label_file.h"
#include "corpora/labelled/resolve_labels.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "preprocessing/data_cache.h"
#include "preprocessing/run_data.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::preprocessing {

/// Makes the data ready; runs in the child.
class LabelledPreparation {
 public:
  /// `tokenizer`: "bytes" for none, or where it lies. `model`: the model's config.json. `lease`: of the cache
  /// folder; null: none. All outlive it.
  LabelledPreparation(const settings::RunConfig& config, const PrepareDataOptions& options,
                      const std::string& tokenizer, const io::ConfigJson& model,
                      const CacheLease* lease = nullptr)
      : config_(config), options_(options), tokenizer_(tokenizer), model_(model), lease_(lease) {}

  /// Everything that RunData has of it. Errors: as prepare_data; kBadData for labels, with the place.
  Result<RunData> operator()();
  /// The same where all of it lies in the cache; else nothing. Writes nothing. Errors: as above.
  Result<std::optional<RunData>> look();

 private:
  /// Which of the examples.
  struct Part {
    datasets::SplitSide split = datasets::SplitSide::kAll;
    int64_t most = 0;  ///< the first of them; 0: all
  };
  struct Side {
    const std::vector<std::string>& entries;
    const std::vector<double>& weights;  ///< none: the entries are one source
    Part part;
    std::string setting;
  };
  Result<std::vector<datasets::DataFiles>> sources(const Side& side);
  /// The shard of these files' examples, made where it is missing or damaged.
  Result<std::string> tokenized(const std::vector<std::string>& files, Part part);
  Result<std::string> path_of(const std::vector<std::string>& files, Part part) const;
  Result<corpora::LabelledOptions> encoding(datasets::SplitSide split) const;
  Result<io::Labels> find_labels(const std::vector<corpora::LabelFile>& train,
                                 const std::vector<corpora::LabelFile>& eval) const;
  Status open_tokenizer();
  /// What the model asks of its rows.
  Status look_at_model();

  const settings::RunConfig& config_;
  const PrepareDataOptions& options_;
  const std::string& tokenizer_;
  const io::ConfigJson& model_;
  const CacheLease* const lease_;
  bool tokenizes_ = true;                          ///< false: only looks what is there
  bool is_missing_ = false;                        ///< files that have not been tokenized
  std::unique_ptr<tokenizers::Tokenizer> opened_;  ///< null: lines hold tokens
  int64_t num_token_types_ = 0;                    ///< LanguageModel::num_token_types
  int64_t max_tokens_ = 0;                         ///< LabelledOptions::max_tokens
  bool asks_ = false;                              ///< TaskDef::asks
  std::string tokenizer_folder_;                   ///< what its special tokens follow from is not in its hash
};

/// What preparing the data of a classifier's run would find, where it has been done before; nothing also
/// where something is wrong with it. `train`: the training data is wanted too.
std::optional<RunData> find_labelled(const settings::RunConfig& config, const io::ConfigJson& model,
                                     bool train);

}  // namespace plimsoll::preprocessing
