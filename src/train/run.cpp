// `plimsoll train`, from the plan to the summary.
#include "train/run_record.h"
#include "train/trainer.h"

namespace plimsoll::train {
namespace {

class Run {
 public:
  Run(const RunConfig& config, const RunOptions& options, Trainer& trainer, Events& events)
      : config_(config), trainer_(trainer), events_(events), record_(options.process_start_seconds) {}

  Status operator()() {
    while (trainer_.steps_done() < trainer_.total_steps()) PLIMSOLL_TRY(step());
    if (trainer_.has_eval() && last_eval_ != trainer_.steps_done()) PLIMSOLL_TRY(evaluate());
    const double start = now_seconds();
    PLIMSOLL_ASSIGN(const std::string path, trainer_.save_final());
    events_.checkpoint(trainer_.steps_done(), path, now_seconds() - start);
    events_.summary(record_.summary(trainer_));
    return Ok{};
  }

 private:
  Status step() {
    PLIMSOLL_ASSIGN(const StepEvent event, trainer_.step());
    record_.add(event);
    if (event.step % config_.training.logging_steps == 0 || event.step == trainer_.total_steps())
      events_.step(event);
    if (config_.training.eval_steps > 0 && event.step % config_.training.eval_steps == 0 &&
        trainer_.has_eval())
      PLIMSOLL_TRY(evaluate());
    record_.resume();
    return Ok{};
  }

  Status evaluate() {
    PLIMSOLL_ASSIGN(const EvalEvent event, trainer_.evaluate());
    last_eval_ = event.step;
    events_.eval(event);
    return Ok{};
  }

  const RunConfig& config_;
  Trainer& trainer_;
  Events& events_;
  RunRecord record_;
  int64_t last_eval_ = -1;
};

}  // namespace

Status run_training(const RunConfig& config, const RunOptions& options) {
  PLIMSOLL_TRY(check_for_training(config));
  const int threads = num_threads(config);
  cpu::CpuBackend backend(threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare(config, backend, {threads, options.dump_ir}));
  {
    Events events(options.json, 0);
    events.plan(prepared.report);
  }
  if (!prepared.report.fits) return does_not_fit(config, prepared);
  PLIMSOLL_ASSIGN(const std::unique_ptr<Trainer> trainer,
                  Trainer::create(config, std::move(prepared), backend));
  Events events(options.json, trainer->total_steps());
  return Run(config, options, *trainer, events)();
}

}  // namespace plimsoll::train
