#include "analysis/techniques.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/report/budget.h"

namespace plimsoll::analysis {
namespace {

/// Less than this share of the time is none.
constexpr double kNoticedTime = 5e-4;

std::string joined(std::string a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "; " + b;
}

class Table {
 public:
  Table(const strategy::Variants& variants, const strategy::Prepared& base)
      : variants_(variants),
        base_(base.report),
        bounded_(binding_pool(base.report)),
        peak_(planner::bounded_bytes(base.report, bounded_)) {}

  /// What changes nothing is told of as such, and so is what the run contradicts.
  TechniqueRow plan(const Technique& technique) const {
    const auto report = variants_.plan(technique.settings);
    if (!report) return idle(technique, "not in this run: " + report.error().what);
    const bool changes = planner::bounded_bytes(*report, bounded_) != peak_ ||
                         report->process_peak_bytes() != base_.process_peak_bytes() ||
                         std::abs(report->seconds_estimated - base_.seconds_estimated) >
                             kNoticedTime * base_.seconds_estimated;
    if (!changes) return idle(technique, "no effect: this run needs the same memory and time with it");
    TechniqueRow row{technique};
    row.peak_bytes = planner::bounded_bytes(*report, bounded_);
    row.saved_bytes = peak_ - row.peak_bytes;
    row.seconds = report->has_time() ? report->seconds_estimated : 0;
    row.note = note_of(technique, *report);
    return row;
  }

  /// The least that memory.recompute: auto can be brought to by a budget.
  std::optional<TechniqueRow> plan_least() const {
    const char* budget = main_budget(base_);
    const std::string word = "auto";
    const auto least =
        variants_.plan({{"memory.recompute", word}, {"memory.offload", "none"}, {budget, "1"}});
    if (!least) return {};
    const int64_t bytes = main_peak_bytes(*least);
    return plan({TechniqueGroup::kRecompute,
                 "recompute auto, least budget",
                 {{"memory.recompute", word}, {budget, std::to_string(bytes)}}});
  }

  TechniqueRow idle(Technique technique, std::string why) const {
    technique.settings.clear();
    technique.note = std::move(why);
    TechniqueRow row{std::move(technique)};
    row.peak_bytes = peak_;
    row.seconds = base_.has_time() ? base_.seconds_estimated : 0;
    return row;
  }

 private:
  [[nodiscard]] std::string note_of(const Technique& technique, const planner::PlanReport& report) const {
    std::string note = keeps_bits(technique.group) ? "bit-identical results" : "changes the results";
    note = joined(note, technique.note);
    if (technique.group == TechniqueGroup::kRecompute && report.flops > 0)
      note = joined(note, fmt::format("{:.1f} % of the operations recomputed",
                                      100 * report.recompute_flops / report.flops));
    else if (report.recompute_set != base_.recompute_set)
      note = joined(note,
                    report.recompute_set.empty() ? "recomputes nothing" : "recomputes " + report.recompute);
    if (report.micro_batch_size != base_.micro_batch_size && technique.group != TechniqueGroup::kBatch)
      note = joined(note, planner::split_text(report.micro_batch_size, report.grad_accum_steps));
    return report.fits || !base_.fits ? note : joined(note, "does not fit");
  }

  const strategy::Variants& variants_;
  const planner::PlanReport& base_;
  planner::Bounded bounded_;  ///< what figures are of
  int64_t peak_;
};

}  // namespace

int64_t main_peak_bytes(const planner::PlanReport& report) {
  return report.device_is_process ? report.process_peak_bytes() : report.device_peak_bytes();
}

planner::Bounded binding_pool(const planner::PlanReport& report) {
  if (const auto over = planner::all_exceeded(report); !over.empty()) return over.front()->bounded;
  return report.device_is_process ? planner::Bounded::kProcess : planner::Bounded::kDevice;
}

const char* main_budget(const planner::PlanReport& report) {
  return report.device_is_process ? "memory.budget" : "memory.device_budget";
}

int64_t main_budget_bytes(const planner::PlanReport& report) {
  const planner::Budget* budget = report.device_budget();
  return budget == nullptr ? report.budget_bytes : budget->bytes;
}

std::vector<TechniqueRow> plan_techniques(const strategy::Variants& variants, const strategy::Prepared& base,
                                          const PlanProgress& progress) {
  const Table table(variants, base);
  const std::vector<Technique> known = known_techniques(variants.config(), base);
  const size_t total = known.size() + 1;
  std::vector<TechniqueRow> rows;
  const auto tell = [&](size_t done) {
    if (progress) progress(done, total);
  };
  for (const Technique& technique : known) {
    tell(rows.size());
    rows.push_back(table.plan(technique));
  }
  tell(known.size());
  if (auto least = table.plan_least()) rows.push_back(std::move(*least));
  std::stable_sort(rows.begin(), rows.end(), [](const TechniqueRow& a, const TechniqueRow& b) {
    return a.group != b.group ? a.group < b.group : a.saved_bytes > b.saved_bytes;
  });
  for (Technique& technique : idle_techniques(variants.config(), base))
    rows.push_back(table.idle(technique, technique.note));
  return rows;
}

io::Tree techniques_event(const std::vector<TechniqueRow>& rows) {
  std::vector<io::Tree> list;
  for (const TechniqueRow& row : rows) {
    io::Tree settings = io::Tree::map();
    for (const auto& [path, value] : row.settings) settings.set(path, io::Tree::of(value));
    list.push_back(io::Tree::map({{"name", io::Tree::of(row.name)},
                                  {"settings", std::move(settings)},
                                  {"peak_bytes", io::Tree::of(row.peak_bytes)},
                                  {"saved_bytes", io::Tree::of(row.saved_bytes)},
                                  {"seconds", row.seconds > 0 ? io::Tree::of(row.seconds) : io::Tree{}},
                                  {"note", io::Tree::of(row.note)}}));
  }
  return io::Tree::map(
      {{"event", io::Tree::of(std::string("techniques"))}, {"rows", io::Tree::list(std::move(list))}});
}

}  // namespace plimsoll::analysis
