#include "generate/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/host.h"
#include "base/process.h"
#include "base/units.h"
#include "checkpoints/adapter_files.h"
#include "checkpoints/adapter_start.h"
#include "checkpoints/load_weights.h"
#include "checkpoints/quantize_weights.h"
#include "generate/chat.h"
#include "generate/generator.h"
#include "generate/open_model.h"
#include "generate/output.h"
#include "generate/prompts.h"
#include "planner/programs/generation_programs.h"
#include "planner/recompute/search.h"
#include "planner/report/assess.h"
#include "planner/report/budget.h"
#include "settings/settings.h"
#include "strategy/memory_budget.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "training/initialise.h"

namespace plimsoll::generate {
namespace {

/// Prompts side by side where the user does not say: decoding that many costs little more than decoding one.
constexpr int64_t kDefaultBatch = 8;
/// Positions of a chat where neither user nor memory say otherwise.
constexpr int64_t kDefaultContext = 4096;
/// Tokens of a chat's prefill chunk: turns are short, and attention's tiles are 64.
constexpr int64_t kChatChunk = 64;
/// Buffers of load_weights.
constexpr int64_t kLoadBytesPerThread = 64 << 10;

/// Bytes of the heap that are in use.
int64_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

Result<int64_t> parse_budget(const std::string& text) {
  settings::RunConfig config;
  const settings::Setting* setting = settings::find_setting("memory.budget");
  if (!settings::assign_setting(*setting, io::Tree::of(text), config))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--memory-budget is '{}'", text.substr(0, 60)),
                 {},
                 "give auto, a size such as 6GiB, or a share such as 80%"};
  const MachineMemory memory = read_machine_memory();
  for (const std::string& remark : strategy::budget_notes(config, memory)) note(remark);
  return strategy::budget_bytes(config.memory.budget, memory);
}

class Run {
 public:
  Run(const Request& request, telemetry::Sink& sink) : request_(request), sink_(sink) {}

  Status operator()() {
    const int64_t heap_before = heap_bytes();
    PLIMSOLL_TRY(open());
    trim_heap();  // what parsing needed goes back before the session takes its memory
    held_bytes_ = heap_bytes() - heap_before;
    PLIMSOLL_TRY(plan(*strategy::make_target({}, num_threads())));
    if (!report_.fits) return does_not_fit();
    PLIMSOLL_ASSIGN(device_, strategy::make_device({}, num_threads()));
    PLIMSOLL_TRY(start());
    return is_interactive(request_) ? chat() : generate();
  }

 private:
  [[nodiscard]] int num_threads() const {
    return static_cast<int>(request_.threads.value_or(num_available_cpus()));
  }

  Status open() {
    PLIMSOLL_ASSIGN(OpenModel opened, open_model(request_));
    opened_.emplace(std::move(opened));
    PLIMSOLL_ASSIGN(budget_bytes_, parse_budget(request_.memory_budget));
    return is_interactive(request_) ? choose_context() : open_prompts();
  }

  Status open_prompts() {
    PLIMSOLL_ASSIGN(prompts_,
                    read_prompts(request_, {opened_->codec, opened_->format, opened_->resolved.bos_id,
                                            opened_->model->vocab_size()}));
    PLIMSOLL_TRY(fit_positions());
    batch_ = std::min(request_.batch_size.value_or(kDefaultBatch), static_cast<int64_t>(prompts_.size()));
    cache_tokens_ = cache_tokens(longest_, opened_->resolved.max_new_tokens);
    return Ok{};
  }

  Status choose_context() {
    const int64_t most = opened_->model->max_positions();
    cache_tokens_ = request_.context.value_or(std::min(most, kDefaultContext));
    if (cache_tokens_ <= most) return Ok{};
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--context {} exceeds the model's {} positions", cache_tokens_, most),
                 {},
                 fmt::format("give at most {}", most)};
  }

  /// Prompt and new tokens within the model's positions. A default number of new tokens is cut to what is
  /// left.
  Status fit_positions() {
    const auto longest =
        std::max_element(prompts_.begin(), prompts_.end(),
                         [](const Prompt& a, const Prompt& b) { return a.ids.size() < b.ids.size(); });
    longest_ = static_cast<int64_t>(longest->ids.size());
    const int64_t most = opened_->model->max_positions(), room = most - longest_ + 1;
    if (!opened_->resolved.max_new_tokens_given)
      opened_->resolved.max_new_tokens = std::clamp<int64_t>(room, 1, opened_->resolved.max_new_tokens);
    if (opened_->resolved.max_new_tokens <= room) return Ok{};
    const std::string hint =
        room < 1 ? "shorten the prompt" : fmt::format("at most --max-new-tokens {} fits after it", room);
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a prompt of {} tokens and {} new ones exceed the model's {} positions",
                             longest_, opened_->resolved.max_new_tokens, most),
                 fmt::format("prompt {}", longest - prompts_.begin() + 1), hint};
  }

  struct PlannedStep {
    int64_t batch = 1, cache_tokens = 0;
    passes::SessionPlan session;
    planner::PlanReport report;
  };

  /// The batch, of a chat the context, that was asked for; where it is ours to choose, the largest that fits
  /// of its halves.
  Status plan(const runtime::Target& target) {
    const double start = now_seconds();
    const bool is_chat = is_interactive(request_),
               chosen = !(is_chat ? request_.context : request_.batch_size);
    std::vector<double> sizes = {static_cast<double>(is_chat ? cache_tokens_ : batch_)};
    const double least = is_chat ? kChatChunk : 1;
    while (chosen && sizes.back() > least) sizes.push_back(std::floor(sizes.back() / 2));
    PLIMSOLL_ASSIGN(PlannedStep planned, planner::first_that_fits(sizes, budget_bytes_, [&](size_t i) {
                      const auto size = static_cast<int64_t>(sizes[i]);
                      return is_chat ? plan_batch(target, 1, size) : plan_batch(target, size, cache_tokens_);
                    }));
    batch_ = planned.batch;
    cache_tokens_ = planned.cache_tokens;
    session_plan_ = std::move(planned.session);
    report_ = std::move(planned.report);
    trim_heap();
    report_.planning_seconds = now_seconds() - start;
    tell_plan(report_, sink_);
    return Ok{};
  }

  Result<PlannedStep> plan_batch(const runtime::Target& target, int64_t batch, int64_t cache) {
    planner::GenerationOptions options{.batch_size = batch, .cache_tokens = cache};
    options.chunk_tokens =
        is_interactive(request_) ? std::min(kChatChunk, cache) : chunk_tokens(longest_, batch, cache);
    options.pipeline.dump_dir = request_.dump_ir;
    if (request_.dtype == "bf16") options.pipeline.precision = ops::Precision::kBf16;
    PLIMSOLL_ASSIGN(auto programs, planner::build_generation_programs(*opened_->model, options, target));
    planner::PlanReport r =
        planner::assess(programs.session, target,
                        {.num_threads = num_threads(),
                         .host_bytes = host_bytes(batch, cache + 1),
                         .budgets = {{"--memory-budget", planner::Bounded::kProcess, budget_bytes_}}});
    planner::describe_work({.flops = programs.decode_flops,
                            .bytes = programs.decode_bytes,
                            .units = batch,
                            .micro_batch_size = batch},
                           r);
    r.model = opened_->folder;
    r.num_parameters = opened_->model->num_parameters();
    return PlannedStep{batch, cache, std::move(programs.session), std::move(r)};
  }

  /// What the heap holds beside the graph: tokenizer, prompts, headers; sampler; ids, texts; buffers of
  /// reading.
  [[nodiscard]] int64_t host_bytes(int64_t batch, int64_t tokens) const {
    const int64_t ids = batch * tokens * static_cast<int64_t>(sizeof(int32_t));
    const int64_t texts = Output::memory_bytes(batch, std::min(tokens, opened_->resolved.max_new_tokens)) +
                          (is_interactive(request_) ? Chat::memory_bytes(tokens) : 0);
    return held_bytes_ + Generator::memory_bytes(batch, opened_->model->vocab_size()) + ids + texts +
           num_threads() * kLoadBytesPerThread + checkpoints::start_adapters_bytes(*opened_->model) +
           checkpoints::quantize_scratch(*opened_->model, num_threads());
  }

  /// With what would need less of what was asked for, each planned.
  Error does_not_fit() {
    const auto target = strategy::make_target({}, num_threads());
    std::vector<std::string> ways;
    const auto add = [&](const char* flag, int64_t value, int64_t batch, int64_t cache) {
      if (const auto planned = plan_batch(*target, batch, cache))
        ways.push_back(fmt::format("{} {} needs {}", flag, value,
                                   to_string(Bytes(planned->report.process_peak_bytes()))));
    };
    const int64_t fewer = opened_->resolved.max_new_tokens / 2;
    if (is_interactive(request_)) {
      if (cache_tokens_ > 1) add("--context", cache_tokens_ / 2, 1, cache_tokens_ / 2);
    } else {
      if (batch_ > 1) add("--batch-size", 1, 1, cache_tokens_);
      if (fewer > 0) add("--max-new-tokens", fewer, batch_, cache_tokens(longest_, fewer));
    }
    return planner::does_not_fit(report_, "generation", fmt::to_string(fmt::join(ways, ", ")));
  }

  Status start() {
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(session_plan_), {}));
    PLIMSOLL_TRY(training::write_constants(*opened_->model, *session_));
    PLIMSOLL_TRY(checkpoints::load_weights(*opened_->model, opened_->weights, *session_, num_threads()));
    PLIMSOLL_TRY(checkpoints::start_adapters(*opened_->model, *session_));
    if (!opened_->adapter.empty())
      PLIMSOLL_TRY(checkpoints::load_adapter(*opened_->model, opened_->adapter, *session_));
    return session_->enable_timing(request_.timings);
  }

  [[nodiscard]] GeneratorOptions generator_options() const {
    return {.max_new_tokens = opened_->resolved.max_new_tokens,
            .sampling = opened_->resolved.sampling,
            .eos_ids = opened_->resolved.eos_ids};
  }
  [[nodiscard]] OutputOptions output_options() const {
    return {.stream = request_.stream, .titles = prompts_.size() > 1, .stops = request_.stops};
  }

  Status chat() {
    Chat chat(opened_->codec, opened_->format, *session_,
              {.generator = generator_options(),
               .output = output_options(),
               .context_tokens = cache_tokens_,
               .stop = request_.stop,
               .forget_interrupt = request_.forget_interrupt},
              sink_);
    const double start = now_seconds();
    PLIMSOLL_TRY(chat.run());
    const double seconds = chat.rates().prefill_seconds + chat.rates().decode_seconds;  // not of typing
    tell_figures(chat.num_turns(), chat.rates(), start, seconds);
    return Ok{};
  }

  Status generate() {
    Generator generator(*session_, generator_options());
    Output output(opened_->codec, output_options(), sink_);
    std::vector<Sequence> sequences(static_cast<size_t>(batch_));
    for (Sequence& s : sequences) s.ids.reserve(static_cast<size_t>(cache_tokens_ + 1));
    const double start = now_seconds();
    int64_t done = 0;
    for (const auto total = static_cast<int64_t>(prompts_.size());
         done < total && !is_asked(request_.stop);) {
      const auto batch = std::span(sequences).first(static_cast<size_t>(std::min(batch_, total - done)));
      output.begin_batch(std::span(prompts_).subspan(static_cast<size_t>(done), batch.size()),
                         static_cast<uint32_t>(done));
      for (Sequence& s : batch) begin(s, done++);
      PLIMSOLL_TRY(generator.run(
          batch, [&](const Sequence& s, int32_t id) { return output.token(s, id); },
          [this] { return is_asked(request_.stop); }));
      output.end_batch(batch);
    }
    tell_figures(done, generator.rates(), start, now_seconds() - start);
    return Ok{};
  }

  void tell_figures(int64_t prompts, const GenerationRates& rates, double start, double seconds) const {
    tell_summary({.prompts = prompts,
                  .rates = rates,
                  .seconds = seconds,
                  .startup_seconds = start - request_.process_start_seconds,
                  .planned_peak_bytes = report_.process_peak_bytes(),
                  .measured_peak_bytes = peak_resident_bytes()},
                 sink_);
    if (request_.timings) tell_timings(*session_, sink_);
  }

  void begin(Sequence& s, int64_t index) const {
    const Prompt& prompt = prompts_[static_cast<size_t>(index)];
    s.ids.assign(prompt.ids.begin(), prompt.ids.end());
    s.prompt_tokens = static_cast<int64_t>(prompt.ids.size());
    s.index = static_cast<uint32_t>(index);
    s.finish = Finish::kNone;
  }

  const Request& request_;
  telemetry::Sink& sink_;
  std::optional<OpenModel> opened_;
  std::vector<Prompt> prompts_;
  passes::SessionPlan session_plan_;
  planner::PlanReport report_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;
  int64_t budget_bytes_ = 0, held_bytes_ = 0, longest_ = 0, batch_ = 1;
  int64_t cache_tokens_ = 0;  ///< of each row
};

}  // namespace

Status run(const Request& request, telemetry::Sink& sink) { return Run(request, sink)(); }

}  // namespace plimsoll::generate
