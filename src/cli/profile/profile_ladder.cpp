#include "cli/profile/profile_ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/median.h"
#include "cli/profile/profile_run.h"
#include "cli/terminal.h"
#include "strategy/prepare.h"

namespace plimsoll::cli {
namespace {

/// How often a rung and what it stands on are measured, in turn.
constexpr int kTurns = 3;
/// Of a step from which waiting for data is worth a rung.
constexpr double kWaits = 0.01;
/// Share of padding from which another packing is.
constexpr double kPadding = 0.05;

/// What some steps of a run came to.
struct Measured {
  std::vector<double> seconds;  ///< a step
  double waited = 0, busy = 0, wall = 0;
  int64_t threads = 0, units = 0;  ///< units of the task
  std::string unit;
  std::vector<std::pair<double, double>> losses;  ///< and norms, of each step from the first on
  int64_t micro_batch_size = 0;                   ///< 0: it is part of what is trained (BatchNorm)
  int64_t computed = 0;                           ///< units with padding
  std::string recompute, offload;
  bool optimizer_in_backward = false;

  [[nodiscard]] double wait_share() const { return wall > 0 ? waited / wall : 0; }
  [[nodiscard]] double utilisation() const {
    return wall > 0 && threads > 0 ? busy / (wall * static_cast<double>(threads)) : 0;
  }
  [[nodiscard]] double units_per_second() const { return wall > 0 ? static_cast<double>(units) / wall : 0; }
  void add(const Measured& more) {
    seconds.insert(seconds.end(), more.seconds.begin(), more.seconds.end());
    waited += more.waited;
    busy += more.busy;
    wall += more.wall;
    units += more.units;
    computed += more.computed;
    unit = more.unit;
    threads = more.threads;
    losses = more.losses;
    micro_batch_size = more.micro_batch_size;
    recompute = more.recompute;
    offload = more.offload;
    optimizer_in_backward = more.optimizer_in_backward;
  }
};

/// Settings to try.
using Overrides = std::vector<std::string>;

std::string text_of(const Overrides& overrides) {
  std::string out;
  for (const std::string& o : overrides) out += (out.empty() ? "" : " ") + o;
  return out.empty() ? "as the run is" : out;
}

class Ladder {
 public:
  Ladder(const settings::RunConfig& config, const profiling::ProfileSchedule& schedule, std::string folder)
      : config_(config), schedule_(schedule), folder_(std::move(folder)) {}

  [[nodiscard]] bool draws_tokens() const { return config_.data.train.empty(); }

  /// Opens the run and measures the schedule's active steps, without the clock within them.
  Result<Measured> measure(const Overrides& overrides) {
    PLIMSOLL_ASSIGN(const settings::RunConfig config, settings::with_overrides(config_, overrides));
    telemetry::Sink nobody;
    PLIMSOLL_ASSIGN(const auto run, open_run(short_run(config, schedule_.num_steps(), folder_), nobody));
    const planner::PlanReport& report = run->trainer->prepared().report;
    Measured m;
    m.unit = report.unit;
    m.threads = report.threads;
    m.micro_batch_size = report.batch_norms > 0 ? 0 : report.micro_batch_size;
    m.recompute = report.recompute;
    m.offload = report.offload;
    m.optimizer_in_backward = report.optimizer_in_backward;
    run->device->count_thread_seconds(true);
    for (int64_t i = 0; i < schedule_.num_steps(); ++i) {
      (void)run->device->take_thread_seconds();
      PLIMSOLL_ASSIGN(const training::StepEvent step, run->trainer->step());
      m.losses.emplace_back(step.loss, step.grad_norm);
      if (!schedule_.is_active(i)) continue;
      const auto threads = run->device->take_thread_seconds();
      m.seconds.push_back(step.seconds);
      m.wall += step.seconds;
      m.waited += step.data_wait_seconds;
      m.units += step.units;
      m.computed += report.units;
      m.busy += std::accumulate(threads.begin(), threads.end(), 0.0);
    }
    return m;
  }

  /// What could make this run faster, seen how it ran.
  [[nodiscard]] std::vector<Overrides> rungs(const Measured& base) const {
    std::vector<Overrides> list;
    const auto add = [&](Overrides overrides) { list.push_back(std::move(overrides)); };
    if (base.wait_share() > kWaits && !config_.data.train.empty()) {
      add({"data.num_workers=4"});
      add({"data.prefetch_factor=8"});
      if (base.unit == "images")
        for (const char* cache : {"jpeg", "u8"})
          if (config_.data.images.cache != cache) add({std::string("data.images.cache=") + cache});
    }
    const auto computed = static_cast<double>(base.computed);
    if (static_cast<double>(base.units) < (1 - kPadding) * computed && !config_.data.train.empty()) {
      add({"data.buckets=8"});
      add({"data.packing=best_fit"});
    }
    for (int64_t threads = base.threads / 2; threads >= 1; threads /= 2)
      add({fmt::format("runtime.threads={}", threads)});
    if (const int64_t cpus = strategy::num_threads({}); cpus > base.threads)
      add({fmt::format("runtime.threads={}", cpus)});
    const int64_t global = config_.training.global_batch_size;
    for (const int64_t micro : {base.micro_batch_size * 2, base.micro_batch_size / 2})
      if (micro >= 1 && global % micro == 0)
        add({fmt::format("training.micro_batch_size={}", micro),
             fmt::format("training.gradient_accumulation_steps={}", global / micro)});
    if (base.recompute != "none") add({"memory.recompute=none"});
    if (base.offload != "none") add({"memory.offload=none"});
    add({fmt::format("memory.optimizer_in_backward={}", !base.optimizer_in_backward)});
    return list;
  }

 private:
  const settings::RunConfig& config_;
  profiling::ProfileSchedule schedule_;
  std::string folder_;
};

/// A line of the table.
struct Line {
  Overrides overrides = {};
  std::optional<Measured> measured = {};
  double gain = 0;  ///< of the rate, on what was best before
  bool kept = false;
  std::string numbers = {}, refused = {};
};

/// Whether both computed the same, as far as both went. Tokens that are `drawn` are others in another split.
std::string numbers_text(const Measured& base, const Measured& rung, bool drawn) {
  return base.losses == rung.losses ? "bit-identical" : drawn ? "other random tokens" : "others";
}

/// Whole words of it, as many as a line has room for.
std::string first_line(const Error& error) {
  constexpr size_t kRoom = 64;
  const std::string text = error.message(), line = text.substr(0, text.find('\n'));
  if (line.size() <= kRoom) return line;
  return line.substr(0, std::min(line.rfind(' ', kRoom - 2), kRoom - 2)) + " …";
}

std::string line_text(const Line& line) {
  const std::string name = text_of(line.overrides);
  if (!line.measured) return fmt::format("{}\n    not run: {}\n", name, line.refused);
  const Measured& m = *line.measured;
  return fmt::format("{}\n{:>14.2f} ms{:>12.0f} {}/s{:>7}{:>7.1f}%{:>7.1f}%   {}{}\n", name,
                     1e3 * median(m.seconds), m.units_per_second(), m.unit,
                     line.overrides.empty() ? "" : fmt::format("{:+.1f}%", 100 * line.gain),
                     100 * m.wait_share(), 100 * m.utilisation(), line.numbers, line.kept ? ", kept" : "");
}

io::Tree line_tree(const Line& line) {
  io::Tree overrides = io::Tree::list(), tree = io::Tree::map();
  for (const std::string& o : line.overrides) overrides.items.push_back(io::Tree::of(o));
  tree.set("settings", std::move(overrides));
  if (!line.measured) {
    tree.set("refused", io::Tree::of(line.refused));
    return tree;
  }
  tree.set("step_seconds", io::Tree::of(median(line.measured->seconds)));
  tree.set(line.measured->unit + "_per_second", io::Tree::of(line.measured->units_per_second()));
  tree.set("gain", io::Tree::of(line.gain));
  tree.set("data_wait_share", io::Tree::of(line.measured->wait_share()));
  tree.set("utilisation", io::Tree::of(line.measured->utilisation()));
  tree.set("numbers", io::Tree::of(line.numbers));
  tree.set("kept", io::Tree::of(line.kept));
  return tree;
}

/// Of units, not steps: buckets and packing change what a step holds.
double gain(const Measured& above, const Measured& below) {
  const auto rate = [](const Measured& m) {
    return static_cast<double>(m.units) / static_cast<double>(m.seconds.size()) / median(m.seconds);
  };
  return rate(above) / rate(below) - 1;
}

/// The rung and what it stands on in turn, so that what else the machine does meets both.
Result<Line> try_rung(Ladder& ladder, const Overrides& base, const Overrides& rung, const Measured& first) {
  Line line{.overrides = base};
  line.overrides.insert(line.overrides.end(), rung.begin(), rung.end());
  Measured below, above;
  bool always_faster = true;
  for (int turn = 0; turn < kTurns; ++turn) {
    auto measured = ladder.measure(line.overrides);
    if (!measured) {
      line.overrides = rung;
      line.refused = first_line(measured.error());
      return line;
    }
    above.add(*measured);
    PLIMSOLL_ASSIGN(const Measured again, ladder.measure(base));
    below.add(again);
    always_faster &= gain(*measured, again) > 0;
  }
  line.gain = gain(above, below);
  line.kept = line.gain > kLeastGain && always_faster;
  line.numbers = numbers_text(first, above, ladder.draws_tokens());
  line.measured = std::move(above);
  line.overrides = rung;
  return line;
}

}  // namespace

Status climb_ladder(const settings::RunConfig& config, const profiling::ProfileSchedule& schedule,
                    const std::string& folder, bool json) {
  Ladder ladder(config, schedule, folder);
  PLIMSOLL_ASSIGN(const Measured first, ladder.measure({}));
  const auto tell = [&](const Line& line) {
    if (!json) print_text(line_text(line));
  };
  if (!json)
    print_text(
        fmt::format("{:>17}{:>21}{:>7}{:>8}{:>8}   numbers\n", "median step", "", "gain", "waits", "busy"));
  io::Tree list = io::Tree::list();
  const auto take = [&](const Line& line) {
    tell(line);
    list.items.push_back(line_tree(line));
  };
  take({.measured = first});
  Overrides best;
  for (const Overrides& rung : ladder.rungs(first)) {
    PLIMSOLL_ASSIGN(const Line line, try_rung(ladder, best, rung, first));
    take(line);
    if (line.kept) best.insert(best.end(), rung.begin(), rung.end());
  }
  if (json)
    fmt::print("{}\n",
               io::to_json(io::Tree::map({{"event", io::Tree::of(std::string("ladder"))},
                                          {"rungs", std::move(list)},
                                          {"settings", io::Tree::of(best.empty() ? "" : text_of(best))}})));
  else
    print_text(best.empty() ? "nothing that was tried makes it faster\n"
                            : fmt::format("faster with {}\n", text_of(best)));
  return Ok{};
}

}  // namespace plimsoll::cli
