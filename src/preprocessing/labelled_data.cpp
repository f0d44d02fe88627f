#include "preprocessing/labelled_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "corpora/encoder_files.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "corpora/record_reader.h"
#include "corpora/saved_dataset.h"
#include "io/file.h"
#include "models/language_model.h"
#include "preprocessing/cache_key.h"
#include "preprocessing/run_task.h"
#include "preprocessing/token_cache.h"

namespace plimsoll::preprocessing {
namespace {

/// Part of every cached file's name: raised when the same files and settings would give other examples.
constexpr std::string_view kLabelledVersion = "examples 2";

/// Files that are damaged or not each other's are made again. `has_types`: token types are one of them.
bool is_intact_labelled(const std::string& path, bool has_types) {
  if (!datasets::is_shard(path)) return false;
  const auto shard = datasets::Shard::open(path);
  const auto labels = corpora::LabelFile::open(corpora::labels_beside(path));
  if (!shard || !labels) return false;
  std::optional<uint64_t> types_hash;
  if (has_types) {
    const auto types = datasets::Shard::open(corpora::types_beside(path));
    if (!types || !types->verify()) return false;
    types_hash = types->info().content_hash;
  }
  return labels->shard_hash() == corpora::labelled_hash(shard->info().content_hash, types_hash) &&
         labels->size() == shard->info().num_documents && shard->verify();
}

/// The label files of a side's shards.
Result<std::vector<corpora::LabelFile>> open_labels(const std::vector<datasets::DataFiles>& sources) {
  std::vector<corpora::LabelFile> labels;
  for (const datasets::DataFiles& files : sources)
    for (const std::string& path : files.paths) {
      PLIMSOLL_ASSIGN(corpora::LabelFile file, corpora::LabelFile::open(corpora::labels_beside(path)));
      labels.push_back(std::move(file));
    }
  return labels;
}

std::vector<const corpora::LabelFile*> pointers(const std::vector<corpora::LabelFile>& files) {
  std::vector<const corpora::LabelFile*> all;
  for (const corpora::LabelFile& file : files) all.push_back(&file);
  return all;
}

void tell(const corpora::TokenizeCounts& counts, const PrepareDataOptions& options) {
  if (options.progress) options.progress(1, {});
  if (!options.note) return;
  options.note(fmt::format("tokenized {} example{}, {} tokens, from {}", counts.num_documents,
                           counts.num_documents == 1 ? "" : "s", counts.num_tokens,
                           to_string(Bytes(counts.text_bytes))));
  for (const auto& [reason, count] : counts.skipped.by_reason)
    options.note(fmt::format("skipped {} example{}: {}", count, count == 1 ? "" : "s", reason));
  for (const std::string& line : corpora::remark_lines(counts.remarks)) options.note(line);
}

}  // namespace

Result<RunData> LabelledPreparation::operator()() {
  const settings::DataSettings& data = config_.data;
  const bool splits = data.eval_fraction > 0;
  PLIMSOLL_TRY(open_tokenizer());
  PLIMSOLL_TRY(look_at_model());
  const int64_t most_train = data.max_train_samples.value_or(0);
  const int64_t most_eval = data.max_eval_samples.value_or(0);
  RunData ready;
  if (options_.train) {
    const Part part = {splits ? datasets::SplitSide::kTrain : datasets::SplitSide::kAll, most_train};
    PLIMSOLL_ASSIGN(ready.train, sources({data.train, data.weights, part, "data.train"}));
  }
  if (splits) {
    // Of all together where so many are wanted of all together.
    const bool apart = !data.weights.empty() && most_eval == 0;
    const std::vector<double> none;
    PLIMSOLL_ASSIGN(ready.eval, sources({data.train,
                                         apart ? data.weights : none,
                                         {datasets::SplitSide::kEval, most_eval},
                                         "data.train"}));
    for (datasets::DataFiles& files : ready.eval)
      files.weight = 1;  // each example once, whatever the mixture
    if (apart) ready.eval_names = data.train;
  } else {
    for (const settings::EvalFiles::Set& set : data.eval.sets()) {
      PLIMSOLL_ASSIGN(auto files,
                      sources({set.files, {}, {datasets::SplitSide::kAll, most_eval}, "data.eval"}));
      ready.eval.push_back(std::move(files.front()));
      if (!set.name.empty()) ready.eval_names.push_back(set.name);
    }
  }
  if (is_missing_) return ready;
  PLIMSOLL_ASSIGN(const std::vector<corpora::LabelFile> train, open_labels(ready.train));
  PLIMSOLL_ASSIGN(const std::vector<corpora::LabelFile> eval, open_labels(ready.eval));
  if (asks_) {
    ready.labels = span_labels();
  } else {
    PLIMSOLL_ASSIGN(ready.labels, find_labels(train, eval));
  }
  for (const corpora::LabelFile& file : eval) ready.num_eval += file.size();
  PLIMSOLL_ASSIGN(ready.buckets, buckets_of(config_, options_.train ? ready.train : ready.eval,
                                            !options_.train, /*whole_rows=*/true));
  return ready;
}

Result<io::Labels> LabelledPreparation::find_labels(const std::vector<corpora::LabelFile>& train,
                                                    const std::vector<corpora::LabelFile>& eval) const {
  PLIMSOLL_ASSIGN(const corpora::LabelRequest request, label_request(config_, model_));
  PLIMSOLL_ASSIGN(const corpora::LabelSummary found,
                  corpora::summarize_labels(pointers(options_.train ? train : eval)));
  PLIMSOLL_ASSIGN(io::Labels labels, corpora::resolve_labels(request, found));
  PLIMSOLL_TRY(corpora::check_labels(labels, pointers(train), /*all_occur=*/options_.train, "data.train"));
  PLIMSOLL_TRY(corpora::check_labels(labels, pointers(eval), /*all_occur=*/false, "data.eval"));
  return labels;
}

Result<std::optional<RunData>> LabelledPreparation::look() {
  tokenizes_ = false;
  PLIMSOLL_ASSIGN(RunData found, (*this)());
  return is_missing_ ? std::optional<RunData>() : std::optional(std::move(found));
}

std::optional<RunData> find_labelled(const settings::RunConfig& config, const io::ConfigJson& model,
                                     bool train) {
  const auto tokenizer = tokenizer_path(config);
  if (!tokenizer) return std::nullopt;
  const auto vocab_size = model.integer("vocab_size", {1});
  if (!vocab_size) return std::nullopt;
  const PrepareDataOptions options{.train = train, .vocab_size = *vocab_size};
  auto found = LabelledPreparation(config, options, *tokenizer, model).look();
  return found ? std::move(*found) : std::nullopt;
}

Result<std::vector<datasets::DataFiles>> LabelledPreparation::sources(const Side& side) {
  const auto files_in = [&](const std::string& entry) -> Result<std::vector<std::string>> {
    PLIMSOLL_ASSIGN(std::vector<std::string> files, corpora::expand_data(entry));
    for (const std::string& file : files)
      if (!corpora::has_rows_by_name(file))
        return Error{
            ErrorCode::kInvalidArgument,
            side.setting + (asks_ ? " holds no questions" : " holds no examples with labels"), file,
            asks_ ? "question_answering takes SQuAD's .json, or .jsonl files, a line {\"question\": …, "
                    "\"context\": …, \"answers\": …} each"
                  : "classification takes .jsonl files, a line {\"text\": …, \"label\": …} each, or "
                    ".csv"};
    return files;
  };
  std::vector<std::string> all;
  std::vector<datasets::DataFiles> result;
  for (size_t i = 0; i < side.entries.size(); ++i) {
    PLIMSOLL_ASSIGN(const auto files, files_in(side.entries[i]));
    if (side.weights.empty()) {
      all.insert(all.end(), files.begin(), files.end());
      continue;
    }
    PLIMSOLL_ASSIGN(std::string path, tokenized(files, side.part));
    result.push_back({{std::move(path)}, side.weights[i]});
  }
  if (!side.weights.empty()) return result;
  PLIMSOLL_ASSIGN(std::string path, tokenized(all, side.part));
  result.push_back({{std::move(path)}, 1});
  return result;
}

Status LabelledPreparation::open_tokenizer() {
  if (tokenizer_ == "bytes") return Ok{};
  PLIMSOLL_ASSIGN(corpora::EncoderFiles files, corpora::EncoderFiles::open(tokenizer_));
  opened_ = std::move(files.tokenizer);
  tokenizer_folder_ = files.folder;
  if (options_.vocab_size == 0 || opened_->vocab_size() <= options_.vocab_size) return Ok{};
  return too_large(*opened_, options_.vocab_size, tokenizer_);
}

Status LabelledPreparation::look_at_model() {
  PLIMSOLL_ASSIGN(const auto built, models::make_language_model(model_));
  num_token_types_ = built->num_token_types();
  if (corpora::cuts_texts(opened_.get(), built->is_bidirectional()))
    max_tokens_ = config_.data.sequence_length;
  PLIMSOLL_ASSIGN(const tasks::TaskDef* task, task_of(config_, model_));
  asks_ = task->asks;
  return Ok{};
}

Result<corpora::LabelledOptions> LabelledPreparation::encoding(datasets::SplitSide split) const {
  corpora::LabelledOptions encoding;
  encoding.tokenizer = opened_.get();
  encoding.format = {.text_key = config_.data.text_key,
                     .vocab_size = options_.vocab_size,
                     .num_token_types = num_token_types_};
  encoding.max_tokens = max_tokens_;
  PLIMSOLL_ASSIGN(encoding.pad_token, io::read_pad_token(model_));
  if (asks_) encoding.questions = corpora::QuestionOptions{.doc_stride = config_.qa.doc_stride};
  encoding.on_error = config_.data.on_error == "skip" ? corpora::OnError::kSkip : corpora::OnError::kFail;
  encoding.side = split;
  encoding.eval_fraction = config_.data.eval_fraction;
  return encoding;
}

Result<std::string> LabelledPreparation::path_of(const std::vector<std::string>& files, Part part) const {
  PLIMSOLL_ASSIGN(const corpora::LabelledOptions how, encoding(part.split));
  CacheKey key;
  key.add(kLabelledVersion);
  if (opened_ != nullptr) key.add_tokenizer(*opened_, tokenizer_, tokenizer_folder_);
  key.add(config_.data.text_key);
  key.add(config_.data.on_error);
  key.add(fmt::format("{} {} {} {}", how.format.vocab_size, how.pad_token.value_or(-1),
                      static_cast<int>(how.side),
                      how.side == datasets::SplitSide::kAll ? 0 : how.eval_fraction));
  if (part.most > 0) key.add(std::to_string(part.most));
  // What other models' examples do not have leaves their names as they are.
  if (num_token_types_ > 0) key.add(fmt::format("token types {}", num_token_types_));
  if (max_tokens_ > 0) key.add(fmt::format("within {}", max_tokens_));
  if (asks_) key.add(fmt::format("questions {}", config_.qa.doc_stride));
  key.add_files(files);
  const std::string folder = training_data_options(config_, /*eval=*/false).cache_folder;
  return fmt::format("{}/examples-{}.shard", folder, key.text());
}

Result<std::string> LabelledPreparation::tokenized(const std::vector<std::string>& files, Part part) {
  PLIMSOLL_ASSIGN(std::string path, path_of(files, part));
  if (!tokenizes_) {
    is_missing_ = is_missing_ || !datasets::is_shard(path);
    return path;
  }
  if (lease_ != nullptr) {
    PLIMSOLL_TRY(lease_->use(path));
    PLIMSOLL_TRY(lease_->use(corpora::labels_beside(path)));
    if (num_token_types_ > 1) PLIMSOLL_TRY(lease_->use(corpora::types_beside(path)));
  }
  PLIMSOLL_ASSIGN(const corpora::LabelledOptions how, encoding(part.split));
  if (is_intact_labelled(path, how.has_types())) return path;
  PLIMSOLL_TRY(io::create_writable_directory(io::folder_of(path)));
  corpora::TokenizeOptions tokenizing{
      .max_documents = part.most, .num_threads = options_.num_threads, .budget_bytes = options_.budget_bytes};
  tokenizing.stop = [this] { return is_asked(options_.stop); };
  if (options_.progress)
    tokenizing.progress = [&](const corpora::TokenizeCounts& counts) {
      options_.progress(static_cast<double>(counts.bytes_read) /
                            static_cast<double>(std::max<int64_t>(1, counts.total_bytes)),
                        fmt::format("tokenizing, {} examples", counts.num_documents));
    };
  PLIMSOLL_ASSIGN(const corpora::TokenizeCounts counts,
                  corpora::tokenize_labelled(files, how, path, tokenizing));
  tell(counts, options_);
  return path;
}

}  // namespace plimsoll::preprocessing
