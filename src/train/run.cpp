// `plimsoll train`, from the plan to the summary.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/process.h"
#include "train/trainer.h"

namespace plimsoll::train {
namespace {

/// Counts what grew between steps: mappings and the heap's break by their size, large requests by their
/// number.
class AllocationWatch {
 public:
  void restart() {
    virtual_ = virtual_bytes();
    large_ = num_large_allocations();
  }
  int64_t take() {
    const int64_t before_virtual = virtual_, before_large = large_;
    restart();
    return (virtual_ > before_virtual ? 1 : 0) + large_ - before_large;
  }

 private:
  int64_t virtual_ = 0, large_ = 0;
};

class Run {
 public:
  Run(const RunConfig& config, const RunOptions& options, Trainer& trainer, Events& events)
      : config_(config), options_(options), trainer_(trainer), events_(events) {}

  Status operator()() {
    while (trainer_.steps_done() < trainer_.total_steps()) PLIMSOLL_TRY(step());
    if (trainer_.has_eval() && last_eval_ != trainer_.steps_done()) PLIMSOLL_TRY(evaluate());
    const double start = now_seconds();
    PLIMSOLL_ASSIGN(const std::string path, trainer_.save_final());
    events_.checkpoint(trainer_.steps_done(), path, now_seconds() - start);
    events_.summary(summary());
    return Ok{};
  }

 private:
  Status step() {
    PLIMSOLL_ASSIGN(const StepEvent event, trainer_.step());
    if (event.step == 1)
      first_step_end_ = now_seconds();
    else
      allocations_ += watch_.take();
    seconds_.push_back(event.seconds);
    tokens_ += event.tokens;
    if (event.step % config_.training.logging_steps == 0 || event.step == trainer_.total_steps())
      events_.step(event);
    if (config_.training.eval_steps > 0 && event.step % config_.training.eval_steps == 0 &&
        trainer_.has_eval())
      PLIMSOLL_TRY(evaluate());
    watch_.restart();
    return Ok{};
  }

  Status evaluate() {
    PLIMSOLL_ASSIGN(const EvalEvent event, trainer_.evaluate());
    last_eval_ = event.step;
    events_.eval(event);
    return Ok{};
  }

  Summary summary() {
    Summary s;
    s.steps = trainer_.steps_done();
    s.tokens = tokens_;
    for (const double t : seconds_) s.seconds += t;
    std::sort(seconds_.begin(), seconds_.end());
    const double median = seconds_.empty() ? 0 : seconds_[seconds_.size() / 2];
    s.startup_seconds = std::max(0.0, first_step_end_ - options_.process_start_seconds - median);
    s.planned_peak_bytes = trainer_.prepared().report.process_peak_bytes();
    s.measured_peak_bytes = peak_resident_bytes();
    s.arena_bytes = trainer_.session().plan().arena_bytes;
    s.arena_touched_bytes = trainer_.session().arena_resident_bytes().count;
    s.allocations_after_first_step = allocations_;
    return s;
  }

  const RunConfig& config_;
  const RunOptions& options_;
  Trainer& trainer_;
  Events& events_;
  AllocationWatch watch_;
  std::vector<double> seconds_;
  int64_t tokens_ = 0, allocations_ = 0, last_eval_ = -1;
  double first_step_end_ = 0;
};

}  // namespace

Status run_training(const RunConfig& config, const RunOptions& options) {
  PLIMSOLL_TRY(check_for_training(config));
  const int threads = static_cast<int>(config.runtime.threads.value_or(num_available_cpus()));
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
