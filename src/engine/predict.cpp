// Examples are tokenized once into a file that is gone with the process, so that their lengths are known
// when the programs are made; then they go through in their order, a micro-batch at a time.
#include "engine/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/host.h"
#include "base/units.h"
#include "corpora/encoder_files.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "corpora/reasons.h"
#include "datasets/shard.h"
#include "engine/engine.h"
#include "engine/predict_answers.h"
#include "engine/predict_images.h"
#include "engine/predict_line.h"
#include "engine/prediction_lines.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/safetensors_reader.h"
#include "io/scratch_folder.h"
#include "models/language_model.h"
#include "preprocessing/token_cache.h"
#include "runtime/session.h"
#include "settings/settings.h"
#include "strategy/memory_budget.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "tasks/sequence_classification.h"
#include "tokenizers/tokenizer_source.h"
#include "training/batch_feeder.h"
#include "training/initialise.h"

namespace plimsoll::engine {
namespace {

constexpr int64_t kMostPrograms = 4;  ///< lengths that rows are padded to

Result<io::Labels> labels_of(const io::ConfigJson& config) {
  if (!io::is_sequence_classifier(config))
    return config.error("architectures", "a sequence classifier (…ForSequenceClassification)",
                        "train one: task=sequence_classification");
  PLIMSOLL_ASSIGN(io::LabelFields fields, io::read_label_fields(config));
  const auto otherwise =
      fields.names.size() == 1 ? io::ProblemType::kRegression : io::ProblemType::kSingleLabel;
  return io::Labels{fields.problem.value_or(otherwise), std::move(fields.names)};
}

/// Of a base that is no classifier the adapter's head says how many labels there are; none says their names.
Result<io::Labels> labels_of_adapter(const std::string& adapter) {
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file,
                  io::SafetensorsFile::open(adapter + "/adapter_model.safetensors"));
  const io::SafetensorsTensor* head = nullptr;
  for (const char* name : {"score.weight", "classifier.weight", "classifier.out_proj.weight"})
    if (head == nullptr) head = file.find("base_model.model." + std::string(name));
  if (head == nullptr || head->shape.size() != 2)
    return Error{ErrorCode::kBadData, "neither model nor adapter has a classifier's head", adapter,
                 "train one: task=sequence_classification"};
  io::Labels labels{head->shape[0] == 1 ? io::ProblemType::kRegression : io::ProblemType::kSingleLabel, {}};
  for (int64_t i = 0; i < head->shape[0]; ++i) labels.names.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

class Prediction {
 public:
  Prediction(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop)
      : request_(request), sink_(sink), stop_(stop) {}

  Status operator()() {
    PLIMSOLL_TRY(open());
    PLIMSOLL_ASSIGN(PredictionLines lines, PredictionLines::open(request_.output, sink_));
    PLIMSOLL_ASSIGN(const Examples examples, tokenized());
    PLIMSOLL_TRY(plan(examples.tokens));
    PLIMSOLL_ASSIGN(device_, strategy::make_device(config_, strategy::num_threads(config_), *prepared_));
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(prepared_->programs.session), {}));
    PLIMSOLL_TRY(training::initialise(config_, *prepared_, *session_, /*pretrained=*/true,
                                      strategy::num_threads(config_)));
    return run(examples, lines);
  }

 private:
  /// What the examples became; types where the model has several.
  struct Examples {
    datasets::Shard tokens;
    std::optional<datasets::Shard> types;
  };

  Status open() {
    PLIMSOLL_ASSIGN(const io::NamedModel named, io::find_named_model(request_.model, request_.adapter));
    if (named.note) note(*named.note);
    const std::string &folder = named.model, &adapter = named.adapter;
    const bool has_texts =
        request_.adapter.empty() && !adapter.empty() && !tokenizers::tokenizer_file(adapter).empty();
    texts_ = has_texts ? adapter : folder;
    PLIMSOLL_ASSIGN(const io::ConfigJson model, io::read_config_json(folder + "/config.json"));
    if (!adapter.empty() &&
        io::is_file(adapter + "/config.json")) {  // with the labels that it was trained on
      PLIMSOLL_ASSIGN(const io::ConfigJson trained, io::read_config_json(adapter + "/config.json"));
      PLIMSOLL_ASSIGN(labels_, labels_of(trained));
    } else if (!adapter.empty() && !io::is_sequence_classifier(model)) {
      PLIMSOLL_ASSIGN(labels_, labels_of_adapter(adapter));
    } else {
      PLIMSOLL_ASSIGN(labels_, labels_of(model));
    }
    PLIMSOLL_ASSIGN(pad_token_, io::read_pad_token(model));
    PLIMSOLL_ASSIGN(vocab_size_, model.integer("vocab_size", {1}));
    config_.task = "sequence_classification";
    config_.model.path = folder;
    config_.lora.enabled = !adapter.empty();
    config_.lora.adapter = adapter;
    config_.data.packing = "pad";
    PLIMSOLL_TRY(set_limits(request_, config_));
    PLIMSOLL_ASSIGN(const io::ConfigJson whole, settings::load_model_config(config_.model));
    PLIMSOLL_ASSIGN(const auto built, models::make_language_model(whole));
    rows_ = tasks::rows_of(*built);
    max_tokens_ = std::min(built->max_positions(), request_.max_length.value_or(built->max_positions()));
    return Ok{};
  }

  /// The examples' tokens, in files without a name: whatever ends the process leaves none.
  Result<Examples> tokenized() const {
    PLIMSOLL_ASSIGN(const io::ScratchFolder folder, io::ScratchFolder::create("predict"));
    const std::string path = folder.path() + "/examples.shard";
    PLIMSOLL_TRY(tokenize(path));
    PLIMSOLL_ASSIGN(datasets::Shard tokens, datasets::Shard::open(path));
    if (!rows_.has_types()) return Examples{std::move(tokens), std::nullopt};
    PLIMSOLL_ASSIGN(datasets::Shard types, datasets::Shard::open(corpora::types_beside(path)));
    return Examples{std::move(tokens), std::move(types)};
  }

  /// In a process of its own, whose memory is in no plan.
  Status tokenize(const std::string& path) const {
    auto done = run_apart([&]() -> Result<std::string> {
      PLIMSOLL_TRY(write_examples(path));
      return std::string();
    });
    if (done) return Ok{};
    Error error = std::move(done).error();
    if (error.hint == corpora::kSkipHint)
      error.hint = "correct it: every line needs an answer, none is skipped";
    return error;
  }

  Status write_examples(const std::string& path) const {
    const std::string& folder = texts_;
    corpora::LabelledOptions options;
    corpora::EncoderFiles files;
    if (!tokenizers::tokenizer_file(folder).empty()) {
      PLIMSOLL_ASSIGN(files, corpora::EncoderFiles::open(folder));
      if (files.tokenizer->vocab_size() > vocab_size_) {
        Error error = preprocessing::too_large(*files.tokenizer, vocab_size_, folder);
        error.code = ErrorCode::kBadData;  // both are the folder's
        return error;
      }
    }
    options.tokenizer = files.tokenizer.get();
    options.format = {.text_key = request_.text_key,
                      .with_label = false,
                      .vocab_size = vocab_size_,
                      .num_token_types = rows_.num_token_types};
    if (corpora::cuts_texts(options.tokenizer, rows_.doc_start)) options.max_tokens = max_tokens_;
    options.pad_token = pad_token_;
    corpora::TokenizeOptions tokenizing{
        .num_threads = strategy::num_threads(config_),
        .budget_bytes = strategy::tokenizing_budget(config_.memory.budget, read_machine_memory()),
        .budget_name = {"--memory-budget", "give --memory-budget "}};
    tokenizing.stop = [this] { return is_asked(stop_); };
    PLIMSOLL_ASSIGN(const corpora::TokenizeCounts counts,
                    corpora::tokenize_labelled(request_.data, options, path, tokenizing));
    for (const std::string& line : corpora::remark_lines(counts.remarks)) note(line);
    return Ok{};
  }

  Status plan(const datasets::Shard& shard) {
    int64_t longest = 1;
    const auto visit = [&](auto&& take) {
      return shard.visit_documents([&](const datasets::ShardDocument& document) -> Status {
        take(document.num_tokens());
        return Ok{};
      });
    };
    PLIMSOLL_TRY(visit([&](int64_t tokens) { longest = std::max(longest, tokens); }));
    longest = std::min(longest, max_tokens_);
    datasets::LengthCounts counts(longest);
    PLIMSOLL_TRY(visit([&](int64_t tokens) { counts.add(std::min(tokens, longest)); }));
    config_.data.sequence_length = longest;
    strategy::PrepareOptions options{.num_threads = strategy::num_threads(config_),
                                     .purpose = strategy::Purpose::kEvaluate};
    options.buckets = preprocessing::Buckets{.lengths = datasets::choose_lengths(counts, kMostPrograms)};
    options.labels = labels_;
    PLIMSOLL_ASSIGN(
        strategy::Prepared prepared,
        strategy::prepare(config_, *strategy::make_target(config_, options.num_threads), options));
    prepared_.emplace(std::move(prepared));
    return prepared_->report.fits ? Status(Ok{}) : too_large(options, longest);
  }

  /// With what shorter rows would need, planned.
  Error too_large(strategy::PrepareOptions options, int64_t longest) {
    Error error = strategy::does_not_fit(*prepared_);
    prepared_->programs = {};
    options.request = strategy::PlanRequest::kFit;
    for (int64_t length = longest / 2; length > 0; length /= 2) {
      config_.data.sequence_length = length;
      options.buckets = preprocessing::Buckets{.lengths = {length}};
      const auto shorter =
          strategy::prepare(config_, *strategy::make_target(config_, options.num_threads), options);
      if (!shorter || !shorter->report.fits) continue;
      error.hint += fmt::format("; --max-length {} needs {}", length,
                                to_string(Bytes(shorter->report.process_peak_bytes())));
      break;
    }
    return error;
  }

  Status run(const Examples& examples, PredictionLines& lines) {
    const std::vector<int64_t>& lengths = prepared_->buckets.lengths;
    training::BatchFeeder feeder(*session_, *prepared_->task, lengths);
    const int64_t micro = prepared_->split.micro_batch_size, total = examples.tokens.info().num_documents;
    std::vector<float> logits(static_cast<size_t>(session_->type(planner::kLogitsState).num_elements()));
    const size_t width = logits.size() / static_cast<size_t>(micro);
    for (int64_t first = 0; first < total; first += micro) {
      if (is_asked(stop_))
        return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run the same command again"};
      const int64_t count = std::min(micro, total - first);
      PLIMSOLL_ASSIGN(const size_t bucket, feed(examples, first, count, feeder));
      PLIMSOLL_TRY(session_->run(session_->plan().find_program(
          {passes::ProgramRole::kEval, planner::bucket_of(lengths[bucket], lengths)})));
      PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(logits))));
      for (int64_t r = 0; r < count; ++r)
        lines.add(prediction(labels_, std::span(logits).subspan(static_cast<size_t>(r) * width, width)));
      PLIMSOLL_TRY(lines.flush());
    }
    return lines.finish();
  }

  /// Examples [first, first + count) to the inputs of the least bucket that holds them.
  Result<size_t> feed(const Examples& examples, int64_t first, int64_t count, training::BatchFeeder& feeder) {
    const datasets::Shard& shard = examples.tokens;
    scratch_.resize(static_cast<size_t>(std::max({shard.block_bytes(), datasets::Shard::kDocumentScratchBytes,
                                                  examples.types ? examples.types->block_bytes() : 0})));
    documents_.resize(static_cast<size_t>(count));
    const auto for_documents =
        std::span(scratch_).first(static_cast<size_t>(datasets::Shard::kDocumentScratchBytes));
    PLIMSOLL_TRY(shard.read_documents(first, documents_, for_documents));
    int64_t longest = 1;
    for (const datasets::ShardDocument& document : documents_)
      longest = std::max(longest, document.num_tokens());
    const std::vector<int64_t>& lengths = prepared_->buckets.lengths;
    longest = std::min(longest, lengths.back());
    const size_t bucket = feeder.bucket_of(*std::lower_bound(lengths.begin(), lengths.end(), longest));
    Status filled = feeder.fill(bucket, count, [&](int64_t r, datasets::ExampleRow to) {
      return fill_row(examples, documents_[static_cast<size_t>(r)], to);
    });
    if (!filled) return std::move(filled).error();
    return bucket;
  }

  Status fill_row(const Examples& examples, const datasets::ShardDocument& document,
                  datasets::ExampleRow to) {
    const std::vector<datasets::TensorSpec>& inputs = prepared_->task->inputs();
    for (size_t t = 0; t < to.size(); ++t) pad_example(inputs[t], to[t]);
    const auto row = tasks::SequenceRow::of(to, rows_);
    auto kept = static_cast<size_t>(std::min(document.num_tokens(), prepared_->buckets.lengths.back()));
    PLIMSOLL_TRY(examples.tokens.read(document.begin, row.tokens.first(kept), {}, scratch_));
    if (examples.types)
      PLIMSOLL_TRY(examples.types->read(document.begin, row.types.first(kept), {}, scratch_));
    while (pad_token_ && kept > 1 && row.tokens[kept - 1] == *pad_token_) --kept;
    row.set_length(static_cast<int64_t>(kept));
    return Ok{};
  }

  const PredictRequest& request_;
  telemetry::Sink& sink_;
  const Stop& stop_;
  settings::RunConfig config_;
  io::Labels labels_;
  std::string texts_;  ///< the folder of the tokenizer
  std::optional<int64_t> pad_token_;
  int64_t vocab_size_ = 0;
  tasks::SequenceRows rows_;
  int64_t max_tokens_ = 0;  ///< of a row
  std::optional<strategy::Prepared> prepared_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;  ///< goes before its device
  std::vector<std::byte> scratch_;
  std::vector<datasets::ShardDocument> documents_;
};

}  // namespace

Status Engine::predict(const PredictRequest& request) {
  PLIMSOLL_ASSIGN(const bool images, classifies_images(request));
  PLIMSOLL_ASSIGN(const bool asks, images ? Result<bool>(false) : answers_questions(request));
  if (asks) return predict_answers(request, sink_, stop_);
  return images ? predict_images(request, sink_, stop_) : Prediction(request, sink_, stop_)();
}

}  // namespace plimsoll::engine
