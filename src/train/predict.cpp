// Examples are tokenized once into a file that is gone with the process, so that their lengths are known
// when the programs are made; then they go through in their order, a micro-batch at a time.
#include "train/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "base/child_process.h"
#include "base/note.h"
#include "base/signals.h"
#include "base/units.h"
#include "data/labelled/tokenize_labelled.h"
#include "data/shard.h"
#include "data/text/encoder_files.h"
#include "data/text/reasons.h"
#include "data/tokenizer/tokenizer_source.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/safetensors_reader.h"
#include "io/scratch_folder.h"
#include "preprocessing/token_cache.h"
#include "runtime/session.h"
#include "settings/settings.h"
#include "train/batch_feeder.h"
#include "train/initialise.h"
#include "train/memory_budget.h"
#include "train/predict_line.h"
#include "train/prepare.h"
#include "train/run_device.h"

namespace plimsoll::train {
namespace {

constexpr int64_t kMostPrograms = 4;  ///< lengths that rows are padded to

/// Lines on their way to stdout or to a file that is there whole or not at all.
class Lines {
 public:
  static Result<Lines> open(const std::string& path) {
    Lines lines;
    if (path.empty()) return lines;
    PLIMSOLL_ASSIGN(AtomicFile file, AtomicFile::create(path));
    lines.file_.emplace(std::move(file));
    return lines;
  }
  void add(const Tree& line) { text_ += to_json(line) + "\n"; }
  Status flush() {
    if (file_)
      PLIMSOLL_TRY(file_->write_at(offset_, std::as_bytes(std::span(text_))));
    else if (std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size())
      return io_error("cannot write", "stdout", errno);
    offset_ += static_cast<int64_t>(text_.size());
    text_.clear();
    return Ok{};
  }
  Status finish() {
    if (file_) return file_->commit();
    return std::fflush(stdout) == 0 ? Status(Ok{}) : io_error("cannot write", "stdout", errno);
  }

 private:
  std::optional<AtomicFile> file_;
  std::string text_;
  int64_t offset_ = 0;
};

Result<Labels> labels_of(const ConfigJson& config) {
  if (!is_sequence_classifier(config))
    return config.error("architectures", "a sequence classifier (…ForSequenceClassification)",
                        "train one: task=sequence_classification");
  PLIMSOLL_ASSIGN(LabelFields fields, read_label_fields(config));
  const auto otherwise = fields.names.size() == 1 ? ProblemType::kRegression : ProblemType::kSingleLabel;
  return Labels{fields.problem.value_or(otherwise), std::move(fields.names)};
}

/// Of a base that is no classifier the adapter's head says how many labels there are; none says their names.
Result<Labels> labels_of_adapter(const std::string& adapter) {
  PLIMSOLL_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(adapter + "/adapter_model.safetensors"));
  const SafetensorsTensor* head = file.find("base_model.model." + std::string(models::Model::kScore));
  if (head == nullptr || head->shape.size() != 2)
    return Error{ErrorCode::kBadData, "neither model nor adapter has a classifier's head", adapter,
                 "train one: task=sequence_classification"};
  Labels labels{head->shape[0] == 1 ? ProblemType::kRegression : ProblemType::kSingleLabel, {}};
  for (int64_t i = 0; i < head->shape[0]; ++i) labels.names.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

class Prediction {
 public:
  explicit Prediction(const PredictRequest& request) : request_(request) {}

  Status operator()() {
    PLIMSOLL_TRY(open());
    PLIMSOLL_ASSIGN(Lines lines, Lines::open(request_.output));
    PLIMSOLL_ASSIGN(const Shard shard, tokenized());
    PLIMSOLL_TRY(plan(shard));
    PLIMSOLL_ASSIGN(device_, make_device(config_, num_threads(config_), prepared_->report.disk_bytes));
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(prepared_->programs.session), {}));
    PLIMSOLL_TRY(initialise(config_, *prepared_, *session_, /*pretrained=*/true, num_threads(config_)));
    return run(shard, lines);
  }

 private:
  Status open() {
    PLIMSOLL_ASSIGN(const NamedModel named, find_named_model(request_.model, request_.adapter));
    if (named.note) note(*named.note);
    const std::string &folder = named.model, &adapter = named.adapter;
    const bool has_texts =
        request_.adapter.empty() && !adapter.empty() && !tokenizer::tokenizer_file(adapter).empty();
    texts_ = has_texts ? adapter : folder;
    PLIMSOLL_ASSIGN(const ConfigJson model, read_config_json(folder + "/config.json"));
    if (!adapter.empty() && is_file(adapter + "/config.json")) {  // with the labels that it was trained on
      PLIMSOLL_ASSIGN(const ConfigJson trained, read_config_json(adapter + "/config.json"));
      PLIMSOLL_ASSIGN(labels_, labels_of(trained));
    } else if (!adapter.empty() && !is_sequence_classifier(model)) {
      PLIMSOLL_ASSIGN(labels_, labels_of_adapter(adapter));
    } else {
      PLIMSOLL_ASSIGN(labels_, labels_of(model));
    }
    PLIMSOLL_ASSIGN(pad_token_, read_pad_token(model));
    PLIMSOLL_ASSIGN(vocab_size_, model.integer("vocab_size", {1}));
    config_.task = "sequence_classification";
    config_.model.path = folder;
    config_.lora.enabled = !adapter.empty();
    config_.lora.adapter = adapter;
    config_.data.packing = "pad";
    config_.training.global_batch_size = request_.batch_size;
    config_.runtime.threads = request_.threads;
    PLIMSOLL_TRY(assign_setting(*find_setting("memory.budget"), Tree::of(request_.memory_budget), config_));
    for (const std::string& remark : budget_notes(config_, read_machine_memory())) note(remark);
    return Ok{};
  }

  /// The examples' tokens, in files without a name: whatever ends the process leaves none.
  Result<Shard> tokenized() const {
    PLIMSOLL_ASSIGN(const ScratchFolder folder, ScratchFolder::create("predict"));
    const std::string path = folder.path() + "/examples.shard";
    PLIMSOLL_TRY(tokenize(path));
    return Shard::open(path);
  }

  /// In a process of its own, whose memory is in no plan.
  Status tokenize(const std::string& path) const {
    auto done = in_child_process([&]() -> Result<std::string> {
      PLIMSOLL_TRY(write_examples(path));
      return std::string();
    });
    if (done) return Ok{};
    Error error = std::move(done).error();
    if (error.hint == text::kSkipHint) error.hint = "correct it: each line is answered, none passed over";
    return error;
  }

  Status write_examples(const std::string& path) const {
    const std::string& folder = texts_;
    LabelledOptions options;
    EncoderFiles files;
    if (!tokenizer::tokenizer_file(folder).empty()) {
      PLIMSOLL_ASSIGN(files, EncoderFiles::open(folder));
      if (files.tokenizer->vocab_size() > vocab_size_) {
        Error error = train::too_large(*files.tokenizer, vocab_size_, folder);
        error.code = ErrorCode::kBadData;  // both are the folder's
        return error;
      }
    }
    options.tokenizer = files.tokenizer.get();
    options.format = {.text_key = request_.text_key, .with_label = false, .vocab_size = vocab_size_};
    options.pad_token = pad_token_;
    TokenizeOptions tokenizing{.num_threads = num_threads(config_)};
    tokenizing.stop = [] { return stop_requested() != 0; };
    PLIMSOLL_ASSIGN(const TokenizeCounts counts, tokenize_labelled(request_.data, options, path, tokenizing));
    for (const std::string& line : remark_lines(counts.remarks)) note(line);
    return Ok{};
  }

  Status plan(const Shard& shard) {
    int64_t longest = 1;
    const auto visit = [&](auto&& take) {
      return shard.visit_documents([&](const ShardDocument& document) -> Status {
        take(document.num_tokens());
        return Ok{};
      });
    };
    PLIMSOLL_TRY(visit([&](int64_t tokens) { longest = std::max(longest, tokens); }));
    PLIMSOLL_ASSIGN(const ConfigJson model, load_model_config(config_.model));
    PLIMSOLL_ASSIGN(const auto built, models::make_model(model));
    longest = std::min({longest, built->max_positions(), request_.max_length.value_or(longest)});
    LengthCounts counts(longest);
    PLIMSOLL_TRY(visit([&](int64_t tokens) { counts.add(std::min(tokens, longest)); }));
    config_.data.sequence_length = longest;
    PrepareOptions options{.num_threads = num_threads(config_), .purpose = Purpose::kEvaluate};
    options.buckets = Buckets{.lengths = choose_lengths(counts, kMostPrograms)};
    options.labels = labels_;
    PLIMSOLL_ASSIGN(Prepared prepared, prepare(config_, *make_target(config_, options.num_threads), options));
    prepared_.emplace(std::move(prepared));
    return prepared_->report.fits ? Status(Ok{}) : too_large(options, longest);
  }

  /// With what shorter rows would need, planned.
  Error too_large(PrepareOptions options, int64_t longest) {
    Error error = does_not_fit(*prepared_);
    prepared_->programs = {};
    options.finds_least = false;
    for (int64_t length = longest / 2; length > 0; length /= 2) {
      config_.data.sequence_length = length;
      options.buckets = Buckets{.lengths = {length}};
      const auto shorter = prepare(config_, *make_target(config_, options.num_threads), options);
      if (!shorter || !shorter->report.fits) continue;
      error.hint += fmt::format("; --max-length {} needs {}", length,
                                to_string(Bytes(shorter->report.process_peak_bytes())));
      break;
    }
    return error;
  }

  Status run(const Shard& shard, Lines& lines) {
    const std::vector<int64_t>& lengths = prepared_->buckets.lengths;
    BatchFeeder feeder(*session_, *prepared_->task, lengths);
    const int64_t micro = prepared_->split.micro_batch_size, total = shard.info().num_documents;
    std::vector<float> logits(static_cast<size_t>(session_->type(planner::kLogitsState).num_elements()));
    const size_t width = logits.size() / static_cast<size_t>(micro);
    for (int64_t first = 0; first < total; first += micro) {
      if (stop_requested() != 0)
        return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run the same command again"};
      const int64_t count = std::min(micro, total - first);
      PLIMSOLL_ASSIGN(const size_t bucket, feed(shard, first, count, feeder));
      PLIMSOLL_TRY(
          session_->run(session_->plan().find_program(planner::name_at("eval", lengths[bucket], lengths))));
      PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(logits))));
      for (int64_t r = 0; r < count; ++r)
        lines.add(prediction(labels_, std::span(logits).subspan(static_cast<size_t>(r) * width, width)));
      PLIMSOLL_TRY(lines.flush());
    }
    return lines.finish();
  }

  /// Examples [first, first + count) to the inputs of the least bucket that holds them.
  Result<size_t> feed(const Shard& shard, int64_t first, int64_t count, BatchFeeder& feeder) {
    scratch_.resize(static_cast<size_t>(std::max(shard.block_bytes(), Shard::kDocumentScratchBytes)));
    documents_.resize(static_cast<size_t>(count));
    const auto for_documents = std::span(scratch_).first(static_cast<size_t>(Shard::kDocumentScratchBytes));
    PLIMSOLL_TRY(shard.read_documents(first, documents_, for_documents));
    int64_t longest = 1;
    for (const ShardDocument& document : documents_) longest = std::max(longest, document.num_tokens());
    const std::vector<int64_t>& lengths = prepared_->buckets.lengths;
    longest = std::min(longest, lengths.back());
    const size_t bucket = feeder.bucket_of(*std::lower_bound(lengths.begin(), lengths.end(), longest));
    Status filled = feeder.fill(bucket, count, [&](int64_t r, SequenceRow to) {
      return fill_row(shard, documents_[static_cast<size_t>(r)], to);
    });
    if (!filled) return std::move(filled).error();
    return bucket;
  }

  Status fill_row(const Shard& shard, const ShardDocument& document, SequenceRow to) {
    const std::vector<tasks::Input>& inputs = prepared_->task->inputs();
    for (size_t t = 0; t < to.size(); ++t) pad_row(inputs[t].row, to[t], 0);
    const std::span<int32_t> tokens = row_as<int32_t>(to[0]);
    auto kept = static_cast<size_t>(std::min(document.num_tokens(), prepared_->buckets.lengths.back()));
    PLIMSOLL_TRY(shard.read(document.begin, tokens.first(kept), {}, scratch_));
    while (pad_token_ && kept > 1 && tokens[kept - 1] == *pad_token_) --kept;
    row_as<int32_t>(to[1])[0] = static_cast<int32_t>(kept) - 1;
    return Ok{};
  }

  const PredictRequest& request_;
  RunConfig config_;
  Labels labels_;
  std::string texts_;  ///< the folder of the tokenizer
  std::optional<int64_t> pad_token_;
  int64_t vocab_size_ = 0;
  std::optional<Prepared> prepared_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;  ///< goes before its device
  std::vector<std::byte> scratch_;
  std::vector<ShardDocument> documents_;
};

}  // namespace

Status predict(const PredictRequest& request) { return Prediction(request)(); }

}  // namespace plimsoll::train
