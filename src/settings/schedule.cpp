// The schedules' formulas, each a factor on the learning rate at `current` = step - 1. Operations stand in
// the order of transformers' optimization.py (Apache-2.0) and torch's lr_scheduler.py, so that the doubles
// agree.
#include "settings/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

#include "io/suggest.h"
#include "settings/run_config.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

constexpr double kPi = std::numbers::pi;

double ratio(int64_t a, int64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<int64_t>(1, b));
}

/// What a schedule's formula works on: its options, and the steps done before this one.
struct Point {
  const ScheduleOptions& o;
  int64_t current;

  [[nodiscard]] double progress() const {
    return ratio(current - o.warmup_steps, o.total_steps - o.warmup_steps);
  }
  [[nodiscard]] double cycles(double if_unset) const { return o.num_cycles < 0 ? if_unset : o.num_cycles; }
};

double constant(const Point&) { return 1.0; }

double linear(const Point& p) {
  return std::max(0.0, ratio(p.o.total_steps - p.current, p.o.total_steps - p.o.warmup_steps));
}

double cosine(const Point& p) {
  return std::max(0.0, 0.5 * (1.0 + std::cos(kPi * p.cycles(0.5) * 2.0 * p.progress())));
}

double cosine_with_restarts(const Point& p) {
  if (p.progress() >= 1.0) return 0.0;
  return std::max(0.0, 0.5 * (1.0 + std::cos(kPi * std::fmod(p.cycles(1.0) * p.progress(), 1.0))));
}

double polynomial(const Point& p) {
  if (p.current > p.o.total_steps) return p.o.lr_end / p.o.learning_rate;
  const double remaining = 1.0 - p.progress();
  return ((p.o.learning_rate - p.o.lr_end) * std::pow(remaining, p.o.power) + p.o.lr_end) / p.o.learning_rate;
}

double wsd_shape(Ramp type, double progress, double cycles, bool rising) {
  if (type == Ramp::kLinear) return rising ? progress : 1.0 - progress;
  if (type == Ramp::kCosine)
    return rising ? 0.5 * (1.0 - std::cos(kPi * progress))
                  : 0.5 * (1.0 + std::cos(kPi * cycles * 2.0 * progress));
  return rising ? 1.0 - std::sqrt(1.0 - progress) : 1.0 - std::sqrt(progress);
}

double warmup_stable_decay(const Point& p) {
  const ScheduleOptions& o = p.o;
  const int64_t decay_steps =
      o.num_decay_steps < 0 ? std::max<int64_t>(1, o.total_steps / 10) : o.num_decay_steps;
  const int64_t stable_end = o.total_steps - decay_steps;
  const auto above_least = [&](double factor) {
    return std::max(0.0, factor * (1.0 - o.min_lr_ratio) + o.min_lr_ratio);
  };
  if (p.current < o.warmup_steps)
    return above_least(wsd_shape(o.warmup_type, ratio(p.current, o.warmup_steps), 0.5, true));
  if (p.current < stable_end) return 1.0;
  if (p.current >= o.total_steps) return o.min_lr_ratio;
  return above_least(
      wsd_shape(o.decay_type, ratio(p.current - stable_end, decay_steps), p.cycles(0.5), false));
}

/// torch.optim.lr_scheduler.StepLR, its steps counted from the end of the warm-up.
double step_drops(const Point& p) {
  const int64_t size =
      p.o.step_size < 0 ? std::max<int64_t>(1, (p.o.total_steps - p.o.warmup_steps + 2) / 3) : p.o.step_size;
  const int64_t drops = (p.current - p.o.warmup_steps) / size;
  return std::pow(p.o.gamma, static_cast<double>(drops));
}

/// torch.optim.lr_scheduler.OneCycleLR with cosine annealing in two phases; the learning rate is its peak.
double one_cycle(const Point& p) {
  const double first = 1.0 / p.o.div_factor;
  const double last = first / p.o.final_div_factor;
  const auto total = static_cast<double>(p.o.total_steps);
  const double peak_step = p.o.pct_start * total - 1.0;
  const double last_step = total - 1.0;
  const double step = std::min(static_cast<double>(p.current), last_step);
  const auto anneal = [](double from, double to, double share) {
    return to + (from - to) / 2.0 * (1.0 + std::cos(kPi * share));
  };
  if (step <= peak_step) return anneal(first, 1.0, peak_step > 0 ? step / peak_step : 1.0);
  return anneal(1.0, last, last_step > peak_step ? (step - peak_step) / (last_step - peak_step) : 1.0);
}

struct Kind {
  std::string_view name;
  double (*factor)(const Point&);
  bool warms_up;  ///< rises linearly over warmup_steps before the formula starts
};

constexpr std::array<Kind, 10> kKinds = {{
    {"constant", constant, false},
    {"constant_with_warmup", constant, true},
    {"linear", linear, true},
    {"cosine", cosine, true},
    {"cosine_with_restarts", cosine_with_restarts, true},
    {"polynomial", polynomial, true},
    {"warmup_stable_decay", warmup_stable_decay, false},
    {"wsd", warmup_stable_decay, false},
    {"step", step_drops, true},
    {"one_cycle", one_cycle, false},
}};

const Kind* find_kind(std::string_view name) {
  for (const Kind& kind : kKinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

int64_t warmup_steps(const TrainingSettings& training, int64_t total_steps) {
  const double ratio = training.warmup_ratio.value_or(0);
  return ratio > 0 ? static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * ratio))
                   : training.warmup_steps;
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  names.reserve(std::size(kKinds));
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<Schedule> Schedule::create(const ScheduleOptions& options) {
  if (!find_kind(options.name))
    return wrong_setting("training.lr_scheduler: there is no '" + options.name + "'",
                         io::nearest_hint(options.name, schedule_names()));
  if (!(options.learning_rate >= 0) || options.total_steps < 1 || options.warmup_steps < 0)
    return wrong_setting("a schedule needs a learning rate, steps and warm-up of at least 0, 1 and 0",
                         "check training.learning_rate");
  if (options.name == "polynomial" && !(options.learning_rate > options.lr_end))
    return wrong_setting(
        fmt::format("training.lr_scheduler_kwargs.lr_end ({}) is not below training.learning_rate ({})",
                    options.lr_end, options.learning_rate),
        "lower lr_end");
  if (options.step_size == 0)
    return wrong_setting("training.lr_scheduler_kwargs.step_size is 0", "give the steps between two drops");
  return Schedule(options);
}

double Schedule::factor(int64_t step) const {
  const Kind& kind = *find_kind(options_.name);
  const Point point{options_, std::max<int64_t>(0, step - 1)};
  if (kind.warms_up && point.current < options_.warmup_steps)
    return ratio(point.current, options_.warmup_steps);
  return kind.factor(point);
}

std::string warmup_note(const TrainingSettings& training, int64_t total_steps) {
  const int64_t warmup = warmup_steps(training, total_steps);
  if (warmup < total_steps) return "";
  return fmt::format(
      "the warm-up is {} steps and the run {}: the learning rate does not reach training.learning_rate",
      warmup, total_steps);
}

Result<Schedule> make_schedule(const TrainingSettings& training, int64_t steps) {
  const SchedulerSettings& extra = training.lr_scheduler_kwargs;
  const int64_t warmup = warmup_steps(training, steps);
  return Schedule::create({.name = training.lr_scheduler,
                           .learning_rate = training.learning_rate,
                           .warmup_steps = warmup,
                           .total_steps = steps,
                           .num_cycles = extra.num_cycles.value_or(-1),
                           .power = extra.power,
                           .lr_end = extra.lr_end,
                           .min_lr_ratio = extra.min_lr_ratio,
                           .num_decay_steps = extra.num_decay_steps.value_or(-1),
                           .decay_type = extra.decay_type,
                           .warmup_type = extra.warmup_type,
                           .step_size = extra.step_size.value_or(-1),
                           .gamma = extra.gamma,
                           .pct_start = extra.pct_start,
                           .div_factor = extra.div_factor,
                           .final_div_factor = extra.final_div_factor});
}

}  // namespace plimsoll::settings
