// Windows are cut once, in a process of its own, into files that are gone with this one; they go through in
// their order, a micro-batch at a time, beside the lines that they are from.
#include "engine/predict_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "base/host.h"
#include "corpora/encoder_files.h"
#include "corpora/labelled/answer_score.h"
#include "corpora/labelled/labelled_dataset.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "engine/best_answers.h"
#include "engine/predict_images.h"
#include "engine/prediction_lines.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/scratch_folder.h"
#include "models/language_model.h"
#include "preprocessing/run_task.h"
#include "preprocessing/token_cache.h"
#include "runtime/session.h"
#include "settings/settings.h"
#include "strategy/memory_budget.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "tasks/question_answering.h"
#include "tokenizers/tokenizer_source.h"
#include "training/batch_feeder.h"
#include "training/initialise.h"

namespace plimsoll::engine {
namespace {

/// What the label of a window is (corpora::QuestionOptions::asks).
const io::Labels kPlaces = {io::ProblemType::kRegression, {"question", "first", "tokens"}};

/// The questions of the files, one after the other.
class Questions {
 public:
  static Result<Questions> open(std::span<const std::string> files) {
    Questions questions;
    corpora::ReaderOptions options;
    options.list_member = corpora::kArticles;
    PLIMSOLL_ASSIGN(questions.reader_, corpora::RecordReader::open(files, options));
    return questions;
  }
  /// They were all read before. Errors: kBadData where the files have changed since; kIo.
  Result<corpora::Question> next() {
    while (at_ == read_.size()) {
      bytes_.clear();
      corpora::Record record;
      PLIMSOLL_ASSIGN(const bool more, reader_->next(bytes_, record));
      const std::string& file = reader_->files()[more ? record.file : 0];
      if (!more)
        return Error{ErrorCode::kBadData, "the file has changed while it was read", file, "run again"};
      const std::string_view json = std::string_view(bytes_).substr(record.begin, record.size);
      if (auto wrong = corpora::parse_questions(json, corpora::place_of(file, record.line), false, read_))
        return std::move(wrong->error);
      at_ = 0;
    }
    return std::move(read_[at_++]);
  }

 private:
  std::unique_ptr<corpora::RecordReader> reader_;
  std::string bytes_;
  std::vector<corpora::Question> read_;
  size_t at_ = 0;
};

int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

class AnswerPrediction {
 public:
  AnswerPrediction(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop)
      : request_(request), sink_(sink), stop_(stop), best_(request.answers) {}

  Status operator()() {
    PLIMSOLL_TRY(open());
    PLIMSOLL_ASSIGN(PredictionLines lines, PredictionLines::open(request_.output, sink_));
    PLIMSOLL_ASSIGN(Windows windows, cut());
    PLIMSOLL_TRY(plan(windows));
    PLIMSOLL_ASSIGN(device_, strategy::make_device(config_, strategy::num_threads(config_), *prepared_));
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(prepared_->programs.session), {}));
    PLIMSOLL_TRY(training::initialise(config_, *prepared_, *session_, /*pretrained=*/true,
                                      strategy::num_threads(config_)));
    PLIMSOLL_ASSIGN(Questions questions, Questions::open(request_.data));
    PLIMSOLL_TRY(run(windows, questions, lines));
    PLIMSOLL_TRY(lines.finish());
    tell_scores();
    return Ok{};
  }

 private:
  struct Windows {
    corpora::LabelledDataset data;
    datasets::Shard begins, ends;
  };

  Status open() {
    if (const auto& threshold = request_.answers.null_threshold; threshold && !std::isfinite(*threshold))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--null-threshold is {}, expected a number", *threshold)};
    PLIMSOLL_ASSIGN(const io::NamedModel named, io::find_named_model(request_.model, request_.adapter));
    if (named.note) note(*named.note);
    const bool has_texts = request_.adapter.empty() && !named.adapter.empty() &&
                           !tokenizers::tokenizer_file(named.adapter).empty();
    texts_ = has_texts ? named.adapter : named.model;
    config_.task = "question_answering";
    config_.model.path = named.model;
    config_.lora.enabled = !named.adapter.empty();
    config_.lora.adapter = named.adapter;
    PLIMSOLL_TRY(set_limits(request_, config_));
    PLIMSOLL_ASSIGN(const io::ConfigJson whole, settings::load_model_config(config_.model));
    PLIMSOLL_ASSIGN(const auto built, models::make_language_model(whole));
    vocab_size_ = built->vocab_size();
    num_token_types_ = built->num_token_types();
    constexpr int64_t kUsual = 384;
    max_tokens_ = std::min(built->max_positions(), request_.max_length.value_or(kUsual));
    return Ok{};
  }

  Result<Windows> cut() const {
    PLIMSOLL_ASSIGN(const io::ScratchFolder folder, io::ScratchFolder::create("predict"));
    const std::string path = folder.path() + "/windows.shard";
    // In a process of its own, whose memory is in no plan.
    auto done = run_apart([&]() -> Result<std::string> {
      PLIMSOLL_TRY(write_windows(path));
      return std::string();
    });
    if (!done) {
      Error error = std::move(done).error();
      if (error.hint == corpora::kSkipHint)
        error.hint = "correct it: every line needs an answer, none is skipped";
      return error;
    }
    const corpora::LabelledDatasetOptions options{.sequence_length = max_tokens_,
                                                  .vocab_size = vocab_size_,
                                                  .token_types = num_token_types_ > 1,
                                                  .labels = kPlaces,
                                                  .setting = "--data"};
    PLIMSOLL_ASSIGN(corpora::LabelledDataset data, corpora::LabelledDataset::open({&path, 1}, options));
    PLIMSOLL_ASSIGN(datasets::Shard begins, datasets::Shard::open(corpora::begins_beside(path)));
    PLIMSOLL_ASSIGN(datasets::Shard ends, datasets::Shard::open(corpora::ends_beside(path)));
    return Windows{std::move(data), std::move(begins), std::move(ends)};
  }

  Status write_windows(const std::string& path) const {
    if (tokenizers::tokenizer_file(texts_).empty())
      return Error{ErrorCode::kBadData, "the model has no tokenizer", texts_, "questions are texts"};
    PLIMSOLL_ASSIGN(const corpora::EncoderFiles files, corpora::EncoderFiles::open(texts_));
    if (files.tokenizer->vocab_size() > vocab_size_) {
      Error error = preprocessing::too_large(*files.tokenizer, vocab_size_, texts_);
      error.code = ErrorCode::kBadData;  // both are the folder's
      return error;
    }
    corpora::LabelledOptions options;
    options.tokenizer = files.tokenizer.get();
    options.format = {.with_label = false, .vocab_size = vocab_size_, .num_token_types = num_token_types_};
    options.max_tokens = max_tokens_;
    options.questions = {.doc_stride = request_.doc_stride, .asks = true};
    corpora::TokenizeOptions tokenizing{
        .num_threads = strategy::num_threads(config_),
        .budget_bytes = strategy::tokenizing_budget(config_.memory.budget, read_machine_memory()),
        .budget_name = {"--memory-budget", "give --memory-budget "}};
    tokenizing.stop = [this] { return is_asked(stop_); };
    auto counts = corpora::tokenize_labelled(request_.data, options, path, tokenizing);
    if (!counts) return in_words_of_predict(std::move(counts).error());
    for (const std::string& line : corpora::remark_lines(counts->remarks)) note(line);
    return Ok{};
  }

  static Error in_words_of_predict(Error error) {
    for (const auto& [setting, option] :
         {std::pair("data.sequence_length", "--max-length"), std::pair("qa.doc_stride", "--doc-stride")})
      if (const size_t at = error.hint.find(setting); at != std::string::npos)
        error.hint.replace(at, std::string_view(setting).size(), option);
    return error;
  }

  Status plan(const Windows& windows) {
    scratch_.resize(static_cast<size_t>(
        std::max({windows.data.scratch_bytes(), 2 * windows.begins.block_bytes(),
                  2 * windows.ends.block_bytes(), datasets::Shard::kDocumentScratchBytes})));
    int64_t longest = 1;
    for (int64_t i = 0; i < windows.data.size(); ++i) {
      PLIMSOLL_ASSIGN(const int64_t length, windows.data.length(i, scratch_));
      longest = std::max(longest, length);
    }
    config_.data.sequence_length = longest;
    strategy::PrepareOptions options{.num_threads = strategy::num_threads(config_),
                                     .purpose = strategy::Purpose::kEvaluate};
    options.buckets = preprocessing::Buckets{.lengths = {longest}};
    options.labels = preprocessing::span_labels();
    PLIMSOLL_ASSIGN(
        strategy::Prepared prepared,
        strategy::prepare(config_, *strategy::make_target(config_, options.num_threads), options));
    prepared_.emplace(std::move(prepared));
    if (prepared_->report.fits) return Ok{};
    Error error = strategy::does_not_fit(*prepared_);
    error.hint += "; or give --max-length less tokens";
    return error;
  }

  /// What a window is of.
  struct Place {
    int64_t question = 0;
    size_t first = 0, tokens = 0;
  };

  Status run(const Windows& windows, Questions& questions, PredictionLines& lines) {
    const int64_t micro = prepared_->split.micro_batch_size, total = windows.data.size();
    const auto longest = static_cast<size_t>(config_.data.sequence_length);
    training::BatchFeeder feeder(*session_, *prepared_->task, prepared_->buckets.lengths);
    const int program = session_->plan().find_program({passes::ProgramRole::kEval});
    std::vector<float> logits(static_cast<size_t>(session_->type(planner::kLogitsState).num_elements()));
    std::vector<Place> places(static_cast<size_t>(micro));
    std::optional<int64_t> at_hand;
    for (int64_t first = 0; first < total; first += micro) {
      if (is_asked(stop_))
        return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run the same command again"};
      const int64_t count = std::min(micro, total - first);
      PLIMSOLL_TRY(feeder.fill(0, count, [&](int64_t r, datasets::ExampleRow to) {
        return fill_row(windows, first + r, to, places[static_cast<size_t>(r)]);
      }));
      PLIMSOLL_TRY(session_->run(program));
      PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(logits))));
      for (int64_t r = 0; r < count; ++r) {
        const Place& place = places[static_cast<size_t>(r)];
        if (at_hand && *at_hand != place.question) PLIMSOLL_TRY(answer(questions, lines));
        at_hand = place.question;
        PLIMSOLL_TRY(add(windows, first + r, place,
                         std::span(logits).subspan(static_cast<size_t>(r) * 2 * longest, 2 * longest)));
      }
      PLIMSOLL_TRY(lines.flush());
    }
    PLIMSOLL_TRY(answer(questions, lines));
    return lines.flush();
  }

  Status fill_row(const Windows& windows, int64_t index, datasets::ExampleRow to, Place& place) {
    const auto window = tasks::WindowRow::of(to, num_token_types_ > 1);
    std::array<float, 3> label = {};
    int32_t last = 0;
    PLIMSOLL_ASSIGN(const int64_t tokens,
                    windows.data.read(index, {window.tokens, &last, label, window.types}, scratch_));
    window.set_length(tokens);
    std::ranges::fill(window.spans, 0);
    place = {static_cast<int64_t>(label[0]), static_cast<size_t>(label[1]), static_cast<size_t>(label[2])};
    return Ok{};
  }

  Status add(const Windows& windows, int64_t index, const Place& place, std::span<const float> logits) {
    datasets::ShardDocument document;
    PLIMSOLL_TRY(windows.begins.read_documents(
        index, {&document, 1},
        std::span(scratch_).first(static_cast<size_t>(datasets::Shard::kDocumentScratchBytes))));
    begins_.resize(place.tokens);
    ends_.resize(place.tokens);
    const int64_t from = document.begin + static_cast<int64_t>(place.first);
    PLIMSOLL_TRY(windows.begins.read(from, begins_, {}, scratch_));
    PLIMSOLL_TRY(windows.ends.read(from, ends_, {}, scratch_));
    const size_t half = logits.size() / 2;
    best_.add({logits.first(half), logits.subspan(half), place.first, begins_, ends_});
    return Ok{};
  }

  /// Ends the question at hand.
  Status answer(Questions& questions, PredictionLines& lines) {
    PLIMSOLL_ASSIGN(const corpora::Question question, questions.next());
    const BestAnswers::Choice choice = best_.take();
    const auto text = [&](const ScoredAnswer& each) {
      return question.context.substr(each.span.begin, each.span.end - each.span.begin);
    };
    const auto described = [&](const ScoredAnswer& each) {
      io::Tree tree = io::Tree::map();
      tree.set("answer", io::Tree::of(text(each)));
      tree.set("score", io::Tree::of(each.probability));
      return tree;
    };
    io::Tree line = io::Tree::map();
    if (!question.id.empty()) line.set("id", io::Tree::of(question.id));
    for (auto& [key, value] : described(choice.best).members) line.set(key, value);
    const auto begin = characters(std::string_view(question.context).substr(0, choice.best.span.begin));
    line.set("begin", io::Tree::of(begin));
    line.set("end", io::Tree::of(begin + characters(text(choice.best))));
    if (choice.null_odds) line.set("null_odds", io::Tree::of(*choice.null_odds));
    std::vector<io::Tree> others;
    for (const ScoredAnswer& each : choice.all)
      if (std::ssize(others) < request_.alternatives) others.push_back(described(each));
    if (!others.empty()) line.set("n_best", io::Tree::list(std::move(others)));
    lines.add(line);
    ++asked_;
    if (!question.has_answers) return Ok{};
    scores_.add(text(choice.best), question.answers);
    if (!choice.null_odds) return Ok{};
    const auto some =
        std::ranges::find_if(choice.all, [&](const ScoredAnswer& each) { return !text(each).empty(); });
    scores_.add_odds(some == choice.all.end() ? "" : text(*some), question.answers, *choice.null_odds);
    return Ok{};
  }

  /// Where every question came with its answers.
  void tell_scores() const {
    if (asked_ == 0 || scores_.size() != asked_) return;
    std::string line;
    for (const corpora::Score& each : scores_.values())
      line += fmt::format("{}{} {:.{}f}", line.empty() ? "" : ", ", each.name, each.value,
                          each.name.ends_with("thresh") ? 4 : 2);
    note(fmt::format("{} of {} question{}", line, asked_, asked_ == 1 ? "" : "s"));
  }

  const PredictRequest& request_;
  telemetry::Sink& sink_;
  const Stop& stop_;
  settings::RunConfig config_;
  std::string texts_;  ///< the folder of the tokenizer
  int64_t vocab_size_ = 0, num_token_types_ = 0;
  int64_t max_tokens_ = 0;  ///< of a window
  std::optional<strategy::Prepared> prepared_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;  ///< goes before its device
  std::vector<std::byte> scratch_;
  std::vector<int32_t> begins_, ends_;
  BestAnswers best_;
  corpora::AnswerScores scores_;
  int64_t asked_ = 0;
};

}  // namespace

Result<bool> answers_questions(const PredictRequest& request) {
  PLIMSOLL_ASSIGN(const io::NamedModel named, io::find_named_model(request.model, request.adapter));
  const bool has_own = !named.adapter.empty() && io::is_file(named.adapter + "/config.json");
  // PEFT's adapters have no config.json: the base's may be another head's.
  if (!named.adapter.empty() && !has_own && io::task_named_by(named.adapter) == "QUESTION_ANS") return true;
  PLIMSOLL_ASSIGN(const io::ConfigJson config,
                  io::read_config_json((has_own ? named.adapter : named.model) + "/config.json"));
  return io::is_question_answering(config);
}

Status predict_answers(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop) {
  return AnswerPrediction(request, sink, stop)();
}

}  // namespace plimsoll::engine
