#include "analysis/card_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/remedies.h"
#include "base/numbers.h"
#include "base/text_layout.h"
#include "planner/report/headline.h"
#include "strategy/plan_cache.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

constexpr int64_t kGigabyte = 1'000'000'000;
/// More than any host has.
constexpr int64_t kEndless = int64_t{1} << 50;
constexpr int kCardColumns = 80;

strategy::SettingTexts settings_of(const Card& card) {
  strategy::SettingTexts settings = {{"model.preset", card.preset},
                                     {"runtime.device", "cuda"},
                                     {"runtime.profile", "auto"},
                                     {"memory.device_budget", std::to_string(card.bytes)},
                                     {"memory.budget", std::to_string(kEndless)},
                                     {"memory.offload", "none"},  // what the card itself holds
                                     {"training.precision", "bf16"},
                                     {"training.state.weights", "bf16"}};
  if (card.rank > 0) {
    settings.emplace_back("lora", fmt::format("{{r: {}, target_modules: all-linear}}", card.rank));
  } else {
    settings.emplace_back("training.state.gradients", "bf16");
    settings.emplace_back("training.state.master_weights", "true");
  }
  return settings;
}

std::string learns(const Card& card) { return card.rank > 0 ? fmt::format("LoRA r={}", card.rank) : "full"; }

/// What of it the report's classes come to, summed up as guides do.
int64_t class_bytes(const planner::PlanReport& report, std::initializer_list<std::string_view> names) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : report.classes)
    for (const std::string_view wanted : names) sum += name == wanted ? bytes : 0;
  return sum;
}

std::string gigabytes(int64_t bytes) {
  const double value = static_cast<double>(bytes) / kGigabyte;
  return value < 99.95 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

std::string lines_of(const CardRow& row) {
  const planner::PlanReport& r = row.report;
  const int64_t weights = class_bytes(r, {"parameters"});
  const int64_t states = class_bytes(r, {"master_weights", "optimizer_state"});
  const int64_t gradients = class_bytes(r, {"gradients"});
  std::string out =
      fmt::format("  {:<8} {:<12} {:<9} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6}\n", row.card.name,
                  row.card.preset, learns(row.card), gigabytes(weights), gigabytes(states),
                  gigabytes(gradients), gigabytes(main_peak_bytes(r) - weights - states - gradients),
                  gigabytes(main_peak_bytes(r)), gigabytes(row.least_bytes));
  if (r.fits)
    return out + fmt::format("      fits: {}, recompute {}\n",
                             planner::split_text(r.micro_batch_size, r.grad_accum_steps), r.recompute);
  out += fmt::format("      does NOT fit: {} GB too much, {:.1f} bytes per parameter\n",
                     gigabytes(main_peak_bytes(r) - row.card.bytes),
                     static_cast<double>(main_peak_bytes(r)) / static_cast<double>(row.num_parameters));
  if (r.remedies.empty()) out += "      no setting was found that makes it fit\n";
  for (const planner::Remedy& remedy : r.remedies)
    out += fmt::format("      fits with {}: {} GB\n", remedy.text(), gigabytes(remedy.peak_bytes));
  return out;
}

io::Tree row_event(const CardRow& row) {
  const planner::PlanReport& r = row.report;
  io::Tree settings = io::Tree::map(), classes = io::Tree::map();
  for (const auto& [path, value] : row.settings) settings.set(path, io::Tree::of(value));
  for (const auto& [name, bytes] : r.classes) classes.set(name, io::Tree::of(bytes));
  return io::Tree::map({{"card", io::Tree::of(row.card.name)},
                        {"card_bytes", io::Tree::of(row.card.bytes)},
                        {"model", io::Tree::of(row.card.preset)},
                        {"parameters", io::Tree::of(row.num_parameters)},
                        {"learns", io::Tree::of(learns(row.card))},
                        {"settings", std::move(settings)},
                        {"fits", io::Tree::of(r.fits)},
                        {"peak_bytes", io::Tree::of(main_peak_bytes(r))},
                        {"least_bytes", io::Tree::of(row.least_bytes)},
                        {"classes", std::move(classes)},
                        {"choices", planner::choices_event(r)},
                        {"seconds", r.has_time() ? io::Tree::of(r.seconds_estimated) : io::Tree{}},
                        {r.speed_key(), r.has_time() ? io::Tree::of(r.units_per_second()) : io::Tree{}},
                        {"remedies", planner::remedies_event(r)}});
}

Result<CardRow> plan_card(const settings::RunConfig& config, const Card& card,
                          strategy::PrepareOptions options) {
  CardRow row{card, settings_of(card), {}};
  PLIMSOLL_ASSIGN(const settings::RunConfig changed, strategy::with_settings(config, row.settings));
  const auto target = strategy::make_target(changed, options.num_threads);
  options.request = strategy::PlanRequest::kReport;
  strategy::PlanCache cache;
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, strategy::prepare(changed, *target, options, cache));
  row.num_parameters = prepared.report.num_parameters;
  row.least_bytes = main_peak_bytes(prepared.report);
  if (prepared.report.fits) {
    PLIMSOLL_ASSIGN(const strategy::Variant least,
                    strategy::Variants(changed, *target, options, std::move(cache))
                        .look({{main_budget(prepared.report), "1"}}, /*finds_least=*/true));
    row.least_bytes = main_peak_bytes(least.report);
  } else {
    add_remedies(changed, *target, options, prepared, std::move(cache));
  }
  row.report = std::move(prepared.report);
  return row;
}

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> list = {
      {"8 GB", 8 * kGigabyte, "llama-3.2-1b", 8},  {"16 GB", 16 * kGigabyte, "llama-3.2-3b", 16},
      {"24 GB", 24 * kGigabyte, "llama-2-7b", 16}, {"40 GB", 40 * kGigabyte, "llama-2-13b", 32},
      {"80 GB", 80 * kGigabyte, "llama-2-7b", 0},  {"8x80 GB", 640 * kGigabyte, "llama-2-70b", 0},
  };
  return list;
}

std::string card_table_run() {
  return "data: {sequence_length: 2048}\ntraining: {global_batch_size: 8, max_steps: 1}\n";
}

Result<std::vector<CardRow>> plan_cards(const settings::RunConfig& config,
                                        const strategy::PrepareOptions& options,
                                        const std::vector<Card>& list, const PlanProgress& progress) {
  std::vector<CardRow> rows;
  for (const Card& card : list) {
    if (progress) progress(rows.size(), list.size());
    PLIMSOLL_ASSIGN(CardRow row, plan_card(config, card, options));
    rows.push_back(std::move(row));
  }
  return rows;
}

io::Tree card_event(const std::vector<CardRow>& rows) {
  std::vector<io::Tree> list;
  for (const CardRow& row : rows) list.push_back(row_event(row));
  return io::Tree::map(
      {{"event", io::Tree::of(std::string("table"))}, {"rows", io::Tree::list(std::move(list))}});
}

std::string card_table(const std::vector<CardRow>& rows) {
  if (rows.empty()) return {};
  const planner::PlanReport& r = rows.front().report;
  std::string out = fmt::format(
      "Models for each card, planned: {} {} per step, products in bf16\n"
      "In GB of 10^9 bytes; of a card of N GB a run may use N x 10^9 bytes\n\n",
      grouped(r.units), r.unit);
  out += fmt::format("  {:<8} {:<12} {:<9} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6}\n", "card", "model", "method",
                     "weights", "states", "grads", "rest", "peak", "least");
  for (const CardRow& row : rows) out += lines_of(row);
  return wrapped(out, kCardColumns);
}

}  // namespace plimsoll::analysis
