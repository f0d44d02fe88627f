#include "cli/explain/planning_line.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/process.h"
#include "base/thread.h"
#include "cli/terminal.h"

namespace plimsoll::cli {
namespace {

constexpr std::chrono::milliseconds kQuiet(2000), kBetween(200);

}  // namespace

struct PlanningLine::State {
  explicit State(const char* counted) : what(counted) {}

  void run() {
    std::unique_lock lock(turn);
    for (auto wait = kQuiet; !ended.wait_for(lock, wait, [&] { return is_over; }); wait = kBetween) {
      const std::string share = total > 0 ? fmt::format("{} of {} {}", done, total, what) : "";
      line.show({{fmt::format("planning {:.0f}s", now_seconds() - start), 0}, {share, 1}});
    }
    line.clear();
  }

  const char* what;
  const double start = now_seconds();
  std::mutex turn;
  std::condition_variable ended;
  bool is_over = false;
  size_t done = 0, total = 0;
  StatusLine line;
  Thread thread;  ///< behind what it reads
};

PlanningLine::PlanningLine(const char* what) : state_(std::make_unique<State>(what)) {
  State* state = state_.get();
  auto thread = state->line.rewrites()
                    ? Thread::start("reporting the progress of planning", [state] { state->run(); })
                    : Result<Thread>(Thread());
  if (thread && thread->joinable())
    state->thread = std::move(*thread);
  else
    state_.reset();
}

PlanningLine::~PlanningLine() { end(); }

std::function<void(size_t, size_t)> PlanningLine::teller() {
  if (state_ == nullptr) return {};
  return [state = state_.get()](size_t done, size_t total) {
    const std::lock_guard lock(state->turn);
    state->done = done, state->total = total;
  };
}

void PlanningLine::end() {
  if (state_ == nullptr) return;
  {
    const std::lock_guard lock(state_->turn);
    state_->is_over = true;
  }
  state_->ended.notify_all();
  state_->thread.join();
  state_.reset();
}

}  // namespace plimsoll::cli
