// Texts of a run as shards in its cache: tokenized once, found again as long as nothing has changed.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "corpora/text_input.h"
#include "preprocessing/run_data.h"
#include "settings/run_config.h"

namespace plimsoll::preprocessing {

/// How a run's texts become tokens.
/// `masks`: the run's task masks tokens.
corpora::TextOptions text_options(const settings::DataSettings& data, bool masks);

/// Of a tokenizer, which lies at `path`, with ids that a model of so many has no row for; names the first.
Error too_large(const tokenizers::Tokenizer& tokenizer, int64_t vocab_size, const std::string& path);

class TokenCache {
 public:
  /// `tokenizer`: a model's folder, or a tokenizer's file; nothing of it is read before that is asked for.
  /// `masks`: the run's task masks tokens.
  /// `config` and `options` outlive the cache.
  TokenCache(const settings::RunConfig& config, const PrepareDataOptions& options, std::string tokenizer,
             bool masks)
      : config_(config), options_(options), tokenizer_(std::move(tokenizer)), masks_(masks) {}

  /// The tokenizer and what stands beside it. Errors: kBadData, kIo.
  Result<const corpora::EncoderFiles*> encoder_files();
  /// The shard that these texts make up, tokenized where it is missing or damaged. Errors: kBadData of the
  /// texts, kInvalidArgument where the tokenizer is not the model's, kIo, kInterrupted.
  /// `max_documents`: the first of them alone; 0: all.
  Result<std::string> tokenized(const std::vector<std::string>& texts, int64_t max_documents = 0);
  /// The same where it is there already; else nothing. Errors: as encoder_files.
  Result<std::optional<std::string>> find(const std::vector<std::string>& texts, int64_t max_documents = 0);

  /// Whether the run's task masks tokens.
  [[nodiscard]] bool masks() const { return masks_; }

 private:
  Result<std::string> path_of(const std::vector<std::string>& texts, int64_t max_documents);
  [[nodiscard]] Status check_size(const tokenizers::Tokenizer& tokenizer) const;
  [[nodiscard]] Status tokenize(const std::vector<std::string>& texts, const corpora::EncoderFiles& files,
                                const std::string& path, int64_t max_documents) const;
  void tell(const corpora::TokenizeCounts& counts) const;
  [[nodiscard]] std::string folder() const {
    return training_data_options(config_, /*eval=*/false).cache_folder;
  }
  const settings::RunConfig& config_;
  const PrepareDataOptions& options_;
  const std::string tokenizer_;
  const bool masks_;
  std::optional<corpora::EncoderFiles> files_;
};

}  // namespace plimsoll::preprocessing
