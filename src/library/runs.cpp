#include "library/runs.h"

#include <fmt/format.h>

#include <array>
#include <mutex>
#include <thread>
#include <utility>

#include "analysis/choose_batch.h"
#include "base/process.h"
#include "base/process_memory.h"
#include "engine/engine.h"
#include "generate/run.h"
#include "io/json.h"
#include "io/suggest.h"
#include "library/notes.h"
#include "planner/cost/overhead.h"
#include "planner/report/budget.h"
#include "strategy/run_device.h"
#include "strategy/variants.h"
#include "telemetry/sink.h"

namespace plimsoll::library {
namespace {

/// Hands events to the callback on the thread that called; what other threads say waits for it.
class CallbackSink final : public telemetry::Sink {
 public:
  explicit CallbackSink(const OnEvent& on_event) : on_event_(on_event), caller_(std::this_thread::get_id()) {}

  [[nodiscard]] telemetry::Audience audience() const override { return {.events = true}; }
  void event(const io::Tree& /*event*/, std::string_view line) override { tell(std::string(line)); }
  void message(std::string_view text) override {
    tell(io::to_json(io::Tree::map(
        {{"event", io::Tree::of(std::string("message"))}, {"text", io::Tree::of(std::string(text))}})));
  }
  Status write(std::string_view bytes) override {
    tell(std::string(bytes));
    return Ok{};
  }
  [[nodiscard]] std::string_view stop() const {
    return stops_ ? std::string_view("the callback") : std::string_view();
  }

 private:
  void tell(std::string line) {
    std::vector<std::string> lines;
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(line));
      if (std::this_thread::get_id() != caller_) return;
      lines = std::exchange(waiting_, {});
    }
    for (const std::string& each : lines)
      if (on_event_ && on_event_(each)) stops_ = true;
  }

  const OnEvent& on_event_;
  std::thread::id caller_;
  std::mutex mutex_;
  std::vector<std::string> waiting_;
  bool stops_ = false;
};

/// The process beside its plans, measured once: as it is before the first plan, and the pages of code and
/// tables that a run touches from then on (4 MiB of a small Llama's training from tokenizing to final/).
void measure_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int64_t kTouchedLater = int64_t{5} << 20;
    planner::ProcessOverhead overhead;
    overhead.base_bytes = resident_bytes() + kTouchedLater;
    planner::set_overhead(overhead);
  });
}

/// training.global_batch_size: auto.
Result<settings::RunConfig> with_chosen_batch(const settings::RunConfig& config) {
  if (!config.training.chooses_global_batch_size) return config;
  const strategy::PrepareOptions options{.num_threads = strategy::num_threads(config)};
  const auto target = strategy::make_target(config, options.num_threads);
  PLIMSOLL_ASSIGN(const analysis::BatchChoice choice,
                  analysis::choose_batch(strategy::Variants(config, *target, options)));
  return strategy::with_settings(
      config, {{"training.global_batch_size", choice.curve.rows[choice.chosen].values[0]}});
}

struct TextOption {
  std::string_view name;
  std::string generate::Request::*member;
};
struct ListOption {
  std::string_view name;
  std::vector<std::string> generate::Request::*member;
};
struct NumberOption {
  std::string_view name;
  std::optional<double> generate::Request::*member;
};
struct IntegerOption {
  std::string_view name;
  std::optional<int64_t> generate::Request::*member;
};
using Request = generate::Request;
constexpr TextOption kTexts[] = {{"model", &Request::model},   {"adapter", &Request::adapter},
                                 {"system", &Request::system}, {"chat_template", &Request::chat_template},
                                 {"dtype", &Request::dtype},   {"memory_budget", &Request::memory_budget}};
constexpr ListOption kLists[] = {{"prompts", &Request::prompts},
                                 {"messages_files", &Request::messages_files},
                                 {"prompt_ids", &Request::prompt_ids},
                                 {"stop", &Request::stops}};
constexpr NumberOption kNumbers[] = {{"temperature", &Request::temperature},
                                     {"top_p", &Request::top_p},
                                     {"min_p", &Request::min_p},
                                     {"repetition_penalty", &Request::repetition_penalty}};
constexpr IntegerOption kIntegers[] = {{"max_new_tokens", &Request::max_new_tokens},
                                       {"top_k", &Request::top_k},
                                       {"batch_size", &Request::batch_size},
                                       {"threads", &Request::threads}};

Error wrong_option(std::string_view name, const io::Tree& value, std::string_view expected) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("generate: {} is {}, expected {}", name, value.describe(), expected)};
}

Result<std::vector<std::string>> texts_of(std::string_view name, const io::Tree& value) {
  if (value.kind == io::Tree::Kind::kString) return std::vector{value.text};
  std::vector<std::string> texts;
  for (const io::Tree& item : value.items) {
    if (item.kind != io::Tree::Kind::kString) return wrong_option(name, value, "texts");
    texts.push_back(item.text);
  }
  return value.kind == io::Tree::Kind::kList ? Result(std::move(texts)) : wrong_option(name, value, "texts");
}

/// Options of words: seed, raw, ignore_eos.
Status set_other(std::string_view name, const io::Tree& value, Request& request) {
  if (name == "seed" && value.kind == io::Tree::Kind::kInteger && value.integer >= 0)
    request.seed = static_cast<uint64_t>(value.integer);
  else if (name == "raw" && value.kind == io::Tree::Kind::kBool)
    request.raw = value.boolean;
  else if (name == "ignore_eos" && value.kind == io::Tree::Kind::kBool)
    request.ignore_eos = value.boolean;
  else
    return wrong_option(name, value, name == "seed" ? "an integer from 0 on" : "true or false");
  return Ok{};
}

Status set_option(std::string_view name, const io::Tree& value, Request& request) {
  const auto named = [&](const auto& option) { return option.name == name; };
  if (const auto* text = std::ranges::find_if(kTexts, named); text != std::end(kTexts)) {
    if (value.kind != io::Tree::Kind::kString) return wrong_option(name, value, "a text");
    request.*text->member = value.text;
    return Ok{};
  }
  if (const auto* list = std::ranges::find_if(kLists, named); list != std::end(kLists)) {
    PLIMSOLL_ASSIGN(request.*list->member, texts_of(name, value));
    return Ok{};
  }
  const bool is_integer = value.kind == io::Tree::Kind::kInteger;
  if (const auto* number = std::ranges::find_if(kNumbers, named); number != std::end(kNumbers)) {
    if (!is_integer && value.kind != io::Tree::Kind::kNumber) return wrong_option(name, value, "a number");
    request.*number->member = value.number;
    return Ok{};
  }
  if (const auto* integer = std::ranges::find_if(kIntegers, named); integer != std::end(kIntegers)) {
    if (!is_integer) return wrong_option(name, value, "an integer");
    request.*integer->member = value.integer;
    return Ok{};
  }
  std::vector<std::string> names = {"seed", "raw", "ignore_eos"};
  if (std::ranges::find(names, name) != names.end()) return set_other(name, value, request);
  for (const auto& option : kTexts) names.emplace_back(option.name);
  for (const auto& option : kLists) names.emplace_back(option.name);
  for (const auto& option : kNumbers) names.emplace_back(option.name);
  for (const auto& option : kIntegers) names.emplace_back(option.name);
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("generate: there is no option '{}'", name),
               {},
               io::nearest_hint(name, names)};
}

}  // namespace

Result<RunText> run_text(const char* file, const char* text, const char* const* overrides,
                         size_t num_overrides) {
  if ((file == nullptr) == (text == nullptr))
    return Error{ErrorCode::kInvalidArgument, "a run is either a file or a text of settings"};
  if (num_overrides > 0 && overrides == nullptr)
    return Error{ErrorCode::kInvalidArgument, "overrides is null"};
  RunText run;
  if (file != nullptr) run.file = file;
  if (text != nullptr) run.text = text;
  for (size_t i = 0; i < num_overrides; ++i)
    run.overrides.emplace_back(overrides[i] == nullptr ? "" : overrides[i]);
  return run;
}

Result<settings::RunConfig> read_run(const RunText& run, settings::RunUse use) {
  measure_process();
  PLIMSOLL_ASSIGN(settings::RunConfig config,
                  run.file.empty() ? settings::parse_run_config(run.text, "settings", run.overrides, use)
                                   : settings::load_run_config(run.file, run.overrides, use));
  return with_chosen_batch(config);
}

Result<std::optional<Shortfall>> shortfall_of(const RunText& run, settings::RunUse use) {
  PLIMSOLL_ASSIGN(const settings::RunConfig config, read_run(run, use));
  const bool evaluates = use == settings::RunUse::kEvaluation;
  PLIMSOLL_ASSIGN(const strategy::Prepared prepared,
                  engine::Engine::plan(config, {.num_threads = strategy::num_threads(config),
                                                .purpose = evaluates ? strategy::Purpose::kEvaluate
                                                                     : strategy::Purpose::kTrain,
                                                .request = strategy::PlanRequest::kReport}));
  const planner::Budget* budget = planner::exceeded(prepared.report, prepared.report.budgets);
  if (budget == nullptr) return std::optional<Shortfall>();
  return std::optional(Shortfall{planner::bounded_bytes(prepared.report, budget->bounded), budget->bytes});
}

Status train_run(const RunText& run, const std::string& resume, const OnEvent& on_event) {
  CallbackSink sink(on_event);
  const NoteListener notes([&](const std::string& text) { sink.message("note: " + text); });
  PLIMSOLL_ASSIGN(const settings::RunConfig config, read_run(run, settings::RunUse::kTraining));
  engine::TrainOptions options{.resume = resume, .process_start_seconds = now_seconds()};
  return engine::Engine(sink, [&] { return sink.stop(); }).train(config, options);
}

Status evaluate_run(const RunText& run, const OnEvent& on_event) {
  CallbackSink sink(on_event);
  const NoteListener notes([&](const std::string& text) { sink.message("note: " + text); });
  PLIMSOLL_ASSIGN(const settings::RunConfig config, read_run(run, settings::RunUse::kEvaluation));
  return engine::Engine(sink, [&] { return sink.stop(); }).evaluate(config);
}

Status generate_texts(std::string_view request, const OnEvent& on_event) {
  auto tree = io::parse_json(request);
  if (!tree || tree->kind != io::Tree::Kind::kMap)
    return Error{ErrorCode::kInvalidArgument, "the request is no JSON object"};
  CallbackSink sink(on_event);
  const NoteListener notes([&](const std::string& text) { sink.message("note: " + text); });
  generate::Request parsed;
  for (const auto& [name, value] : tree->members) PLIMSOLL_TRY(set_option(name, value, parsed));
  measure_process();
  parsed.process_start_seconds = now_seconds();
  parsed.stop = [&] { return sink.stop(); };
  return generate::run(parsed, sink);
}

}  // namespace plimsoll::library
