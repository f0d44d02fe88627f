#include "telemetry/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/process.h"
#include "base/units.h"
#include "planner/report/headline.h"
#include "telemetry/eval_event.h"

namespace plimsoll::telemetry {
namespace {

/// A float32 as the nine digits that give its bits back.
io::Tree number(double value) { return io::Tree::of(value); }

double rate_of(const training::StepEvent& e) { return static_cast<double>(e.units) / e.seconds; }

/// What the speed is called: "tokens_per_second".
std::string speed_key(std::string_view unit) { return fmt::format("{}_per_second", unit); }

/// Readers look for tokens where nothing else is said.
void say_unit(io::Tree& event, std::string_view unit) {
  if (unit != "tokens") event.set("unit", io::Tree::of(std::string(unit)));
}

/// What a run repeats stands before what its clock says.
io::Tree step_event(const training::StepEvent& e) {
  io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("step"))},
                                  {"step", io::Tree::of(e.step)},
                                  {"loss", number(e.loss)},
                                  {"grad_norm", number(e.grad_norm)},
                                  {"learning_rate", number(e.learning_rate)},
                                  {std::string(e.unit), io::Tree::of(e.units)}});
  say_unit(event, e.unit);
  if (e.loss_scale) {
    event.set("loss_scale", number(*e.loss_scale));
    event.set("skipped", io::Tree::of(e.skipped));
  }
  event.set("step_seconds", number(e.seconds));
  event.set(speed_key(e.unit), number(rate_of(e)));
  event.set("samples_per_second", number(static_cast<double>(e.samples) / e.seconds));
  event.set("data_wait_seconds", number(e.data_wait_seconds));
  if (e.ranks)
    event.set("ranks", io::Tree::map({{"slowest", io::Tree::of(e.ranks->slowest)},
                                      {"slowest_seconds", number(e.ranks->slowest_seconds)},
                                      {"median_seconds", number(e.ranks->median_seconds)}}));
  event.set("loss_mean", number(e.loss_mean));  // a resume within an interval has fewer of its steps
  return event;
}

/// Ten columns of how far it is.
std::string bar(int64_t done, int64_t total) {
  constexpr int64_t kColumns = 8;
  if (total <= 0) return "";
  const int64_t full = std::clamp<int64_t>(done * kColumns / total, 0, kColumns);
  return "[" + std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(kColumns - full), '.') + "]";
}

std::string scale_text(const training::StepEvent& e) {
  if (!e.loss_scale) return "";
  return fmt::format("scale {:g}{}", *e.loss_scale, e.skipped ? " skipped" : "");
}

std::string summary_text(const Summary& s, double speed, const std::string& course) {
  const auto bytes = [](int64_t n) { return to_string(Bytes(n)); };
  std::string out = fmt::format("\n{} steps, {} {} in {:.1f} s: {:.0f} {}/s, start-up {:.2f} s\n", s.steps,
                                s.units, s.unit, s.seconds, speed, s.unit, s.startup_seconds);
  out += course;
  if (s.run_steps > s.steps)
    out += fmt::format("so far: {} steps, {} {}\n", s.run_steps, s.run_units, s.unit);
  if (s.best) out += fmt::format("best: {} {:.6g} at step {}\n", s.best->metric, s.best->value, s.best->step);
  const double ratio = static_cast<double>(s.measured_peak_bytes) / static_cast<double>(s.planned_peak_bytes);
  out += fmt::format("peak memory{}: planned {}, measured {} ({:.1f} % of the plan)\n",
                     s.host_planned_peak_bytes ? " of the device" : "", bytes(s.planned_peak_bytes),
                     bytes(s.measured_peak_bytes), 100 * ratio);
  if (s.host_planned_peak_bytes)
    out += fmt::format("peak memory of the host: planned {}, measured {}\n",
                       bytes(*s.host_planned_peak_bytes), bytes(*s.host_measured_peak_bytes));
  return out + fmt::format(
                   "arena: {} B, allocations after the first step: {}, small allocations per step: {:.1f}\n",
                   s.arena_bytes, s.allocations_after_first_step, s.small_allocations_per_step);
}

/// Of a run's end.
io::Tree summary_event(const Summary& s, double speed) {
  io::Tree event =
      io::Tree::map({{"event", io::Tree::of(std::string("summary"))},
                     {"steps", io::Tree::of(s.steps)},
                     {std::string(s.unit), io::Tree::of(s.units)},
                     {"run_steps", io::Tree::of(s.run_steps)},
                     {fmt::format("run_{}", s.unit), io::Tree::of(s.run_units)},
                     {"seconds", number(s.seconds)},
                     {speed_key(s.unit), number(speed)},
                     {"startup_seconds", number(s.startup_seconds)},
                     {"planned_peak_bytes", io::Tree::of(s.planned_peak_bytes)},
                     {"measured_peak_bytes", io::Tree::of(s.measured_peak_bytes)},
                     {"arena_bytes", io::Tree::of(s.arena_bytes)},
                     {"allocations_after_first_step", io::Tree::of(s.allocations_after_first_step)},
                     {"small_allocations_per_step", number(s.small_allocations_per_step)}});
  say_unit(event, s.unit);
  if (s.host_planned_peak_bytes) {
    event.set("host_planned_peak_bytes", io::Tree::of(*s.host_planned_peak_bytes));
    event.set("host_measured_peak_bytes", io::Tree::of(*s.host_measured_peak_bytes));
  }
  if (!s.phase_peak_bytes.empty()) {
    io::Tree phases = io::Tree::map();
    for (const auto& [name, bytes] : s.phase_peak_bytes) phases.set(name, io::Tree::of(bytes));
    event.set("phase_peak_bytes", std::move(phases));
  }
  if (s.best) {
    event.set("best_metric", io::Tree::of(s.best->metric));
    event.set("best_value", number(s.best->value));
    event.set("best_step", io::Tree::of(s.best->step));
    event.set("stopped_early", io::Tree::of(s.best->stopped_early));
  }
  return event;
}

}  // namespace

void Events::emit(const io::Tree& event) {
  const bool takes = takes_events();
  if (!takes && !keeps_lines_ && !log_) return;
  const std::string line = io::to_json(event);
  if (log_)
    log_(line);
  else if (keeps_lines_)
    kept_.push_back(line);
  if (takes) sink_.event(event, line);
}

void Events::log_to(std::function<void(const std::string&)> log) {
  log_ = std::move(log);
  if (!log_) return;
  for (const std::string& line : kept_) log_(line);
  kept_ = {};
}

void Events::plan(const planner::PlanReport& report, PlanDetail detail) {
  budget_bytes_ = report.budget_bytes;
  emit(planner::plan_event(report));
  if (takes_events()) return;
  sink_.end_progress(/*stays=*/true);
  sink_.text(detail == PlanDetail::kAll ? planner::plan_table(report) : planner::short_plan(report));
}

void Events::load(const checkpoints::LoadReport& l) {
  io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("load"))},
                                  {"path", io::Tree::of(l.path)},
                                  {"tensors", io::Tree::of(l.num_tensors)},
                                  {"bytes", io::Tree::of(l.file_bytes)},
                                  {"seconds", number(l.seconds)}});
  if (!l.drawn.empty()) {
    std::vector<io::Tree> names;
    for (const std::string& name : l.drawn) names.push_back(io::Tree::of(name));
    event.set("drawn", io::Tree::list(std::move(names)));
  }
  emit(event);
  if (takes_events()) return;
  sink_.message(fmt::format("loaded {} tensors, {} in {:.2f} s, from {}", l.num_tensors,
                            to_string(Bytes(l.file_bytes)), l.seconds, l.path));
  if (!l.drawn.empty())
    sink_.message(fmt::format("random values, which the files do not give: {}", fmt::join(l.drawn, ", ")));
}

void Events::step(const training::StepEvent& e) {
  losses_.add(e.loss_mean);
  if (first_step_ == 0) {
    first_step_ = e.step;
    first_loss_ = e.loss_mean;
  }
  last_step_ = e.step;
  last_loss_ = e.loss_mean;
  mean_seconds_ = mean_seconds_ == 0 || e.step <= 2 ? e.seconds : 0.9 * mean_seconds_ + 0.1 * e.seconds;
  emit(step_event(e));
  if (!is_watched()) return;
  const std::string left = duration_text(mean_seconds_ * static_cast<double>(total_steps_ - e.step));
  const std::string budget = budget_bytes_ > 0 ? " of " + to_string(Bytes(budget_bytes_)) : "";
  constexpr double kBetweenLooks = 0.1;  // a look takes as long as the rest of the line
  if (const double now = now_seconds(); now - looked_at_peak_ >= kBetweenLooks) {
    looked_at_peak_ = now;
    peak_bytes_ = peak_resident_bytes();
  }
  const bool rewrites =
      sink_.audience().rewrites_progress;  // what moves from step to step is for who looks on
  const std::string wait =
      rewrites ? fmt::format("wait {:.1f}%", 100 * e.data_wait_seconds / std::max(e.seconds, 1e-9)) : "";
  sink_.progress(
      {{rewrites ? bar(e.step, total_steps_) : "", 5},
       {fmt::format("step {:>{}}/{}", e.step, std::to_string(total_steps_).size(), total_steps_), 0},
       {fmt::format("loss {:.4f}", e.loss_mean), 1},
       {fmt::format("norm {:.3g}", e.grad_norm), 8},
       {fmt::format("lr {:.2e}", e.learning_rate), 9},
       {scale_text(e), e.skipped ? 2 : 10},
       {fmt::format("{:.0f} {}/s", rate_of(e), e.unit == "tokens" ? "tok" : e.unit), 4},
       {"ETA " + left, 3},
       {wait, 6},
       {"peak " + to_string(Bytes(peak_bytes_)) + budget, 7}});
}

void Events::eval_progress(int64_t done, int64_t total) {
  if (!is_watched()) return;
  if (!eval_clock_) {
    sink_.end_progress(/*stays=*/true);
    eval_clock_.emplace();
  }
  if (!eval_clock_->is_due(sink_.audience().rewrites_progress)) return;
  const double fraction = static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, total));
  sink_.progress({{fmt::format("eval {:3.0f}%", 100 * fraction), 0},
                  {fmt::format("{} of {} examples", done, total), 2},
                  {eval_clock_->left(fraction), 1}});
}

void Events::end_progress() {
  if (eval_clock_) sink_.end_progress(/*stays=*/false);
  eval_clock_.reset();
}

void Events::eval(const training::EvalEvent& e) {
  end_progress();
  for (const training::EvalEvent& part : e.parts) eval(part);
  emit(eval_event(e));
  if (!is_watched()) return;
  sink_.message(fmt::format("eval{} at step {}: {} {}", e.name.empty() ? "" : " of " + e.name, e.step,
                            e.text(4), e.counts()));
}

void Events::checkpoint(const checkpoints::SaveReport& saved) {
  emit(io::Tree::map({{"event", io::Tree::of(std::string("checkpoint"))},
                      {"step", io::Tree::of(saved.step)},
                      {"path", io::Tree::of(saved.path)},
                      {"seconds", number(saved.seconds)},
                      {"waited_seconds", number(saved.waited_seconds)}}));
  if (!is_watched()) return;
  sink_.message(fmt::format("saved {} in {:.2f} s", saved.path, saved.seconds));
}

void Events::swapping(int64_t step, int64_t bytes) {
  const std::string text = fmt::format(
      "{} of this run were moved to swap, so steps wait for the disk. Free memory on this machine, or stop "
      "the run and lower memory.budget (plimsoll plan RUN --explain memory shows what would need less)",
      to_string(Bytes(bytes)));
  emit(io::Tree::map({{"event", io::Tree::of(std::string("warning"))},
                      {"kind", io::Tree::of(std::string("swap"))},
                      {"step", io::Tree::of(step)},
                      {"swapped_bytes", io::Tree::of(bytes)},
                      {"message", io::Tree::of(text)}}));
  sink_.message("warning: " + text);
}

void Events::memory_warning(int64_t step, const MemoryWarning& warning) {
  io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("warning"))},
                                  {"kind", io::Tree::of(warning.kind)},
                                  {"step", io::Tree::of(step)}});
  for (const auto& [name, bytes] : warning.figures) event.set(name, io::Tree::of(bytes));
  event.set("message", io::Tree::of(warning.text));
  emit(event);
  sink_.message("warning: " + warning.text);
}

void Events::memory_summary(const MemorySummary& summary) {
  emit(memory_event(summary));
  if (!is_watched()) return;
  sink_.end_progress(/*stays=*/true);
  sink_.message(memory_table(summary));
}

std::string Events::course_text() const {
  constexpr size_t kColumns = 24;
  if (first_step_ == 0) return "";
  const bool shows = sink_.audience().results_on_terminal && shows_sparklines();
  const std::string line = shows ? sparkline(losses_.means(), kColumns) + "  " : "";
  if (first_step_ == last_step_)
    return fmt::format("loss: {}{:.4f} at step {}\n", line, last_loss_, last_step_);
  return fmt::format("loss: {}{:.4f} at step {}, {:.4f} at step {}\n", line, first_loss_, first_step_,
                     last_loss_, last_step_);
}

void Events::estimate(const planner::StepTimes& times) {
  emit(planner::step_times_event(times));
  if (const std::string text = planner::difference_text(times); !text.empty()) warning(text);
}

void Events::warning(const std::string& text) { sink_.message("warning: " + text); }

void Events::note(const std::string& text) { sink_.message("note: " + text); }

void Events::summary(const Summary& s) {
  sink_.end_progress(/*stays=*/true);
  const double speed = s.seconds > 0 ? static_cast<double>(s.units) / s.seconds : 0.0;
  emit(summary_event(s, speed));
  if (!takes_events()) sink_.text(summary_text(s, speed, course_text()));
}

}  // namespace plimsoll::telemetry
