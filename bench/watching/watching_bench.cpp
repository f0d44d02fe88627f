// What looking at a run costs: steps that are watched against steps of the same process that are not, in
// turns, so that what else the machine does meets both.
//
//   watching_bench profile|events|verify RUN.yaml [key=value ...]
//
// profile: op by op with the clock, as `plimsoll profile`. events: events.jsonl, TensorBoard's files and the
// monitor behind every step. verify: every second step with debug.verify_steps=2, its ops run twice. Prints
// the quartiles of the ratio over pairs of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "cli/profile_run.h"
#include "io/scratch_folder.h"
#include "train/profile.h"
#include "train/run_folder.h"
#include "train/run_memory.h"
#include "train/run_monitor.h"

namespace plimsoll {
namespace {

constexpr size_t kLeastPairs = 9, kMostPairs = 61;
constexpr double kBudgetSeconds = 25;
constexpr double kBlockSeconds = 0.1;
constexpr int64_t kWarmup = 4;

template <typename T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message());
  std::exit(1);
}

/// Whether there is time for one more pair.
bool goes_on(size_t pairs) {
  static const double start = now_seconds();
  return pairs < kLeastPairs || (pairs < kMostPairs && now_seconds() - start < kBudgetSeconds);
}

double quartile(std::vector<double> values, size_t of_four) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, of_four * values.size() / 4)];
}

/// Seconds of `count` plain steps.
double plain(train::Trainer& trainer, int64_t count) {
  const double start = now_seconds();
  for (int64_t i = 0; i < count; ++i) (void)must(trainer.step());
  return now_seconds() - start;
}

double profiled(train::Trainer& trainer, int64_t count) {
  // The first one looks up what is the same for all.
  const train::Profile profile = must(train::profile_steps(
      trainer, {.schedule = {.wait = 0, .warmup = 1, .active = count, .skip_first = 0, .repeat = 1}}));
  const train::ProfiledStep& last = profile.steps.back();
  return last.start + last.seconds - profile.steps.front().start;
}

/// All that `plimsoll train` tells behind a step.
class Telling {
 public:
  explicit Telling(cli::OpenRun& run)
      : trainer_(*run.trainer),
        folder_(run.config, trainer_, [](const std::string& text) { fmt::print(stderr, "{}\n", text); }),
        memory_(trainer_, events_, 0),
        monitor_(run.config) {
    events_.log_to([this](const std::string& line) { folder_.line(line); });
  }
  double steps(int64_t count) {
    const double start = now_seconds();
    for (int64_t i = 0; i < count; ++i) {
      const train::StepEvent event = must(trainer_.step());
      const double told = now_seconds();
      events_.step(event);
      folder_.step(event);
      memory_.after("step", event.step);
      if (const Tree machine = monitor_.after(event.step); !machine.is_null()) events_.event(machine);
      telling_ += now_seconds() - told;
    }
    return now_seconds() - start;
  }
  [[nodiscard]] double telling_seconds() const { return telling_; }

 private:
  train::Trainer& trainer_;
  train::Events events_{/*json=*/false};
  train::RunFolder folder_;
  train::RunMemory memory_;
  train::RunMonitor monitor_;
  double telling_ = 0;
};

void print_ratios(const std::string& what, const std::vector<double>& ratios, double step_seconds) {
  fmt::print("{}: {:+.2f} % (quartiles {:+.2f} to {:+.2f}) over {} pairs, a plain step {:.2f} ms\n", what,
             100 * (quartile(ratios, 2) - 1), 100 * (quartile(ratios, 1) - 1),
             100 * (quartile(ratios, 3) - 1), ratios.size(), 1e3 * step_seconds);
}

template <typename Watched>
void compare(const std::string& what, train::Trainer& trainer, int64_t block, Watched&& watched) {
  std::vector<double> ratios, seconds;
  for (size_t pair = 0; goes_on(pair); ++pair) {
    const bool first = pair % 2 == 0;
    const double before = first ? plain(trainer, block) : 0;
    const double with = watched(block);
    const double without = first ? before : plain(trainer, block);
    ratios.push_back(with / without);
    seconds.push_back(without / static_cast<double>(block));
  }
  print_ratios(what, ratios, quartile(seconds, 2));
}

/// Steps of which every second is verified.
void verify(train::Trainer& trainer) {
  std::vector<double> ratios, seconds;
  for (size_t pair = 0; goes_on(pair); ++pair) {
    const double a = plain(trainer, 1), b = plain(trainer, 1);
    const double once = trainer.steps_done() % 2 == 0 ? a : b, twice = once == a ? b : a;
    ratios.push_back(twice / once);
    seconds.push_back(once);
  }
  print_ratios("a step that is verified", ratios, quartile(seconds, 2));
  fmt::print("so debug.verify_steps=50 costs {:.2f} %\n", 100 * (quartile(ratios, 2) - 1) / 50);
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "watching_bench profile|events|verify RUN.yaml [key=value ...]\n");
    return 2;
  }
  const std::string mode = argv[1];
  std::vector<std::string> overrides(argv + 3, argv + argc);
  const ScratchFolder folder = must(ScratchFolder::create("watching"));
  if (mode == "events") overrides.emplace_back("report_to=tensorboard");
  if (mode == "verify") overrides.emplace_back("debug.verify_steps=2");
  const RunConfig config =
      cli::short_run(must(load_run_config(argv[2], overrides)), 1'000'000, folder.path());
  train::Events events(/*json=*/false);
  events.mute();
  const auto opened = must(cli::open_run(config, events));
  train::Trainer& trainer = *opened->trainer;
  const double step = plain(trainer, kWarmup) / kWarmup;
  const auto block = std::max<int64_t>(1, static_cast<int64_t>(kBlockSeconds / step));
  if (mode == "verify") {
    verify(trainer);
  } else if (mode == "events") {
    Telling telling(*opened);
    int64_t told = 0;
    compare("events, TensorBoard's files and the monitor", trainer, block, [&](int64_t count) {
      told += count;
      return telling.steps(count);
    });
    fmt::print("the telling itself: {:.1f} us a step\n",
               1e6 * telling.telling_seconds() / static_cast<double>(told));
  } else {
    compare("profiling", trainer, block, [&](int64_t count) { return profiled(trainer, count); });
  }
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) { return plimsoll::run(argc, argv); }
