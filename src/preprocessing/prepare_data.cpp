// Files of a run made ready: texts tokenized (token_cache.h), shards packed, in a process of its own.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "base/host.h"
#include "base/units.h"
#include "corpora/saved_dataset.h"
#include "corpora/text_doubt.h"
#include "datasets/shard.h"
#include "io/file.h"
#include "io/new_folder.h"
#include "preprocessing/data_cache.h"
#include "preprocessing/data_files.h"
#include "preprocessing/image_data.h"
#include "preprocessing/labelled_data.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_data_text.h"
#include "preprocessing/run_hints.h"
#include "preprocessing/run_task.h"
#include "preprocessing/token_cache.h"
#include "preprocessing/token_kinds.h"
#include "preprocessing/unprepared_data.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::preprocessing {
namespace {

/// Makes the data ready; runs in the child.
class Preparation {
 public:
  /// `tokenizer`: "bytes", or where it lies. `masks`: the run's task masks tokens. `lease`: of the cache
  /// folder; null: none.
  Preparation(const settings::RunConfig& config, const PrepareDataOptions& options,
              const std::string& tokenizer, bool masks, const CacheLease* lease = nullptr)
      : config_(config),
        options_(options),
        cache_(config, options, tokenizer, masks),
        lease_(lease),
        bytes_(tokenizer == "bytes") {}

  Result<RunData> operator()() {
    const settings::DataSettings& data = config_.data;
    RunData ready;
    if (options_.train || data.eval_fraction > 0) {
      PLIMSOLL_ASSIGN(ready.train, train_sources());
    }
    if (data.eval_fraction > 0) {
      PLIMSOLL_TRY(hold_out(ready));
    } else if (!data.eval.empty()) {
      PLIMSOLL_ASSIGN(ready.eval, eval_sources());
      if (!data.eval.names.empty())
        for (const settings::EvalFiles::Set& set : data.eval.sets()) ready.eval_names.push_back(set.name);
    }
    PLIMSOLL_TRY(pack(ready));
    if (cache_.masks()) {
      PLIMSOLL_ASSIGN(const corpora::EncoderFiles* files,
                      bytes_ ? Result<const corpora::EncoderFiles*>(nullptr) : cache_.encoder_files());
      PLIMSOLL_ASSIGN(datasets::TokenKinds kinds, token_kinds(config_, files, options_.vocab_size));
      ready.token_kinds = std::make_shared<const datasets::TokenKinds>(std::move(kinds));
    }
    PLIMSOLL_ASSIGN(ready.buckets,
                    buckets_of(config_, options_.train ? ready.train : ready.eval, !options_.train));
    return ready;
  }

  /// The buckets of what is tokenized already; nothing where something is not.
  Result<std::optional<Buckets>> look() {
    tokenizes_ = false;
    const settings::DataSettings& data = config_.data;
    const bool train = options_.train || data.eval_fraction > 0;
    PLIMSOLL_ASSIGN(const auto files, train ? train_sources() : eval_sources());
    if (is_missing_) return std::optional<Buckets>();
    PLIMSOLL_ASSIGN(Buckets buckets, buckets_of(config_, files, !options_.train));
    return std::optional(std::move(buckets));
  }

 private:
  /// Where documents are held out, how many of a text's are wanted is known behind the split alone.
  Result<std::vector<datasets::DataFiles>> train_sources() {
    most_ = config_.data.eval_fraction > 0 ? 0 : config_.data.max_train_samples.value_or(0);
    return sources(config_.data.train, config_.data.weights, "data.train");
  }
  /// One for each set.
  Result<std::vector<datasets::DataFiles>> eval_sources() {
    most_ = config_.data.max_eval_samples.value_or(0);
    std::vector<datasets::DataFiles> result;
    for (const settings::EvalFiles::Set& set : config_.data.eval.sets()) {
      PLIMSOLL_ASSIGN(auto files, sources(set.files, {}, "data.eval"));
      result.push_back(std::move(files.front()));
    }
    return result;
  }

  /// A part of each source where they mix, each document once, whatever the mixture; of all together where so
  /// many are wanted of all together.
  Status hold_out(RunData& ready) const {
    const bool apart = !config_.data.weights.empty() && !config_.data.max_eval_samples;
    for (size_t i = 0; i < ready.train.size(); ++i) {
      const std::vector<std::string>& paths = ready.train[i].paths;
      const auto other = std::find_if_not(paths.begin(), paths.end(), datasets::is_shard);
      if (other != paths.end())
        return Error{ErrorCode::kInvalidArgument,
                     "data.eval_fraction splits documents, and this file has none", *other,
                     "name held-out data: data.eval"};
      if (apart || i == 0) ready.eval.push_back({{}, 1});
      ready.eval.back().paths.insert(ready.eval.back().paths.end(), paths.begin(), paths.end());
      if (apart) ready.eval_names.push_back(config_.data.train[i]);
    }
    return Ok{};
  }

  Result<std::vector<datasets::DataFiles>> sources(const std::vector<std::string>& entries,
                                                   const std::vector<double>& weights,
                                                   const std::string& setting) {
    std::vector<datasets::DataFiles> result;
    if (weights.empty()) {
      PLIMSOLL_ASSIGN(auto paths, ready_paths(entries, setting));
      result.push_back({std::move(paths), 1});
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      PLIMSOLL_ASSIGN(auto paths, ready_paths({entries[i]}, setting));
      result.push_back({std::move(paths), weights[i]});
    }
    return result;
  }

  /// The files as they are read: texts as one shard in place of all of them.
  Result<std::vector<std::string>> ready_paths(const std::vector<std::string>& entries,
                                               const std::string& setting) {
    std::vector<std::string> paths, texts;
    for (const std::string& entry : entries) {
      PLIMSOLL_ASSIGN(const auto files, corpora::expand_data(entry));
      for (const std::string& file : files) {
        const FileKind kind = kind_of(file);
        const bool is_text = kind == FileKind::kJson || kind == FileKind::kText;
        (is_text ? texts : paths).push_back(file);
        if (kind == FileKind::kText && tokenizes_) doubt(file);
      }
    }
    if (texts.empty()) return paths;
    if (bytes_) return as_bytes(std::move(paths), texts);
    if (!paths.empty())
      return Error{ErrorCode::kInvalidArgument, setting + " joins texts and files of tokens", texts.front(),
                   "tokenize the texts first (plimsoll data tokenize), or give data.weights"};
    if (tokenizes_) {
      PLIMSOLL_ASSIGN(std::string shard, cache_.tokenized(texts, most_));
      return std::vector{std::move(shard)};
    }
    PLIMSOLL_ASSIGN(std::optional<std::string> shard, cache_.find(texts, most_));
    is_missing_ = is_missing_ || !shard;
    return shard ? std::vector{std::move(*shard)} : paths;
  }

  void doubt(const std::string& file) {
    if (!options_.note || !doubted_.insert(file).second) return;
    if (const std::string why = corpora::doubt_of_file(file); !why.empty())
      options_.note(fmt::format("{} is read as text and is hardly one: {}", file, why));
  }

  Result<std::vector<std::string>> as_bytes(std::vector<std::string> paths,
                                            const std::vector<std::string>& texts) {
    for (const std::string& path : texts)
      if (!path.ends_with(".txt"))
        return Error{ErrorCode::kInvalidArgument, "without a tokenizer only .txt files are read, as bytes",
                     path, "set data.tokenizer to a model's folder or a tokenizer.json"};
    PLIMSOLL_ASSIGN(const UnaskedBytes unasked, unasked_bytes(config_, "bytes"));
    if (unasked.refused) return unasked.error(texts.front());
    if (!unasked.what.empty() && options_.note && !std::exchange(told_of_bytes_, true))
      options_.note(unasked.what);
    paths.insert(paths.end(), texts.begin(), texts.end());
    return paths;
  }

  /// Builds the indexes that are not there yet, and so finds what is wrong with the shards.
  Status pack(const RunData& ready) {
    for (const bool eval : {false, true}) {
      if (!eval && !options_.train) continue;
      std::vector<datasets::DataFiles> side = eval ? ready.eval : ready.train;
      std::erase_if(side, [](const datasets::DataFiles& files) {
        return std::none_of(files.paths.begin(), files.paths.end(), datasets::is_shard);
      });
      if (side.empty()) continue;
      datasets::TrainingDataOptions options = training_data_options(config_, eval);
      if (!bytes_) {
        PLIMSOLL_ASSIGN(const corpora::EncoderFiles* files, cache_.encoder_files());
        options.vocabulary_hash = files->tokenizer->vocabulary_hash();
      }
      PLIMSOLL_TRY(same_vocabulary(side, options));
      PLIMSOLL_ASSIGN(const datasets::TrainingData packed, datasets::TrainingData::open(side, options));
      PLIMSOLL_TRY(keep(side, packed));
    }
    return Ok{};
  }

  /// What of the cache these are stays there while the run lives.
  [[nodiscard]] Status keep(const std::vector<datasets::DataFiles>& side,
                            const datasets::TrainingData& packed) const {
    if (lease_ == nullptr) return Ok{};
    for (const datasets::DataFiles& files : side)
      for (const std::string& path : files.paths) PLIMSOLL_TRY(lease_->use(path));
    for (const auto& source : packed.sources()) PLIMSOLL_TRY(lease_->use(source->index_path()));
    return Ok{};
  }

  /// All shards of the run: sources that mix, and what is held out.
  Status same_vocabulary(const std::vector<datasets::DataFiles>& side,
                         const datasets::TrainingDataOptions& options) {
    for (const datasets::DataFiles& files : side)
      for (const std::string& path : files.paths) {
        if (!datasets::is_shard(path)) continue;
        PLIMSOLL_ASSIGN(const datasets::Shard shard, datasets::Shard::open(path));
        const uint64_t hash = shard.info().vocabulary_hash;
        if (first_shard_.empty()) {
          first_shard_ = path;
          first_hash_ = hash;
        }
        if (hash != first_hash_ && hash != 0 && first_hash_ != 0)
          return Error{
              ErrorCode::kInvalidArgument,
              fmt::format("{}: shards of different tokenizers, {} and", options.setting, first_shard_), path,
              "tokenize both with the model's tokenizer: plimsoll data tokenize"};
      }
    return Ok{};
  }

  const settings::RunConfig& config_;
  const PrepareDataOptions& options_;
  TokenCache cache_;
  const CacheLease* const lease_;
  const bool bytes_;
  std::string first_shard_;
  uint64_t first_hash_ = 0;
  int64_t most_ = 0;         ///< documents of a source that are tokenized; 0: all
  bool tokenizes_ = true;    ///< false: only looks what is there
  bool is_missing_ = false;  ///< a text that has not been tokenized
  bool told_of_bytes_ = false;
  std::set<std::string> doubted_;  ///< texts that have been looked at
};

/// Whether every file can be read as it lies there.
bool is_ready(const std::vector<std::string>& patterns, const std::string& tokenizer) {
  const auto files = files_of(patterns);
  return std::all_of(files.begin(), files.end(), [&](const std::string& file) {
    const FileKind kind = kind_of(file);
    return kind == FileKind::kTokens || (kind == FileKind::kText && tokenizer == "bytes");
  });
}

/// Nobody removes from the cache what is found in it. It has to be held before the child is there, which
/// cannot hand a lock on; where the folder cannot be written to, there is nothing to be held against.
std::optional<CacheLease> lease_of(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  auto lease = CacheLease::take(folder);
  return lease ? std::optional(std::move(*lease)) : std::nullopt;
}

void keep_within_limit(const settings::RunConfig& config, const std::string& folder,
                       const PrepareDataOptions& options) {
  if (!config.output.data_cache_limit) return;
  const auto trim = trim_data_cache(folder, config.output.data_cache_limit->count);
  if (!options.note) return;
  if (!trim)
    options.note("the data cache is not cleaned: " + trim.error().message());
  else if (trim->removed_files > 0)
    options.note(fmt::format("removed {} of the least recently used tokenized data (output.data_cache_limit)",
                             to_string(Bytes(trim->removed_bytes))));
}

}  // namespace

Result<std::string> tokenizer_path(const settings::RunConfig& config) {
  if (config.data.tokenizer != "auto") return config.data.tokenizer;
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
  return !folder.empty() && !tokenizers::tokenizer_file(folder).empty() ? folder : std::string("bytes");
}

Result<RunData> prepare_data(const settings::RunConfig& config, const PrepareDataOptions& options) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, tokenizer_path(config));
  PLIMSOLL_ASSIGN(const io::ConfigJson model, settings::load_model_config(config.model));
  PLIMSOLL_ASSIGN(const tasks::TaskDef* task, task_of(config, model));
  PLIMSOLL_TRY(check_data_is_there(config.data, options.train));
  if (task->preparation == tasks::Preparation::kNone) return unprepared_data(config, options.train);
  const bool images = task->preparation == tasks::Preparation::kImages;
  const bool labelled = task->preparation == tasks::Preparation::kLabelled || images;
  if (options.note && !labelled)
    for (const std::string& line : idle_settings(config.data, options.train, tokenizer == "bytes"))
      options.note(line);
  const bool ready = !labelled && !task->masks &&
                     (!options.train || is_ready(config.data.train, tokenizer)) &&
                     is_ready(config.data.eval, tokenizer) && config.data.eval_fraction == 0;
  if (ready) return Preparation(config, options, tokenizer, false)();  // a few names: nothing to keep apart
  const std::string folder = training_data_options(config, /*eval=*/false).cache_folder;
  const io::NewFolder made(folder);
  std::optional<CacheLease> lease = lease_of(folder);
  const auto text = run_apart([&]() -> Result<std::string> {
    const CacheLease* const held = lease ? &*lease : nullptr;
    PLIMSOLL_ASSIGN(const RunData data, images ? ImagePreparation(config, options, model, held)()
                                        : labelled
                                            ? LabelledPreparation(config, options, tokenizer, model, held)()
                                            : Preparation(config, options, tokenizer, task->masks, held)());
    return run_data_text(data);
  });
  if (!text && lease) std::move(*lease).give_up();
  if (!text) return in_words_of_runs(text.error());
  lease.reset();
  keep_within_limit(config, folder, options);
  return run_data_of(*text);
}

Buckets find_buckets(const settings::RunConfig& config, bool train) {
  const PrepareDataOptions options{.train = train};
  const auto tokenizer = tokenizer_path(config);
  const auto model = settings::load_model_config(config.model);
  const auto task = model ? task_of(config, *model) : Result<const tasks::TaskDef*>(&tasks::causal_lm());
  if (task && ((*task)->preparation == tasks::Preparation::kNone ||
               (*task)->preparation == tasks::Preparation::kImages))
    return {.lengths = {config.data.sequence_length}};
  if (config.data.buckets.given() && task && (*task)->preparation == tasks::Preparation::kLabelled) {
    if (const auto found = find_labelled(config, *model, train)) return found->buckets;
  } else if (config.data.buckets.given() && tokenizer) {
    const auto found = Preparation(config, options, *tokenizer, task && (*task)->masks).look();
    if (found && *found) return **found;
  }
  return buckets_by_settings(config.data);
}

}  // namespace plimsoll::preprocessing
