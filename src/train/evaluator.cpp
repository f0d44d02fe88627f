#include "train/evaluator.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "backends/cpu/cpu_backend.h"
#include "base/process.h"
#include "train/initialise.h"
#include "train/trainer.h"

namespace plimsoll::train {
namespace {

void print_for_people(const EvalEvent& event, double seconds, const planner::PlanReport& report) {
  const int64_t planned = report.process_peak_bytes(), measured = peak_resident_bytes();
  fmt::print("loss {:.6f}, perplexity {:.6g} over {} tokens, {:.0f} tokens/s\n", event.loss,
             std::exp(event.loss), event.tokens, static_cast<double>(event.tokens) / seconds);
  fmt::print("peak memory: planned {}, measured {}\n", to_string(Bytes(planned)), to_string(Bytes(measured)));
}

}  // namespace

Result<std::unique_ptr<Evaluator>> Evaluator::open(const RunConfig& config,
                                                   const std::vector<DataFiles>& files,
                                                   const models::Model& model) {
  PLIMSOLL_ASSIGN(
      TrainingData data,
      TrainingData::open(files, training_data_options(config, model.vocab_size(), /*eval=*/true)));
  return std::unique_ptr<Evaluator>(new Evaluator(std::move(data), config.training.global_batch_size));
}

void Evaluator::bind(runtime::Session& session, std::span<std::byte> scratch, const BatchSplit& split) {
  session_ = &session;
  scratch_ = scratch;
  micro_batch_size_ = split.micro_batch_size;
  feeder_ = std::make_unique<BatchFeeder>(session);
}

Result<std::optional<EvalEvent>> Evaluator::run(int64_t step, const std::function<bool()>& stopped) {
  const int program = session_->plan().find_program("eval");
  const int64_t end = data_.num_sequences();
  float& sum = *session_->state(planner::kLossState).as<float>();
  double loss = 0;
  SequenceCounts counts;
  for (int64_t block = 0; block < end; block += global_batch_size_) {
    sum = planner::kLossStart;
    for (int64_t first = block; first < std::min(block + global_batch_size_, end);
         first += micro_batch_size_) {
      if (stopped && stopped()) return std::optional<EvalEvent>();
      PLIMSOLL_ASSIGN(const SequenceCounts read, feeder_->read(data_, first, end, scratch_));
      session_->run(program);
      counts.tokens += read.tokens;
      counts.targets += read.targets;
    }
    loss += static_cast<double>(sum);
  }
  EvalEvent event;
  event.step = step;
  event.tokens = counts.tokens;
  event.loss = counts.targets > 0 ? loss / static_cast<double>(counts.targets) : 0;
  return std::optional(event);
}

Status run_evaluation(const RunConfig& config, const EvaluationOptions& options) {
  PLIMSOLL_TRY(check_for_evaluation(config));
  const int threads = num_threads(config);
  std::optional<cpu::CpuBackend> backend(std::in_place, threads);
  PLIMSOLL_ASSIGN(Prepared prepared,
                  prepare(config, *backend, {threads, options.dump_ir, Purpose::kEvaluate}));
  Events events(options.json, 0);
  events.plan(prepared.report);
  if (!prepared.report.fits) return does_not_fit(config, prepared);
  backend.reset();  // its threads: the data is prepared by a process that must have none
  PLIMSOLL_ASSIGN(const RunData data,
                  prepare_data(config, {.train = false,
                                        .vocab_size = prepared.model->vocab_size(),
                                        .num_threads = threads,
                                        .progress = options.data_progress,
                                        .note = [&](const std::string& text) { events.note(text); }}));
  backend.emplace(threads);
  PLIMSOLL_ASSIGN(const auto evaluator, Evaluator::open(config, data.eval, *prepared.model));
  for (const std::string& line : packing_notes(evaluator->data())) events.note(line);
  PLIMSOLL_ASSIGN(const auto session, runtime::Session::create(*backend, std::move(prepared.programs.session),
                                                               {.poison = config.debug.poison}));
  std::vector<std::byte> scratch(static_cast<size_t>(prepared.host_scratch_bytes));
  PLIMSOLL_ASSIGN(const bool pretrained, evaluates_weights(config.model));
  if (!pretrained) std::fputs("note: there are no weights to read: random ones are evaluated\n", stderr);
  PLIMSOLL_ASSIGN(const auto loaded, initialise(config, prepared, *session, pretrained, threads));
  if (loaded) events.load(*loaded);
  evaluator->bind(*session, scratch, prepared.split);
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(const std::optional<EvalEvent> event, evaluator->run(0));
  if (options.json)
    events.eval(*event);
  else
    print_for_people(*event, now_seconds() - start, prepared.report);
  return Ok{};
}

}  // namespace plimsoll::train
