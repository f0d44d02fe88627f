// What looking at a run costs: steps that are watched against steps of the same process that are not, in
// turns, so that what else the machine does meets both.
//
//   watching_bench profile|events|verify RUN.yaml [key=value ...]
//
// profile: op by op with the clock, as `plimsoll profile`. events: events.jsonl, TensorBoard's files and the
// monitor behind every step. verify: steps with debug.verify_steps=1 and, where 50 steps take less than 2 s,
// 50 of which one is verified, against steps of the run without it, whose plan is another one; where they
// take longer, 50 are put together from the step that is verified and one that is not. Prints the quartiles
// of the ratio over pairs of blocks, behind each sentence the same as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/process.h"
#include "cli/console.h"
#include "cli/profile/profile_run.h"
#include "io/scratch_folder.h"
#include "profiling/profile.h"
#include "telemetry/run_observer.h"

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
double plain(training::Trainer& trainer, int64_t count) {
  const double start = now_seconds();
  for (int64_t i = 0; i < count; ++i) (void)must(trainer.step());
  return now_seconds() - start;
}

double profiled(training::Trainer& trainer, int64_t count) {
  // The first one looks up what is the same for all.
  const profiling::Profile profile = must(profiling::profile_steps(
      trainer, {.schedule = {.wait = 0, .warmup = 1, .active = count, .skip_first = 0, .repeat = 1}}));
  const profiling::ProfiledStep& last = profile.steps.back();
  return last.start + last.seconds - profile.steps.front().start;
}

/// All that `plimsoll train` tells behind a step.
class Telling {
 public:
  explicit Telling(engine::OpenRun& run)
      : trainer_(*run.trainer),
        observer_(run.config, trainer_, events_, now_seconds(), /*memory_summary=*/0, /*memory_asked=*/{}) {}
  double steps(int64_t count) {
    const double start = now_seconds();
    for (int64_t i = 0; i < count; ++i) {
      observer_.step_begins();
      const training::StepEvent event = must(trainer_.step());
      const double told = now_seconds();
      observer_.step_ran(event, /*logged=*/true);
      observer_.step_ended();
      telling_ += now_seconds() - told;
    }
    return now_seconds() - start;
  }
  [[nodiscard]] double telling_seconds() const { return telling_; }

 private:
  training::Trainer& trainer_;
  cli::Console console_{/*json=*/false};
  telemetry::Events events_{console_};
  telemetry::RunObserver observer_;
  double telling_ = 0;
};

void print_ratios(const std::string& what, const std::vector<double>& ratios, double step_seconds) {
  fmt::print(
      "{{\"what\": \"{}\", \"median\": {:.5f}, \"low\": {:.5f}, \"high\": {:.5f}, \"pairs\": {}, "
      "\"step_seconds\": {:.6f}}}\n",
      what, quartile(ratios, 2), quartile(ratios, 1), quartile(ratios, 3), ratios.size(), step_seconds);
  fmt::print("{}: {:+.2f} % (quartiles {:+.2f} to {:+.2f}) over {} pairs, a plain step {:.2f} ms\n", what,
             100 * (quartile(ratios, 2) - 1), 100 * (quartile(ratios, 1) - 1),
             100 * (quartile(ratios, 3) - 1), ratios.size(), 1e3 * step_seconds);
}

template <typename Watched>
void compare(const std::string& what, training::Trainer& trainer, int64_t block, Watched&& watched) {
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

/// Another session of the same run, every `every`th of whose steps is verified.
std::unique_ptr<engine::OpenRun> verified_run(settings::RunConfig config, int64_t every,
                                              telemetry::Sink& sink) {
  config.debug.verify_steps = every;
  auto opened = must(cli::open_run(config, sink));
  (void)plain(*opened->trainer, 2);
  return opened;
}

void verify(training::Trainer& trainer, const settings::RunConfig& config, telemetry::Sink& sink,
            double step) {
  constexpr int64_t kEvery = 50;
  constexpr double kLongest = 2;  // seconds of kEvery steps
  const bool whole = step * kEvery < kLongest;
  const auto other = verified_run(config, 2, sink), rare = verified_run(config, kEvery, sink);
  std::vector<double> always, sometimes, seconds;
  for (size_t pair = 0; goes_on(pair); ++pair) {
    const double without = plain(trainer, 1);
    const double a = plain(*other->trainer, 1), b = plain(*other->trainer, 1);
    const bool b_is = other->trainer->steps_done() % 2 == 0;
    const double twice = b_is ? b : a, once = b_is ? a : b;
    always.push_back(twice / without);
    seconds.push_back(without);
    if (whole)
      sometimes.push_back(plain(*rare->trainer, kEvery) / plain(trainer, kEvery));
    else
      sometimes.push_back((twice + (kEvery - 1) * once) / (kEvery * without));
  }
  print_ratios("debug.verify_steps=1", always, quartile(seconds, 2));
  print_ratios(whole ? "debug.verify_steps=50" : "debug.verify_steps=50 (put together)", sometimes,
               quartile(seconds, 2));
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "watching_bench profile|events|verify RUN.yaml [key=value ...]\n");
    return 2;
  }
  const std::string mode = argv[1];
  std::vector<std::string> overrides(argv + 3, argv + argc);
  const io::ScratchFolder folder = must(io::ScratchFolder::create("watching"));
  if (mode == "events") overrides.emplace_back("report_to=tensorboard");
  const settings::RunConfig config =
      cli::short_run(must(settings::load_run_config(argv[2], overrides)), 1'000'000, folder.path());
  telemetry::Sink sink;  // nobody reads what opening a run reports
  const auto opened = must(cli::open_run(config, sink));
  training::Trainer& trainer = *opened->trainer;
  const double step = plain(trainer, kWarmup) / kWarmup;
  const auto block = std::max<int64_t>(1, static_cast<int64_t>(kBlockSeconds / step));
  if (mode == "verify") {
    verify(trainer, config, sink, step);
  } else if (mode == "events") {
    Telling telling(*opened);
    int64_t told = 0;
    compare("events, TensorBoard's files and the monitor", trainer, block, [&](int64_t count) {
      told += count;
      return telling.steps(count);
    });
    fmt::print("{{\"what\": \"the telling itself\", \"seconds\": {:.9f}, \"step_seconds\": {:.6f}}}\n",
               telling.telling_seconds() / static_cast<double>(told), step);
  } else {
    compare("profiling", trainer, block, [&](int64_t count) { return profiled(trainer, count); });
  }
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) { return plimsoll::run(argc, argv); }
