// plimsoll watch: how far a run of another process is.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#include "base/duration.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "reports/follow.h"
#include "reports/page.h"

namespace plimsoll::cli {
namespace {

using reports::Figure;
using reports::RunFollower;
using reports::RunState;

constexpr auto kPause = std::chrono::milliseconds(200);
constexpr double kPlainSeconds = 10;
constexpr size_t kColumns = 12;

struct WatchArguments {
  std::string folder;
  bool once = false;
};

std::string number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "";
}

std::string speed_text(const std::string& unit, double speed) {
  return std::isfinite(speed) ? fmt::format("{:.0f} {}/s", speed, unit) : "";
}

/// What there is to say of it now, as parts of a line.
std::vector<StatusPart> parts_of(const RunFollower& run, bool shows_sparkline) {
  if (!run.last()) return {{"no step yet", 0}};
  const reports::StepRow& last = *run.last();
  const int64_t total = run.total_steps();
  const bool has_total = total >= last.step && total > 0;
  const double seconds = last[Figure::kStepSeconds], wait = last[Figure::kDataWait];
  std::string memory;
  if (run.resident_bytes() > 0) {
    memory = "memory " + to_string(Bytes(run.resident_bytes()));
    if (run.budget_bytes() > 0) memory += " of " + to_string(Bytes(run.budget_bytes()));
  }
  const bool goes_on = run.state() == RunState::kRuns && has_total && total > last.step;
  const double left = has_total ? run.step_seconds() * static_cast<double>(total - last.step) : 0;
  return {
      {has_total ? fmt::format("step {}/{}", last.step, total) : fmt::format("step {}", last.step), 0},
      {has_total ? fmt::format("{:.0f}%", 100 * static_cast<double>(last.step) / static_cast<double>(total))
                 : "",
       5},
      {number("loss {:.4f}", last[Figure::kLoss]), 1},
      {shows_sparkline ? sparkline(run.losses().means(), kColumns) : "", 3},
      {speed_text(run.unit() == "tokens" ? "tok" : run.unit(), last[Figure::kSpeed]), 4},
      {goes_on ? "ETA " + duration_text(std::min(left, 1e9)) : "", 2},
      {seconds > 0 ? number("wait {:.1f}%", 100 * wait / seconds) : "", 6},
      {memory, 7}};
}

void print_line(const std::string& line) { print_text(line + "\n"); }

std::string end_text(const RunFollower& run, const std::string& folder) {
  if (run.state() == RunState::kGone)
    return fmt::format("{}: its process died without finishing", harmless(folder));
  const double rate = reports::member(run.summary(), run.unit() + "_per_second"),
               seconds = reports::member(run.summary(), "seconds");
  std::string text = "ended";
  if (std::isfinite(seconds)) text += " after " + duration_text(std::clamp(seconds, 0.0, 1e9));
  return text + (std::isfinite(rate) ? ", " + speed_text(run.unit(), rate) : "");
}

/// Shows what is new: on a terminal that can in one line that rewrites itself, else in lines on stdout.
class Screen {
 public:
  explicit Screen(bool once) : rewrites_(!once && isatty(STDOUT_FILENO) == 1 && line_.rewrites()) {}

  void show(RunFollower& run, bool last) {
    for (const std::string& message : run.take_messages()) {
      if (rewrites_)
        print_message(message);
      else
        print_line(message);
    }
    const bool sparkline = isatty(STDOUT_FILENO) == 1 && shows_sparklines();
    if (rewrites_) {
      line_.show(parts_of(run, sparkline));
      if (last) line_.finish();
      return;
    }
    const int64_t step = run.last() ? run.last()->step : 0;
    if (!last && (step == shown_step_ || now_seconds() - shown_seconds_ < kPlainSeconds)) return;
    shown_seconds_ = now_seconds();
    shown_step_ = step;
    const int columns = terminal_columns(STDOUT_FILENO);
    print_line(fitted(parts_of(run, sparkline), columns > 0 ? columns - 1 : 0));
  }
  void finish() { line_.finish(); }

 private:
  StatusLine line_;
  bool rewrites_;
  double shown_seconds_ = -kPlainSeconds;
  int64_t shown_step_ = -1;
};

Status run_watch(const WatchArguments& arguments) {
  PLIMSOLL_ASSIGN(RunFollower run, RunFollower::open(arguments.folder));
  Screen screen(arguments.once);
  PLIMSOLL_TRY(run.look());
  // What was told before is one message at most: the run is looked at now.
  if (auto told = run.take_messages(); !told.empty()) print_line(told.back());
  const StopSignals signals(/*outlive_readers=*/false);
  while (run.state() == RunState::kRuns && !arguments.once && stop_requested() == 0) {
    screen.show(run, /*last=*/false);
    std::this_thread::sleep_for(kPause);
    PLIMSOLL_TRY(run.look());
  }
  screen.show(run, /*last=*/true);
  if (run.state() == RunState::kRuns) return Ok{};
  const std::string end = end_text(run, arguments.folder);
  if (run.state() == RunState::kGone)
    return Error{ErrorCode::kInterrupted,
                 end,
                 {},
                 "run the same plimsoll train command again to resume from its checkpoint"};
  print_line(end);
  return Ok{};
}

}  // namespace

Command add_watch(Parser app) {
  return add_command<WatchArguments>(
      app, "watch", "follow a run of another process through its folder",
      [](Parser command, WatchArguments& arguments) {
        command.add_option("folder", arguments.folder, "the run's output.dir").type_name("DIR").required();
        command.add_flag("--once", arguments.once, "print the progress once and exit");
        command.footer(
            "examples: plimsoll watch runs/one\n"
            "          plimsoll watch runs/one --once\n\n"
            "exit codes: 0 the run has finished, 75 it was stopped or its process is gone\n"
            "Ctrl-C stops watching and does not stop the run.");
      },
      run_watch);
}

}  // namespace plimsoll::cli
