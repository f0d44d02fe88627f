#include "analysis/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/numbers.h"
#include "models/presets.h"
#include "planner/report/budget.h"
#include "planner/report/headline.h"
#include "planner/report/report_parts.h"
#include "settings/settings.h"

namespace plimsoll::analysis {
namespace {

constexpr std::string_view kBatchAxis = "training.global_batch_size", kMicro = "training.micro_batch_size",
                           kAccum = "training.gradient_accumulation_steps", kPreset = "model.preset";

/// The largest of candidates 0, 1, … that fits, where the next one does not; -1 where none does. Candidates
/// grow; the search begins at `start`.
template <typename Fits>
int64_t largest_that_fits(int64_t start, int64_t last, Fits&& fits) {
  int64_t low = -1, high = last + 1, step = 1;  // low fits, high does not
  start = std::clamp<int64_t>(start, 0, last);
  if (fits(start)) {
    low = start;
    for (int64_t next = low; high == last + 1 && low < last; step *= 2) {
      next = std::min(last, low + std::max(step, low / 2));
      (fits(next) ? low : high) = next;
    }
  } else {
    high = start;
    for (; low < 0 && high > 0; step *= 2) {
      const int64_t next = std::max<int64_t>(0, high - std::max(step, high / 2));
      (fits(next) ? low : high) = next;
      if (next == 0) break;
    }
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

class SweepSearch {
 public:
  SweepSearch(const strategy::Variants& variants, std::vector<SweepAxis> axes, const PlanProgress& progress)
      : variants_(variants), progress_(progress) {
    sweep_.axes = std::move(axes);
  }

  Result<Sweep> operator()() {
    size_t count = 1;
    for (const SweepAxis& axis : sweep_.axes)
      count *= axis.finds_largest ? 1 : std::max<size_t>(1, axis.values.size());
    std::optional<Error> first;
    for (size_t i = 0; i < count; ++i) {
      if (progress_) progress_(i, count);
      sweep_.rows.push_back(row(i));
      SweepRow& row = sweep_.rows.back();
      if (!row.report && error_ && !first) first = error_;
      if (sweep_.axes.front().at_once && !(row.report && row.report->fits)) break;
    }
    const auto planned = [](const SweepRow& row) { return row.report.has_value(); };
    if (first && std::ranges::none_of(sweep_.rows, planned)) return *first;
    return std::move(sweep_);
  }

 private:
  /// The values that the axes with a list have in that row.
  SweepRow row(size_t index) {
    strategy::SettingTexts settings;
    std::vector<std::string> values(sweep_.axes.size());
    for (size_t a = sweep_.axes.size(); a-- > 0;) {
      if (sweep_.axes[a].finds_largest) continue;
      values[a] = sweep_.axes[a].values[index % sweep_.axes[a].values.size()];
      index /= sweep_.axes[a].values.size();
    }
    for (size_t a = 0; a < sweep_.axes.size(); ++a) {
      const SweepAxis& axis = sweep_.axes[a];
      if (axis.finds_largest) continue;
      settings = with(std::move(settings), axis, values[a]);
    }
    SweepRow row{settings, values};
    for (size_t a = 0; a < sweep_.axes.size(); ++a)
      if (sweep_.axes[a].finds_largest && !find_largest(sweep_.axes[a], a, row)) return row;
    fill(row);
    return row;
  }

  [[nodiscard]] strategy::SettingTexts with(strategy::SettingTexts settings, const SweepAxis& axis,
                                            const std::string& value) const {
    settings.emplace_back(axis.path, value);
    if (!axis.at_once && (axis.setting != kBatchAxis || !axis.finds_largest)) return settings;
    settings.emplace_back(kMicro, value);
    settings.emplace_back(kAccum, "1");
    return settings;
  }

  /// What is said of settings that do not fit; empty: they do.
  std::string why_not(const strategy::SettingTexts& settings) {
    const auto variant = variants_.look(settings, /*finds_least=*/true);  // as the plan by itself
    if (variant) return variant->report.fits ? "" : "does not fit";
    error_ = variant.error();
    return error_->what;
  }

  /// Puts the largest value that fits into the row; false where there is none.
  bool find_largest(const SweepAxis& axis, size_t at, SweepRow& row) {
    std::vector<std::string> names = names_of(axis);
    const settings::Setting& setting = *settings::find_setting(axis.setting);
    const auto least = std::max<int64_t>(1, static_cast<int64_t>(setting.least));
    const auto value_of = [&](int64_t i) {
      return names.empty() ? std::to_string(least + i) : names[static_cast<size_t>(i)];
    };
    std::map<int64_t, std::string> known;
    const auto fits_at = [&](int64_t i) {
      const auto [found, is_new] = known.try_emplace(i);
      if (is_new) found->second = why_not(with(row.settings, axis, value_of(i)));
      return found->second.empty();
    };
    const int64_t last =
        names.empty() ? static_cast<int64_t>(setting.most) - least : static_cast<int64_t>(names.size()) - 1;
    int64_t best = largest_that_fits(names.empty() ? start_of(setting) - least : last, last, fits_at);
    if (best >= 0 && names.empty()) {
      // Round numbers above may need less: the search is for the largest, not for the first that does not.
      for (const int64_t round : {8, 64, 256})
        if (const int64_t next = (least + best) / round * round + round - least;
            next <= last && fits_at(next))
          best = largest_that_fits(next, last, fits_at);
    }
    if (best < 0) {
      row.note = "no value of " + axis.path + " fits";
      if (error_) row.note += ": " + error_->what;
      return false;
    }
    row.settings = with(row.settings, axis, value_of(best));
    row.values[at] = value_of(best);
    row.note =
        best == last ? "there is none larger" : fmt::format("{}: {}", value_of(best + 1), known.at(best + 1));
    return true;
  }

  /// Candidates that are no numbers, from the least; none: all numbers.
  [[nodiscard]] std::vector<std::string> names_of(const SweepAxis& axis) const {
    std::vector<std::string> names;
    if (axis.setting == kPreset) {
      std::vector<std::pair<int64_t, std::string>> sizes;
      for (const std::string& name : models::preset_names())
        if (const auto model = models::make_model(*models::preset_config(name)))
          sizes.emplace_back((*model)->num_parameters(), name);
      std::ranges::sort(sizes);
      for (auto& [size, name] : sizes) names.push_back(std::move(name));
    } else if (axis.setting == kMicro) {
      const int64_t all = variants_.config().training.global_batch_size;
      for (int64_t n = 1; n <= all; ++n)
        if (all % n == 0) names.push_back(std::to_string(n));
    }
    return names;
  }

  /// What the run says itself, else little.
  [[nodiscard]] int64_t start_of(const settings::Setting& setting) const {
    const std::string text = settings::setting_text(setting, variants_.config());
    const bool is_number =
        !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
    return is_number ? number_of<int64_t>(text.substr(0, 18)).value_or(8) : 8;
  }

  /// Plans the row as its user would.
  void fill(SweepRow& row) {
    auto variant = variants_.look(row.settings, /*finds_least=*/true);
    if (!variant) {
      error_ = variant.error();
      row.note = error_->what;
      return;
    }
    strategy::SettingTexts tight = row.settings;
    tight.emplace_back(main_budget(variant->report), "1");
    const auto least = variants_.look(tight, /*finds_least=*/true);
    if (!least) {
      error_ = least.error();
      row.note = error_->what;
      return;
    }
    row.report = std::move(variant->report);
    row.peak_bytes = main_peak_bytes(*row.report);
    row.least_bytes = row.report->fits ? main_peak_bytes(least->report) : row.peak_bytes;
    row.budget_bytes = main_budget_bytes(*row.report);
    if (!row.report->fits && row.note.empty()) row.note = planner::excess_text(*row.report);
    sweep_.model = row.report->model;
    sweep_.budget = main_budget(*row.report);
  }

  const strategy::Variants& variants_;
  const PlanProgress& progress_;
  Sweep sweep_;
  std::optional<Error> error_;  ///< of what could not be planned last
};

/// -1: no number.
double size_of(const SweepAxis& axis, const SweepRow& row, const std::string& value) {
  if (axis.setting.starts_with("model.")) return static_cast<double>(row.report->num_parameters);
  const bool is_number =
      !value.empty() && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? number_of<double>(value).value_or(-1) : -1;
}

io::Tree row_event(const SweepRow& row) {
  io::Tree settings = io::Tree::map();
  for (const auto& [path, value] : row.settings) settings.set(path, io::Tree::of(value));
  io::Tree event = io::Tree::map({{"settings", std::move(settings)},
                                  {"fits", row.report ? io::Tree::of(row.report->fits) : io::Tree{}}});
  if (row.report) {
    event.set("budget_bytes", io::Tree::of(row.budget_bytes));
    event.set("least_bytes", io::Tree::of(row.least_bytes));
    event.set("peak_bytes", io::Tree::of(row.peak_bytes));
    const bool timed = row.report->has_time();
    event.set("seconds", timed ? io::Tree::of(row.report->seconds_estimated) : io::Tree{});
    event.set(row.report ? row.report->speed_key() : planner::PlanReport{}.speed_key(),
              timed ? io::Tree::of(row.report->units_per_second()) : io::Tree{});
    if (row.report->ranks > 1) event.set("communication", planner::network_event(*row.report));
    event.set("parameters", io::Tree::of(row.report->num_parameters));
    event.set("choices", planner::choices_event(*row.report));
  }
  event.set("note", io::Tree::of(row.note));
  return event;
}

}  // namespace

Result<Sweep> plan_sweep(const strategy::Variants& variants, std::vector<SweepAxis> axes,
                         const PlanProgress& progress) {
  return SweepSearch(variants, std::move(axes), progress)();
}

const SweepRow* largest_row(const Sweep& sweep) {
  if (sweep.axes.size() != 1) return nullptr;
  const SweepRow* largest = nullptr;
  double most = -1;
  for (const SweepRow& row : sweep.rows) {
    if (!row.report || !row.report->fits) continue;
    const double size = size_of(sweep.axes[0], row, row.values[0]);
    if (size > most) {
      largest = &row;
      most = size;
    }
  }
  return largest;
}

io::Tree sweep_event(const Sweep& sweep) {
  std::vector<io::Tree> keys, rows;
  for (const SweepAxis& axis : sweep.axes) keys.push_back(io::Tree::of(axis.path));
  for (const SweepRow& row : sweep.rows) rows.push_back(row_event(row));
  const SweepRow* largest = largest_row(sweep);
  return io::Tree::map({{"event", io::Tree::of(std::string("sweep"))},
                        {"budget", io::Tree::of(sweep.budget)},
                        {"keys", io::Tree::list(std::move(keys))},
                        {"rows", io::Tree::list(std::move(rows))},
                        {"largest", largest ? io::Tree::of(largest->values[0]) : io::Tree{}}});
}

}  // namespace plimsoll::analysis
