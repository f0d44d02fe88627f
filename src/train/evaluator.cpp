#include "train/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>

#include "base/process.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "checkpoints/finite_weights.h"
#include "preprocessing/template_date.h"
#include "train/initialise.h"
#include "train/ready_run.h"
#include "train/trainer.h"

namespace plimsoll::train {
namespace {

void print_for_people(const EvalEvent& event, double seconds, const planner::PlanReport& report) {
  const int64_t planned = report.process_peak_bytes(), measured = peak_resident_bytes();
  for (const EvalEvent& part : event.parts)
    print_text(fmt::format("{}: {} {}\n", part.name, part.text(6), part.counts()));
  print_text(fmt::format("{} {}, {:.0f} tokens/s\n", event.text(6), event.counts(),
                         static_cast<double>(event.tokens) / seconds));
  print_text(fmt::format("peak memory: planned {}, measured {}\n", to_string(Bytes(planned)),
                         to_string(Bytes(measured))));
}

Status check_finite(const RunConfig& config, double loss) {
  if (std::isfinite(loss)) return Ok{};
  return Error{ErrorCode::kDiverged,
               fmt::format("the loss is {}", loss),
               {},
               config.computes_in(Precision::kFp16)
                   ? "fp16 ends at 65504, which activations may have left: evaluate in bf16 or fp32"
                   : "the weights may have diverged: evaluate those of an earlier step"};
}

}  // namespace

Result<std::unique_ptr<Evaluator>> Evaluator::open(const RunConfig& config, const RunData& data,
                                                   const Prepared& prepared) {
  const TrainingDataOptions options = data_options(config, prepared, /*eval=*/true);
  std::vector<Part> parts;
  for (size_t i = 0; i < data.eval.size(); ++i) {
    PLIMSOLL_ASSIGN(TrainingData opened, TrainingData::open({&data.eval[i], 1}, options));
    parts.push_back({i < data.eval_names.size() ? data.eval_names[i] : "", std::move(opened)});
  }
  return std::unique_ptr<Evaluator>(
      new Evaluator(std::move(parts), *prepared.task, config.training.global_batch_size));
}

std::vector<std::string> Evaluator::notes() const {
  std::vector<std::string> lines;
  for (const Part& part : parts_)
    for (const std::string& line : packing_notes(part.data))
      lines.push_back(part.name.empty() ? line : part.name + ": " + line);
  return lines;
}

int64_t Evaluator::num_sequences() const {
  int64_t count = 0;
  for (const Part& part : parts_) count += part.data.num_sequences();
  return count;
}

int64_t Evaluator::host_bytes(const RunConfig& config, const tasks::Task& task, const models::Model& model,
                              int64_t num_examples) {
  const int64_t positions = config.training.global_batch_size * int64_t{sizeof(int64_t)};
  if (!task.has_metrics()) return positions;
  const ir::Shape outputs =
      task.logits_shape(model, config.training.global_batch_size, config.data.sequence_length);
  const int64_t kinds = config.data.num_eval_parts() > 1 ? 2 : 1;  // of each part, and of all
  return positions + outputs.num_elements() * int64_t{sizeof(float)} +
         kinds * task.metrics_bytes(num_examples);
}

void Evaluator::bind(runtime::Session& session, std::span<std::byte> scratch, const Prepared& prepared) {
  const std::vector<int64_t>& lengths = prepared.buckets.lengths;
  session_ = &session;
  scratch_ = scratch;
  micro_batch_size_ = static_cast<size_t>(prepared.split.micro_batch_size);
  feeder_ = std::make_unique<BatchFeeder>(session, *prepared.task, lengths);
  for (const int64_t length : lengths)
    programs_.push_back(session.plan().find_program(planner::name_at("eval", length, lengths)));
  if (!task_.has_metrics()) return;
  metrics_ = task_.make_metrics(num_sequences());
  for (Part& part : parts_)
    if (!part.name.empty()) part.metrics = task_.make_metrics(part.data.num_sequences());
  outputs_.resize(static_cast<size_t>(session.type(planner::kLogitsState).num_elements()));
}

Status Evaluator::add_to_metrics(Part& part, size_t bucket, int64_t sequences) {
  if (!metrics_) return Ok{};
  PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(outputs_))));
  const size_t width = outputs_.size() / micro_batch_size_;
  for (int64_t r = 0; r < sequences; ++r)
    for (metrics::Metrics* metrics : {metrics_.get(), part.metrics.get()})
      if (metrics != nullptr)
        task_.add_to(*metrics, std::span(outputs_).subspan(static_cast<size_t>(r) * width, width),
                     feeder_->row(bucket, r));
  return Ok{};
}

Result<std::optional<Evaluator::Sum>> Evaluator::run_part(Part& part, int64_t before,
                                                          const std::function<bool()>& stopped,
                                                          const EvalProgress& progress) {
  const int64_t end = part.data.num_sequences(), all = num_sequences();
  const auto batch_size = static_cast<int64_t>(positions_.size());
  Sum total;
  if (part.metrics) part.metrics->clear();
  for (int64_t block = 0; block < end; block += batch_size) {
    PLIMSOLL_TRY(session_->fill(planner::kLossState, std::bit_cast<uint32_t>(planner::kLossStart)));
    const std::span batch =
        std::span(positions_).first(static_cast<size_t>(std::min(batch_size, end - block)));
    PLIMSOLL_ASSIGN(const int64_t length, part.data.look_up(block, batch, scratch_));
    const size_t bucket = feeder_->bucket_of(length);
    for (size_t first = 0; first < batch.size(); first += micro_batch_size_) {
      if (stopped && stopped()) return std::optional<Sum>();
      if (progress) progress(before + block + static_cast<int64_t>(first), all);
      const std::span micro = batch.subspan(first, std::min(micro_batch_size_, batch.size() - first));
      PLIMSOLL_ASSIGN(const SequenceCounts read, feeder_->read(part.data, micro, bucket, scratch_));
      PLIMSOLL_TRY(session_->run(programs_[bucket]));
      PLIMSOLL_TRY(add_to_metrics(part, bucket, static_cast<int64_t>(micro.size())));
      total.counts.tokens += read.tokens;
      total.counts.targets += read.targets;
    }
    PLIMSOLL_ASSIGN(const float sum, session_->value<float>(planner::kLossState));
    total.loss += static_cast<double>(sum);
  }
  return std::optional(total);
}

EvalEvent Evaluator::event_of(int64_t step, const Sum& sum, metrics::Metrics* metrics) const {
  EvalEvent event;
  event.step = step;
  event.tokens = sum.counts.tokens;
  event.targets = sum.counts.targets;
  event.has_perplexity = task_.has_perplexity();
  if (metrics != nullptr) event.metrics = metrics->values();
  event.loss = sum.counts.targets > 0 ? sum.loss / static_cast<double>(sum.counts.targets) : 0;
  if (std::isnan(event.loss)) event.loss = std::fabs(event.loss);  // a NaN has no sign
  return event;
}

Result<std::optional<EvalEvent>> Evaluator::run(int64_t step, const std::function<bool()>& stopped,
                                                const EvalProgress& progress) {
  if (metrics_) metrics_->clear();
  std::vector<EvalEvent> events;
  Sum all;
  int64_t before = 0;
  for (Part& part : parts_) {
    PLIMSOLL_ASSIGN(const std::optional<Sum> sum, run_part(part, before, stopped, progress));
    if (!sum) return std::optional<EvalEvent>();
    before += part.data.num_sequences();
    all.loss += sum->loss;
    all.counts.tokens += sum->counts.tokens;
    all.counts.targets += sum->counts.targets;
    if (part.name.empty()) continue;
    events.push_back(event_of(step, *sum, part.metrics.get()));
    events.back().name = part.name;
  }
  EvalEvent event = event_of(step, all, metrics_.get());
  event.parts = std::move(events);
  return std::optional(std::move(event));
}

Status run_evaluation(const RunConfig& given, const EvaluationOptions& options) {
  PLIMSOLL_TRY(check_for_evaluation(given));
  Events events(options.json, 0);
  const std::string trained = recorded_date(given.output.dir + "/run.yaml");
  const RunConfig config =
      with_template_date(given, trained == "auto" ? std::nullopt : std::optional(trained),
                         [&](const std::string& text) { events.note(text); });
  const int threads = num_threads(config);
  PLIMSOLL_ASSIGN(const bool pretrained, evaluates_weights(config.model));
  PLIMSOLL_ASSIGN(ReadyRun ready, make_ready(config, {threads, options.dump_ir, Purpose::kEvaluate},
                                             pretrained, options.data_progress, events));
  Prepared& prepared = ready.prepared;
  PLIMSOLL_ASSIGN(const auto evaluator, Evaluator::open(config, ready.data, prepared));
  for (const std::string& line : evaluator->notes()) events.note(line);
  if (config.data.buckets.given()) events.note(bucket_note(prepared.buckets));
  PLIMSOLL_ASSIGN(const auto session,
                  runtime::Session::create(*ready.device, std::move(prepared.programs.session),
                                           {.poison = config.debug.poison}));
  std::vector<std::byte> scratch(static_cast<size_t>(prepared.host_scratch_bytes));
  if (!pretrained) events.note("there are no weights to read: random ones are evaluated");
  PLIMSOLL_ASSIGN(const auto loaded, initialise(config, prepared, *session, pretrained, threads));
  if (loaded) events.load(*loaded);
  evaluator->bind(*session, scratch, prepared);
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(const std::optional<EvalEvent> event,
                  evaluator->run(
                      0, [] { return stop_requested() != 0; },
                      [&](int64_t done, int64_t total) { events.eval_progress(done, total); }));
  events.end_progress();
  if (!event)
    return Error{
        ErrorCode::kInterrupted,
        fmt::format("stopped by {} before the evaluation was through", signal_name(stop_requested())),
        {},
        "run the same command again; there was nothing to save"};
  if (options.json)
    events.eval(*event);
  else
    print_for_people(*event, now_seconds() - start, prepared.report);
  Status finite = check_finite(config, event->loss);
  return finite || !loaded ? finite : blame_weights(std::move(finite).error(), loaded->path, threads);
}

}  // namespace plimsoll::train
