#include "analysis/choose_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/report/budget.h"

namespace plimsoll::analysis {

Result<BatchChoice> choose_batch(const strategy::Variants& variants) {
  constexpr double kNearlyFastest = 0.98;
  PLIMSOLL_ASSIGN(Sweep curve, plan_sweep(variants, {batches_at_once()}));
  const auto fits = [](const SweepRow& row) { return row.report && row.report->fits; };
  if (!fits(curve.rows.front())) {
    const planner::PlanReport& report = *curve.rows.front().report;
    return planner::does_not_fit(report, "a sequence by itself");
  }
  if (!fits(curve.rows.back())) curve.rows.pop_back();
  // Of a card whose rates are not known the ratios of a usual one decide.
  const auto rate = [](const SweepRow& row) {
    return static_cast<double>(row.report->units) / row.report->seconds_estimated;
  };
  double fastest = 0;
  for (const SweepRow& row : curve.rows) fastest = std::max(fastest, rate(row));
  const auto chosen = std::ranges::find_if(
      curve.rows, [&](const SweepRow& row) { return rate(row) >= kNearlyFastest * fastest; });
  const auto place = static_cast<size_t>(chosen - curve.rows.begin());
  return BatchChoice{std::move(curve), place};
}

io::Tree batches_event(const BatchChoice& choice) {
  const io::Tree sweep = sweep_event(choice.curve);
  return io::Tree::map({{"event", io::Tree::of(std::string("batches"))},
                        {"rows", *sweep.find("rows")},
                        {"chosen", io::Tree::of(choice.curve.rows[choice.chosen].values[0])}});
}

std::string batches_table(const BatchChoice& choice) {
  const SweepRow& row = choice.curve.rows[choice.chosen];
  return sweep_table(choice.curve) + fmt::format(
                                         "training.global_batch_size: auto is {}, the smallest within 2 % of "
                                         "the fastest: throughput does not grow beyond it.\nThis is about "
                                         "speed only; for training 8 to 64 sequences per step are usual.\n",
                                         row.values[0]);
}

}  // namespace plimsoll::analysis
