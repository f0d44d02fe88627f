
#include <fmt/format.h>

#include <cmath>

#include "base/process.h"
#include "checkpoints/finite_weights.h"
#include "engine/engine.h"
#include "preprocessing/template_date.h"
#include "runtime/session.h"
#include "telemetry/events.h"
#include "training/evaluator.h"
#include "training/initialise.h"

namespace plimsoll::engine {
namespace {

void tell_people(const training::EvalEvent& event, double seconds, const planner::PlanReport& report,
                 telemetry::Sink& sink) {
  const int64_t planned = report.process_peak_bytes(), measured = peak_resident_bytes();
  for (const training::EvalEvent& part : event.parts)
    sink.text(fmt::format("{}: {} {}\n", part.name, part.text(6), part.counts()));
  sink.text(fmt::format("{} {}, {:.0f} {}/s\n", event.text(6), event.counts(),
                        static_cast<double>(event.units) / seconds, event.unit));
  if (const std::string confusion = event.confusion.text(); !confusion.empty()) sink.text(confusion);
  sink.text(fmt::format("peak memory: planned {}, measured {}\n", to_string(Bytes(planned)),
                        to_string(Bytes(measured))));
}

Status check_finite(const settings::RunConfig& config, double loss) {
  if (std::isfinite(loss)) return Ok{};
  return Error{ErrorCode::kDiverged,
               fmt::format("the loss is {}", loss),
               {},
               config.computes_in(settings::Precision::kFp16)
                   ? "activations may exceed 65504, the largest fp16 number: evaluate in bf16 or fp32"
                   : "the weights may have diverged: evaluate those of an earlier step"};
}

}  // namespace

Status Engine::evaluate(const settings::RunConfig& given, const EvaluateOptions& options) {
  PLIMSOLL_TRY(settings::check_for_evaluation(given));
  telemetry::Events events(sink_);
  const std::string trained = preprocessing::recorded_date(given.output.dir + "/run.yaml");
  const settings::RunConfig config =
      preprocessing::with_template_date(given, trained == "auto" ? std::nullopt : std::optional(trained),
                                        [&](const std::string& text) { events.note(text); });
  const int threads = strategy::num_threads(config);
  PLIMSOLL_ASSIGN(const bool pretrained, training::evaluates_weights(config.model));
  PLIMSOLL_ASSIGN(ReadyRun ready, make_ready(config, {threads, options.dump_ir, strategy::Purpose::kEvaluate},
                                             pretrained, options.data_progress, stop_, events));
  strategy::Prepared& prepared = ready.prepared;
  PLIMSOLL_ASSIGN(const auto evaluator, training::Evaluator::open(config, ready.data, prepared));
  for (const std::string& line : evaluator->notes()) events.note(line);
  if (config.data.buckets.given()) events.note(preprocessing::bucket_note(prepared.buckets));
  PLIMSOLL_ASSIGN(const auto session,
                  runtime::Session::create(*ready.device, std::move(prepared.programs.session),
                                           {.poison = config.debug.poison}));
  std::vector<std::byte> scratch(static_cast<size_t>(prepared.host_scratch_bytes));
  if (!pretrained) events.note("there are no weights to read: random ones are evaluated");
  PLIMSOLL_ASSIGN(const auto loaded, training::initialise(config, prepared, *session, pretrained, threads));
  if (loaded) events.load(*loaded);
  evaluator->bind(*session, scratch, prepared);
  const double start = now_seconds();
  PLIMSOLL_ASSIGN(const std::optional<training::EvalEvent> event,
                  evaluator->run(
                      0, [&] { return is_asked(stop_); },
                      [&](int64_t done, int64_t total) { events.eval_progress(done, total); }));
  events.end_progress();
  if (!event)
    return Error{ErrorCode::kInterrupted,
                 fmt::format("stopped by {} before the evaluation was finished", stop_()),
                 {},
                 "run the same command again; there was nothing to save"};
  if (sink_.audience().events)
    events.eval(*event);
  else
    tell_people(*event, now_seconds() - start, prepared.report, sink_);
  Status finite = check_finite(config, event->loss);
  return finite || !loaded ? finite
                           : checkpoints::blame_weights(std::move(finite).error(), loaded->path, threads);
}

}  // namespace plimsoll::engine
